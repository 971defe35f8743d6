# SPDX-License-Identifier: MIT
#
# Writes OUT, a header with the commit of SOURCE. Does not change a header that is up to date.
cmake_minimum_required(VERSION 3.22)
execute_process(
  COMMAND git -C ${SOURCE} describe --always --dirty
  OUTPUT_VARIABLE commit
  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define SHUF_COMMIT \"@commit@\"\n" @ONLY)
