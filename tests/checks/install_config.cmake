# SPDX-License-Identifier: MIT
#
# The configuration file of an installation: its path under each prefix, and a daemon that reads it.
# A second installation keeps an edited file. `uninstall` removes all other files.
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
                          --target uninstall OUTPUT_VARIABLE text ERROR_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  set(errors "${text}" PARENT_SCOPE)
endfunction()

function(expect_content file text)
  file(READ ${file} found)
  if(NOT found STREQUAL text)
    message(FATAL_ERROR "${file}: expected \"${text}\", found \"${found}\"")
  endif()
endfunction()

# Expects that only the files in the other arguments are left below `directory`.
function(expect_files directory)
  file(GLOB_RECURSE found RELATIVE ${directory} ${directory}/*)
  if(NOT found STREQUAL "${ARGN}")
    message(FATAL_ERROR "${directory}: expected the files \"${ARGN}\", found \"${found}\"")
  endif()
endfunction()

file(READ ${SHIPPED} shipped)

# The path of the file under each prefix.
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
  if(prefix STREQUAL "/usr" AND NOT IS_DIRECTORY ${root}/place/usr/bin)
    message(FATAL_ERROR "${root}/place/usr/bin: removed, but it belongs to the system")
  endif()
  file(REMOVE_RECURSE ${root}/place)
endforeach()

# Libraries of older and newer versions do not stay beside the installed one. A library with another soname stays.
install_to("" ${root}/versions)
file(GLOB_RECURSE soname ${root}/versions/*/libshuf.so.0)
file(TOUCH ${soname}.0.9 ${soname}.99.0)
install_to("" ${root}/versions)
file(GLOB left ${soname}.*)
list(LENGTH left count)
if(NOT count EQUAL 1 OR NOT output MATCHES "Removed: ${soname}.99.0, of another version")
  message(FATAL_ERROR "expected only the installed library, and messages about the others: ${left}; ${output}")
endif()
get_filename_component(directory ${soname} DIRECTORY)
file(TOUCH ${soname}.99.0 ${directory}/libshuf.so.1.0.0)
uninstall("")
expect_files(${directory} libshuf.so.1.0.0)

# An edited file stays, and the new one is installed as shufd.conf.new.
install_to("" ${root}/kept)
set(conf ${root}/kept/etc/shufd/shufd.conf)
install_to("" ${root}/kept)
if(EXISTS ${conf}.new)
  message(FATAL_ERROR "${conf}.new: expected no such file, because nothing was edited")
endif()
file(WRITE ${conf} "queue = 17\n")
install_to("" ${root}/kept)
expect_content(${conf} "queue = 17\n")
expect_content(${conf}.new "${shipped}")
if(NOT output MATCHES "Kept: [^\n]*/shufd.conf, which was edited")
  message(FATAL_ERROR "expected a message about the kept file: ${output}")
endif()

# The installed daemon reads the file without an option.
execute_process(COMMAND ${root}/kept/bin/shufd --print-config OUTPUT_VARIABLE printed
                COMMAND_ERROR_IS_FATAL ANY)
if(NOT printed MATCHES "^# configuration: ${conf}\n.*\nqueue = 17\n")
  message(FATAL_ERROR "${conf} was not read: ${printed}")
endif()

# After the uninstallation, only the edited file is left.
file(WRITE ${conf} "${shipped}")
install_to("" ${root}/kept)
file(WRITE ${conf} "queue = 18\n")
file(WRITE ${root}/bin/systemctl "#!/bin/sh
case $1 in
list-units) echo 'shufd.service loaded active running shufd' ;;
show) echo ${root}/kept/lib/systemd/system/shufd.service ;;
esac
")
file(CHMOD ${root}/bin/systemctl PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
set(ENV{PATH} "${root}/bin:$ENV{PATH}")
uninstall("")
if(EXISTS ${root}/kept/lib OR NOT errors MATCHES "\nWarning: these units are active, and go on without their files: \
shufd.service\n[^\n]*\n    systemctl stop 'shufd\\*'\n    systemctl disable shufd.target\n    systemctl daemon-reload\n*$")
  message(FATAL_ERROR "uninstall: expected a warning of active units at the end, and no files left: ${errors}")
endif()
expect_files(${root}/kept etc/shufd/shufd.conf)
expect_content(${conf} "queue = 18\n")

# The units of a package go on, so the warning does not stop them.
install_to("" ${root}/kept)
file(WRITE ${root}/package/usr/lib/systemd/system/shufd.service "")
set(ENV{SHUFD_UNITS} ${root}/package)
uninstall("")
unset(ENV{SHUFD_UNITS})
if(errors MATCHES "systemctl stop" OR NOT errors MATCHES "\n    systemctl daemon-reload\n    systemctl restart shufd.service\n*$")
  message(FATAL_ERROR "uninstall: expected the restart of the package's units: ${errors}")
endif()
file(GLOB left RELATIVE ${root}/kept ${root}/kept/*)
if(NOT "kept/${left}" STREQUAL "kept/etc")
  message(FATAL_ERROR "${root}/kept: expected only etc, found \"${left}\"")
endif()
file(REMOVE_RECURSE ${root})
