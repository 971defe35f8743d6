# SPDX-License-Identifier: MIT
#
# What is installed is enough to build on: the example compiles against the
# installed headers with both libraries, by pkg-config alone, and runs. Each header
# compiles by itself, without a warning of the strictest kind.
#     cmake -DBUILD=... -DEXAMPLE=epoch.c -DCC=... -DFLAGS="..." -DPKG_CONFIG=... -P install.cmake
set(prefix ${BUILD}/install-test)
file(REMOVE_RECURSE ${prefix})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix} OUTPUT_QUIET
                COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE pc ${prefix}/libshuf.pc)
get_filename_component(directory "${pc}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${directory})

function(pkg_config result)
  execute_process(COMMAND ${PKG_CONFIG} ${ARGN} libshuf OUTPUT_VARIABLE flags
                  COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  set(${result} ${flags} PARENT_SCOPE)
endfunction()

# Without a daemon the example ends with 1 and says so: it links, loads and runs.
function(check name)
  separate_arguments(extra UNIX_COMMAND "${FLAGS}")
  execute_process(COMMAND ${CC} ${extra} ${EXAMPLE} ${ARGN} -o ${prefix}/${name}
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env SHUFD_SOCKET=/nonexistent/s
                          LD_LIBRARY_PATH=${directory}/.. ${prefix}/${name}
                  RESULT_VARIABLE code ERROR_VARIABLE words)
  if(NOT code EQUAL 1 OR NOT words MATCHES "^NO_DAEMON: socket /nonexistent/s")
    message(FATAL_ERROR "${name} ended with ${code}: ${words}")
  endif()
endfunction()

pkg_config(shared --cflags --libs)
check(epoch-shared ${shared})
pkg_config(static --static --cflags --libs)
list(TRANSFORM static REPLACE "^-lshuf$" "-l:libshuf.a")
check(epoch-static ${static})

# Each function has a manual page, or a link to one, in a build with scdoc.
foreach(header IN LISTS HEADERS)
  file(STRINGS ${header} lines REGEX "^SHUF_API ")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^[^(]*[ *](shuf_[a-z_]+)\\(.*" "\\1" name "${line}")
    file(GLOB_RECURSE page ${prefix}/${name}.3)
    if(MANUALS AND NOT page)
      message(FATAL_ERROR "${name}: no man page is installed")
    endif()
  endforeach()
endforeach()

pkg_config(cflags --cflags)
file(GLOB headers RELATIVE ${prefix}/include ${prefix}/include/*.h ${prefix}/include/shuf/*.h)
list(LENGTH headers count)
if(count LESS 10)
  message(FATAL_ERROR "only ${count} headers are installed: ${headers}")
endif()
foreach(header IN LISTS headers)
  file(WRITE ${prefix}/header.c "#include <${header}>\ntypedef int not_empty;\n")
  execute_process(COMMAND ${CC} -std=c11 -pedantic -Wall -Wextra -Werror ${cflags} -fsyntax-only
                          ${prefix}/header.c COMMAND_ERROR_IS_FATAL ANY)
endforeach()
