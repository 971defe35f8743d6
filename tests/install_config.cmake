# SPDX-License-Identifier: MIT
#
# The configuration file of an installation: its place under each prefix, an edited file that a
# second installation keeps, a daemon that reads it, and the end of everything by `uninstall`.
#     cmake -DBUILD=... -DSHIPPED=shufd.conf -P install_config.cmake
set(root ${BUILD}/install-config-test)
file(REMOVE_RECURSE ${root})

function(install_to destdir prefix)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env DESTDIR=${destdir} ${CMAKE_COMMAND} --install ${BUILD}
                          --prefix ${prefix} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  set(output "${text}" PARENT_SCOPE)
endfunction()

function(uninstall destdir)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env DESTDIR=${destdir} ${CMAKE_COMMAND} --build ${BUILD}
                          --target uninstall OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(expect_content file text)
  file(READ ${file} found)
  if(NOT found STREQUAL text)
    message(FATAL_ERROR "${file}: expected \"${text}\", found \"${found}\"")
  endif()
endfunction()

# No files are left below `directory`, or only those named after it.
function(expect_files directory)
  file(GLOB_RECURSE found RELATIVE ${directory} ${directory}/*)
  if(NOT found STREQUAL "${ARGN}")
    message(FATAL_ERROR "${directory}: expected the files \"${ARGN}\", found \"${found}\"")
  endif()
endfunction()

file(READ ${SHIPPED} shipped)

# The place of the file.
foreach(row "/usr:/etc" "/usr/local:/usr/local/etc" "/opt/x:/etc/opt/x" "/home/a:/home/a/etc")
  string(REPLACE ":" ";" row ${row})
  list(GET row 0 prefix)
  list(GET row 1 etc)
  install_to(${root}/place ${prefix})
  expect_content(${root}/place${etc}/shufd/shufd.conf "${shipped}")
  if(EXISTS ${root}/place/usr/etc)
    message(FATAL_ERROR "--prefix /usr made /usr/etc")
  endif()
  uninstall(${root}/place)
  expect_files(${root}/place)
  file(REMOVE_RECURSE ${root}/place)
endforeach()

# An edited file stays, and the new one comes beside it.
install_to("" ${root}/kept)
set(conf ${root}/kept/etc/shufd/shufd.conf)
install_to("" ${root}/kept)
if(EXISTS ${conf}.new)
  message(FATAL_ERROR "${conf}.new: made though nothing was edited")
endif()
file(WRITE ${conf} "queue = 17\n")
install_to("" ${root}/kept)
expect_content(${conf} "queue = 17\n")
expect_content(${conf}.new "${shipped}")
if(NOT output MATCHES "Kept: [^\n]*/shufd.conf, which was edited")
  message(FATAL_ERROR "no word about the kept file: ${output}")
endif()

# The installed daemon reads it without an option.
execute_process(COMMAND ${root}/kept/bin/shufd --print-config OUTPUT_VARIABLE printed
                COMMAND_ERROR_IS_FATAL ANY)
if(NOT printed MATCHES "\nqueue = 17\n")
  message(FATAL_ERROR "${conf} was not read: ${printed}")
endif()

# What was edited survives the uninstallation, and nothing else does.
file(WRITE ${conf} "${shipped}")
install_to("" ${root}/kept)
file(REMOVE ${conf}.new)
file(WRITE ${conf} "queue = 18\n")
uninstall("")
expect_files(${root}/kept etc/shufd/shufd.conf)
expect_content(${conf} "queue = 18\n")
if(EXISTS ${root}/kept/include/shuf)
  message(FATAL_ERROR "${root}/kept/include/shuf: left behind")
endif()
file(REMOVE_RECURSE ${root})
