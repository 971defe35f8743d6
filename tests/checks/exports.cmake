# SPDX-License-Identifier: MIT
#
# Checks that a library exports exactly the functions of its public headers, has its soname, and
# needs only the given libraries beside libc.
#     cmake -DLIBRARY=... -DHEADERS="a.h;b.h" -DSONAME=... "-DNEEDS=libx|liby" -DNM=... -DREADELF=...
#           -P exports.cmake
foreach(header IN LISTS HEADERS)
  file(STRINGS ${header} lines REGEX "^SHUF_API ")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^[^(]*[ *](shuf_[a-z_]+)\\(.*" "\\1" name "${line}")
    list(APPEND declared ${name})
  endforeach()
endforeach()

execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY} OUTPUT_VARIABLE symbols
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[A-Z] [^\n]+" symbols "${symbols}")
list(TRANSFORM symbols REPLACE "^[A-Z] " "" OUTPUT_VARIABLE exported)

list(SORT declared)
list(SORT exported)
if(NOT declared STREQUAL exported)
  message(FATAL_ERROR "exported: ${exported}\nexpected: ${declared}")
endif()

execute_process(COMMAND ${READELF} -d ${LIBRARY} OUTPUT_VARIABLE dynamic
                COMMAND_ERROR_IS_FATAL ANY)
if(NOT dynamic MATCHES "Library soname: \\[${SONAME}\\]")
  message(FATAL_ERROR "expected the soname ${SONAME} in:\n${dynamic}")
endif()
string(REGEX MATCHALL "Shared library: \\[[^]]+\\]" needed "${dynamic}")
foreach(library IN LISTS needed)
  if(NOT library MATCHES "\\[(${NEEDS}|libc|libasan|libubsan|libtsan|libgomp|libm|libgcc_s|ld-linux[^.]*)\\.so")
    message(FATAL_ERROR "${library}: expected only ${NEEDS}, OpenMP and libc")
  endif()
endforeach()
