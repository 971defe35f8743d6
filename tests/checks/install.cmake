# SPDX-License-Identifier: MIT
#
# Checks that other projects can use an installation. They compile the example with the installed
# headers and either library, by pkg-config and by find_package(), and run it. Each header compiles
# by itself. All headers together compile in each version of C and C++ without a strict warning.
#     cmake -DBUILD=... -DEXAMPLE=epoch.c -DCC=... -DFLAGS="..." -DPKG_CONFIG=... -P install.cmake
set(prefix ${BUILD}/install-test)
file(REMOVE_RECURSE ${prefix})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix} OUTPUT_QUIET
                COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE pc ${prefix}/libshuf.pc)
get_filename_component(directory "${pc}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${directory})

# Runs the example without a daemon. It must report this and end with 1, which shows that it links,
# loads and runs.
function(check program)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env SHUFD_SOCKET=/nonexistent/s
                          LD_LIBRARY_PATH=${directory}/.. ${program}
                  RESULT_VARIABLE code ERROR_VARIABLE words)
  if(NOT code EQUAL 1 OR NOT words MATCHES "^[a-z]+: socket /nonexistent/s")
    message(FATAL_ERROR "${program} ended with ${code}: ${words}")
  endif()
endfunction()

# Two other projects: one with pkg-config, one with find_package(). PROGRAM is their source.
set(consumer ${prefix}/consumer)
file(WRITE ${consumer}/Makefile [=[
flags := $(CFLAGS) $(shell $(PKG_CONFIG) --cflags libshuf)

shared: $(PROGRAM)
	$(CC) $(flags) $< $(shell $(PKG_CONFIG) --libs libshuf) -o $@

static: $(PROGRAM)
	$(CC) $(flags) $< $(patsubst -lshuf,-l:libshuf.a,$(shell $(PKG_CONFIG) --static --libs libshuf)) -o $@
]=])
file(WRITE ${consumer}/CMakeLists.txt [=[
cmake_minimum_required(VERSION 3.16)
project(consumer C)
find_package(shuf 0.1 REQUIRED)
add_executable(shared ${PROGRAM})
target_link_libraries(shared PRIVATE shuf::shuf)
add_executable(static ${PROGRAM})
target_link_libraries(static PRIVATE shuf::static)
]=])
file(MAKE_DIRECTORY ${prefix}/by-make)
execute_process(COMMAND ${CMAKE_COMMAND} -E env CC=${CC} CFLAGS=${FLAGS} make
                        -f ${consumer}/Makefile PROGRAM=${EXAMPLE}
                        PKG_CONFIG=${PKG_CONFIG} shared static
                WORKING_DIRECTORY ${prefix}/by-make OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -S ${consumer} -B ${prefix}/by-cmake -DPROGRAM=${EXAMPLE}
                        -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_C_COMPILER=${CC}
                        -DCMAKE_C_FLAGS=${FLAGS}
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${prefix}/by-cmake OUTPUT_QUIET
                        COMMAND_ERROR_IS_FATAL ANY)
foreach(program by-make/shared by-make/static by-cmake/shared by-cmake/static)
  check(${prefix}/${program})
endforeach()

# The examples are a third project, also where they are not in the sources of shufd.
get_filename_component(examples ${EXAMPLE} DIRECTORY)
file(COPY ${examples} DESTINATION ${prefix})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${prefix}/examples -B ${prefix}/examples/build
                        -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_C_COMPILER=${CC}
                        -DCMAKE_C_FLAGS=${FLAGS}
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${prefix}/examples/build OUTPUT_QUIET
                        COMMAND_ERROR_IS_FATAL ANY)
check(${prefix}/examples/build/epoch)

# A build with scdoc installs a manual page for each function, or a link to one.
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

# The pages name the files of this installation.
function(expect_in_page page text)
  file(GLOB_RECURSE file ${prefix}/${page})
  file(READ "${file}" found)
  string(REPLACE "\\-" "-" found "${found}") # as groff reads them
  string(REPLACE "\\&" "" found "${found}")
  string(FIND "${found}" "${text}" place)
  if(place EQUAL -1 OR found MATCHES "@[a-z]+dir@")
    message(FATAL_ERROR "${file}: expected ${text}, and no @...dir@: ${CMAKE_MATCH_0}")
  endif()
endfunction()
if(MANUALS)
  expect_in_page(shufd.8 ${prefix}/etc/shufd/shufd.conf)
  expect_in_page(shufd.8 ${prefix}/bin/shufd)
  expect_in_page(shufd.conf.5 ${prefix}/etc/shufd/shufd.conf)
  expect_in_page(shufd.service.8 ${prefix}/share/shufd/no-gpu.conf)
  expect_in_page(shufd.service.8 ${prefix}/libexec/shufd/make-instances)
  expect_in_page(shufd.service.8 ${prefix}/lib/systemd/system-generators)
endif()

execute_process(COMMAND ${PKG_CONFIG} --cflags libshuf OUTPUT_VARIABLE cflags
                COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(cflags UNIX_COMMAND "${cflags}")
file(GLOB headers RELATIVE ${prefix}/include ${prefix}/include/*.h ${prefix}/include/shuf/*.h)
list(LENGTH headers count)
if(count LESS 10)
  message(FATAL_ERROR "only ${count} headers are installed: ${headers}")
endif()
set(strict -pedantic -Wall -Wextra -Werror ${cflags} -fsyntax-only)
foreach(header IN LISTS headers)
  file(WRITE ${prefix}/header.c "#include <${header}>\ntypedef int not_empty;\n")
  execute_process(COMMAND ${CC} -std=c11 ${strict} -Wconversion ${prefix}/header.c COMMAND_ERROR_IS_FATAL ANY)
endforeach()

list(JOIN headers ">\n#include <" all)
foreach(language c c++)
  file(WRITE ${prefix}/all.${language} "#include <${all}>\ntypedef int not_empty;\n")
endforeach()
foreach(row "c;gcc;clang;c99;c11;c17" "c++;g++;clang++;c++11;c++14;c++17;c++20")
  list(POP_FRONT row language gnu llvm)
  foreach(name ${gnu} ${llvm})
    unset(compiler CACHE)
    find_program(compiler ${name})
    foreach(standard IN LISTS row)
      if(compiler)
        execute_process(COMMAND ${compiler} -std=${standard} ${strict} ${prefix}/all.${language}
                        COMMAND_ERROR_IS_FATAL ANY)
      endif()
    endforeach()
  endforeach()
endforeach()
