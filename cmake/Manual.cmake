# SPDX-License-Identifier: MIT
#
# Compiles a manual page. A line "; include NAME", a comment for scdoc, is replaced by the text of
# NAME.scd in PARTS or MADE. A line "; type NAME" is replaced by the definition of the type in
# HEADERS.
#     cmake -DSCDOC=scdoc -DPAGE=x.1.scd -DPARTS=... -DMADE=... "-DHEADERS=x.h;y.h" -DOUT=x.1
#           -P Manual.cmake
file(READ "${PAGE}" text)
while(text MATCHES "\n(; include ([a-z-]+)\n)")
  set(line "${CMAKE_MATCH_1}")
  find_file(part_${CMAKE_MATCH_2} ${CMAKE_MATCH_2}.scd PATHS "${PARTS}" "${MADE}" NO_DEFAULT_PATH
                                                             NO_CACHE REQUIRED)
  file(READ "${part_${CMAKE_MATCH_2}}" content)
  string(REPLACE "${line}" "${content}" text "${text}")
endwhile()
set(headers "")
foreach(header IN LISTS HEADERS)
  file(READ "${header}" content)
  string(APPEND headers "${content}")
endforeach()
while(text MATCHES "\n(; type ([a-z_]+)\n)")
  set(line "${CMAKE_MATCH_1}")
  set(name ${CMAKE_MATCH_2})
  if(NOT headers MATCHES
     "typedef [a-z]+ ((${name} )?{[^}]*} ${name};|[(][*]${name}[)][^;]*;)\n")
    message(FATAL_ERROR "${PAGE}: no header has the type ${name}")
  endif()
  string(REPLACE "${line}" "```\n${CMAKE_MATCH_0}```\n\n" text "${text}")
endwhile()
file(WRITE "${OUT}.scd" "${text}")
execute_process(COMMAND "${SCDOC}" INPUT_FILE "${OUT}.scd" OUTPUT_FILE "${OUT}"
                COMMAND_ERROR_IS_FATAL ANY)
