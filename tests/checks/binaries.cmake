# SPDX-License-Identifier: MIT
#
# Checks the built binaries.
#     cmake -DREADELF=... -DLIBRARY=... -DHEADERS="a.h;b.h" -DSONAME=... "-DNEEDS=libx|liby" -DNM=...
#           -P binaries.cmake
#     cmake -DREADELF=... "-DFILES=a;b" -P binaries.cmake

# The library exports exactly the functions of its public headers, has its soname, and needs only the
# given libraries beside libc.
function(check_exports)
  foreach(header IN LISTS HEADERS)
    file(STRINGS ${header} lines REGEX "^SHUF_API ")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^[^(]*[ *](shuf_[a-z_]+)\\(.*" "\\1" name "${line}")
      list(APPEND declared ${name})
    endforeach()
  endforeach()

  execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY} OUTPUT_VARIABLE symbols
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[B-Z] [^@\n]+" symbols "${symbols}") # "A" is a node of exports.map
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
endfunction()

# The installed programs have the options against the exploitation of memory errors. Relocations must
# be resolved at the start, and then be read-only. The code must be at a random address. The compiler
# must have added checks of the stack and of calls of libc.
function(check_hardening)
  foreach(file IN LISTS FILES)
    execute_process(COMMAND ${READELF} --wide --file-header --program-headers --dynamic --dyn-syms
                            ${file} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    foreach(mark "Type: +DYN" "GNU_RELRO" "BIND_NOW" "__stack_chk_fail" "_chk@GLIBC")
      if(NOT text MATCHES "${mark}")
        message(FATAL_ERROR "${file}: no \"${mark}\" in the output of readelf")
      endif()
    endforeach()
    if(text MATCHES "GNU_STACK[^\n]*RWE")
      message(FATAL_ERROR "${file}: its stack is executable")
    endif()
  endforeach()
endfunction()

if(LIBRARY)
  check_exports()
else()
  check_hardening()
endif()
