# SPDX-License-Identifier: MIT
#
# cmake --build build --target uninstall: removes the files that the last installation wrote. Then
# removes the directories of shufd that are empty. It does not remove an edited shufd.conf.
#     cmake -DMANIFEST=build/install_manifest.txt -DSHUF_CONF=config/shufd.conf -P Uninstall.cmake
if(NOT EXISTS "${MANIFEST}")
  message(FATAL_ERROR "${MANIFEST}: missing, so nothing was installed from this build")
endif()
file(STRINGS "${MANIFEST}" files)
file(SHA256 "${SHUF_CONF}" shipped)
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
  file(GLOB left "${directory}/*")
  if(directory MATCHES "/shufd?$" AND NOT left)
    file(REMOVE_RECURSE "${directory}")
  endif()
endforeach()
