# SPDX-License-Identifier: MIT
#
# Compiles a manual page. A line "; include NAME", a comment for scdoc, stands for the text of
# NAME.scd in PARTS or MADE.
#     cmake -DSCDOC=scdoc -DPAGE=x.1.scd -DPARTS=... -DMADE=... -DOUT=x.1 -P Manual.cmake
file(READ "${PAGE}" text)
while(text MATCHES "\n(; include ([a-z-]+)\n)")
  set(line "${CMAKE_MATCH_1}")
  find_file(part_${CMAKE_MATCH_2} ${CMAKE_MATCH_2}.scd PATHS "${PARTS}" "${MADE}" NO_DEFAULT_PATH
                                                             NO_CACHE REQUIRED)
  file(READ "${part_${CMAKE_MATCH_2}}" content)
  string(REPLACE "${line}" "${content}" text "${text}")
endwhile()
file(WRITE "${OUT}.scd" "${text}")
execute_process(COMMAND "${SCDOC}" INPUT_FILE "${OUT}.scd" OUTPUT_FILE "${OUT}"
                COMMAND_ERROR_IS_FATAL ANY)
