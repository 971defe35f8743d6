# SPDX-License-Identifier: MIT
#
# A step of the installation, and of Uninstall.cmake. It removes the libraries of other versions beside
# the installed ones: of libshuf.so.0.1.0, each libshuf.so.0.*. Otherwise ldconfig would let programs
# load the newest of them, also after the installation of an older release. CMAKE_INSTALL_MANIFEST_FILES
# has the installed files. Libraries with another soname stay, because other programs may need them.
cmake_policy(VERSION 3.22) # for IN_LIST
set(sonames ${CMAKE_INSTALL_MANIFEST_FILES})
list(FILTER sonames INCLUDE REGEX "/lib[^/]*[.]so[.][0-9]+$")
foreach(soname IN LISTS sonames)
  file(GLOB versions "$ENV{DESTDIR}${soname}.*")
  foreach(version IN LISTS versions)
    string(REPLACE "$ENV{DESTDIR}${soname}" "${soname}" name "${version}")
    if(NOT name IN_LIST CMAKE_INSTALL_MANIFEST_FILES)
      message(STATUS "Removed: ${version}, of another version")
      file(REMOVE "${version}")
    endif()
  endforeach()
endforeach()
