# SPDX-License-Identifier: MIT
#
# Checks the options against the exploitation of memory errors in the installed programs.
# Relocations must be resolved at the start, and then be read-only. The code must be at a random
# address. The compiler must have added checks of the stack and of calls of libc.
#     cmake "-DFILES=a;b" -DREADELF=... -P hardened.cmake
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
