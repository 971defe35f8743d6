# SPDX-License-Identifier: MIT
#
# For scripts that run at the installation: makes the given folders absolute. The configuration of
# what is installed below /usr is in /etc, as with GNUInstallDirs' absolute folders.
if(CMAKE_INSTALL_PREFIX MATCHES "^/usr/?$" AND NOT IS_ABSOLUTE "${sysconfdir}")
  set(sysconfdir /${sysconfdir})
endif()
foreach(name bindir libexecdir sysconfdir datadir)
  if(NOT IS_ABSOLUTE "${${name}}")
    set(${name} ${CMAKE_INSTALL_PREFIX}/${${name}})
  endif()
endforeach()
