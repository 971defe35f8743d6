# SPDX-License-Identifier: MIT
#
# Sets sysconfdir to the directory below which shufd.conf is installed. This is a step of the
# installation because the prefix is not known earlier: `cmake --install build --prefix /usr`. It
# expects SHUF_SYSCONFDIR, as in GNUInstallDirs. daemon/config/load.c has the same rules.
if(IS_ABSOLUTE "${SHUF_SYSCONFDIR}")
  set(sysconfdir "${SHUF_SYSCONFDIR}")
elseif(SHUF_SYSCONFDIR STREQUAL "etc" AND CMAKE_INSTALL_PREFIX MATCHES "^(/usr)?$")
  set(sysconfdir /etc)
elseif(SHUF_SYSCONFDIR STREQUAL "etc" AND CMAKE_INSTALL_PREFIX MATCHES "^/opt/")
  set(sysconfdir "/etc${CMAKE_INSTALL_PREFIX}")
else()
  set(sysconfdir "${CMAKE_INSTALL_PREFIX}/${SHUF_SYSCONFDIR}")
endif()
