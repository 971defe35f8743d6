# SPDX-License-Identifier: MIT
#
# cmake --build build --target uninstall: removes the files that the last installation wrote, except an
# edited shufd.conf, and the libraries of other versions. Then removes empty directories: below a private
# prefix all of them, elsewhere those of shufd. At the end it warns of active units.
#     cmake -DMANIFEST=build/install_manifest.txt -DSHUF_CONF=config/shufd.conf -P Uninstall.cmake
cmake_minimum_required(VERSION 3.22)
if(NOT EXISTS "${MANIFEST}")
  message(FATAL_ERROR "${MANIFEST}: missing, so nothing was installed from this build")
endif()
file(STRINGS "${MANIFEST}" files)
file(SHA256 "${SHUF_CONF}" shipped)

# Active units go on without their files. systemctl can still disable and stop them.
execute_process(COMMAND systemctl list-units --plain --no-legend --state=active "shufd*"
                OUTPUT_VARIABLE lines ERROR_QUIET RESULT_VARIABLE result)
string(REGEX MATCHALL "shufd[^ \n]*[.](service|socket|target)" units "${lines}")
set(active "")
foreach(unit IN LISTS units)
  execute_process(COMMAND systemctl show --property=FragmentPath --value "${unit}"
                  OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(file IN_LIST files AND "$ENV{DESTDIR}" STREQUAL "")
    string(APPEND active " ${unit}")
  endif()
endforeach()
set(CMAKE_INSTALL_MANIFEST_FILES ${files})
include(${CMAKE_CURRENT_LIST_DIR}/OtherVersions.cmake)

# The prefix is the folder of include/shuf.h. That of a system is not private.
set(private ${files})
list(FILTER private INCLUDE REGEX "/include/shuf[.]h$")
string(REGEX REPLACE "/include/shuf[.]h$" "" private "${private}")
if(private MATCHES "^(/usr(/.*)?|/|)$")
  set(private "")
else()
  set(private "$ENV{DESTDIR}${private}")
endif()
foreach(name IN LISTS files)
  set(file "$ENV{DESTDIR}${name}")
  set(content ${shipped})
  if(file MATCHES "/shufd/shufd\\.conf$" AND EXISTS "${file}")
    file(SHA256 "${file}" content)
  endif()
  if(NOT content STREQUAL shipped)
    message(STATUS "Kept: ${file}, which was edited")
  elseif(EXISTS "${file}" OR IS_SYMLINK "${file}")
    message(STATUS "Removing: ${file}")
    file(REMOVE "${file}")
  endif()
  get_filename_component(directory "${file}" DIRECTORY)
  if(file MATCHES "/shufd/shufd\\.conf$") # an earlier installation may have written it
    file(REMOVE "${file}.new")
  endif()
  file(GLOB left "${directory}/*")
  if(directory MATCHES "/shufd?$" AND NOT left)
    file(REMOVE_RECURSE "${directory}")
  endif()
  cmake_path(IS_PREFIX private "${directory}" below)
  while(private AND below AND NOT directory STREQUAL private)
    file(GLOB left "${directory}/*")
    if(left)
      break()
    endif()
    file(REMOVE_RECURSE "${directory}")
    get_filename_component(directory "${directory}" DIRECTORY)
  endwhile()
endforeach()

# `systemctl disable` and `daemon-reload` read the units again. Without its file, a socket loses RemoveOnStop=,
# and a later stop would leave the socket in the file system. So the stop is first.
set(package /usr/lib/systemd/system/shufd.service)
if(active AND EXISTS "$ENV{SHUFD_UNITS}${package}" AND NOT package IN_LIST files)
  message(NOTICE "Warning: these units are active:${active}
From now on the units of the package replace them; as root:
    systemctl daemon-reload
    systemctl restart${active}")
elseif(active)
  message(NOTICE "Warning: these units are active, and go on without their files:${active}
Stop them, which also removes their sockets, as root, in this order:
    systemctl stop 'shufd*'
    systemctl disable shufd.target
    systemctl daemon-reload")
endif()
