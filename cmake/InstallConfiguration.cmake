# SPDX-License-Identifier: MIT
#
# A step of the installation. It installs shufd.conf where shufd reads it, and keeps a file that an
# administrator has edited. It expects SHUF_CONF, the file, and SHUF_SYSCONFDIR.
include("${CMAKE_CURRENT_LIST_DIR}/ConfigurationDirectory.cmake")
set(name shufd.conf)
set(installed "$ENV{DESTDIR}${sysconfdir}/shufd/shufd.conf")
if(EXISTS "${installed}")
  file(SHA256 "${installed}" old)
  file(SHA256 "${SHUF_CONF}" new)
  if(NOT old STREQUAL new)
    set(name shufd.conf.new)
    message(STATUS "Kept: ${installed}, which was edited; the new one is ${installed}.new")
  endif()
endif()
file(INSTALL DESTINATION "${sysconfdir}/shufd" TYPE FILE RENAME ${name} FILES "${SHUF_CONF}")
