# SPDX-License-Identifier: MIT
#
# What is installed is linked so that memory errors are hard to exploit: all relocations are
# resolved at start and then read-only, the code is at a random address, and the stack and the calls
# of libc are checked.
#     cmake "-DFILES=a;b" -DREADELF=... -P hardened.cmake
foreach(file IN LISTS FILES)
  execute_process(COMMAND ${READELF} --wide --file-header --program-headers --dynamic --dyn-syms
                          ${file} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  foreach(mark "Type: +DYN" "GNU_RELRO" "BIND_NOW" "__stack_chk_fail" "_chk@GLIBC")
    if(NOT text MATCHES "${mark}")
      message(FATAL_ERROR "${file}: no \"${mark}\" in what readelf prints")
    endif()
  endforeach()
  if(text MATCHES "GNU_STACK[^\n]*RWE")
    message(FATAL_ERROR "${file}: its stack is executable")
  endif()
endforeach()
