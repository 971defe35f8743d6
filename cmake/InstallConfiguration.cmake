# SPDX-License-Identifier: MIT
#
# A step of the installation. It installs shufd.conf where shufd reads it, and keeps a file that an
# administrator has edited. This is a step of the installation because the prefix is not known
# earlier: `cmake --install build --prefix /usr`. It expects SHUF_CONF, the file, and
# SHUF_SYSCONFDIR, as in GNUInstallDirs. daemon/config/load.c has the same rules.
if(IS_ABSOLUTE "${SHUF_SYSCONFDIR}")
  set(directory "${SHUF_SYSCONFDIR}")
elseif(SHUF_SYSCONFDIR STREQUAL "etc" AND CMAKE_INSTALL_PREFIX MATCHES "^(/usr)?$")
  set(directory /etc)
elseif(SHUF_SYSCONFDIR STREQUAL "etc" AND CMAKE_INSTALL_PREFIX MATCHES "^/opt/")
  set(directory "/etc${CMAKE_INSTALL_PREFIX}")
else()
  set(directory "${CMAKE_INSTALL_PREFIX}/${SHUF_SYSCONFDIR}")
endif()
set(name shufd.conf)
set(installed "$ENV{DESTDIR}${directory}/shufd/shufd.conf")
if(EXISTS "${installed}")
  file(SHA256 "${installed}" old)
  file(SHA256 "${SHUF_CONF}" new)
  if(NOT old STREQUAL new)
    set(name shufd.conf.new)
    message(STATUS "Kept: ${installed}, which was edited; the new one is ${installed}.new")
  endif()
endif()
file(INSTALL DESTINATION "${directory}/shufd" TYPE FILE RENAME ${name} FILES "${SHUF_CONF}")
