# SPDX-License-Identifier: MIT
#
# A step of the installation. It installs the manual pages with the paths of the installed files: a
# page has @bindir@/shufd for /usr/local/bin/shufd. It expects PAGES, the compiled pages, BUILD, a
# directory for its output, and the directories as in GNUInstallDirs.
include("${CMAKE_CURRENT_LIST_DIR}/ConfigurationDirectory.cmake")
set(systemddir "${SHUF_SYSTEMD_DIR}/systemd")
foreach(name bindir datadir libexecdir mandir systemddir)
  if(NOT IS_ABSOLUTE "${${name}}")
    set(${name} "${CMAKE_INSTALL_PREFIX}/${${name}}")
  endif()
endforeach()
foreach(page IN LISTS PAGES)
  file(READ "${page}" text)
  foreach(name bindir datadir libexecdir sysconfdir systemddir)
    string(REPLACE "-" "\\-" path "${${name}}") # a minus in groff, and not a hyphen
    string(REPLACE "@${name}@" "${path}" text "${text}")
  endforeach()
  cmake_path(GET page FILENAME name)
  string(REGEX MATCH "[0-9]$" section ${name})
  file(WRITE "${BUILD}/${name}" "${text}")
  file(INSTALL DESTINATION "${mandir}/man${section}" TYPE FILE FILES "${BUILD}/${name}")
endforeach()
