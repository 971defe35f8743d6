# SPDX-License-Identifier: MIT
#
# A build by pip (which sets SKBUILD) without the headers of Python ends with a message that names them
# and their package. Another build leaves the Python package out.
#     cmake -DSOURCE=... -DBUILD=... -DGENERATOR=... -DCC=... -DPYTHON=... -P headers.cmake
set(root ${BUILD}/python-headers-test)
file(REMOVE_RECURSE ${root})
file(MAKE_DIRECTORY ${root}/some)
file(TOUCH ${root}/some/Python.h) # the headers of another package may lie in the folder of Python's

function(configure headers result)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${root}/build -G ${GENERATOR} -DCMAKE_C_COMPILER=${CC}
            -DSHUF_PYTHON=ON -DSHUF_CUDA=OFF -DSHUF_TESTS=OFF -DPython3_EXECUTABLE=${PYTHON}
            -DPython3_INCLUDE_DIR=${root}/${headers} ${ARGN}
    OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE status)
  string(REGEX REPLACE "[ \n]+" " " text "${text}") # CMake wraps a message
  set(${result} "${status}: ${text}" PARENT_SCOPE)
endfunction()

function(expect text words)
  string(FIND "${text}" "${words}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "expected \"${words}\" in: ${text}")
  endif()
endfunction()

foreach(pair IN ITEMS none/Python.h some/patchlevel.h)
  get_filename_component(headers ${pair} DIRECTORY)
  foreach(pip IN ITEMS -DSKBUILD=2 -USKBUILD)
    configure(${headers} text ${pip})
    expect("${text}" "${root}/${pair}: no such file; expected the headers of Python 3")
    expect("${text}" "install python3-dev (Debian, Ubuntu)")
    if(pip STREQUAL "-DSKBUILD=2")
      expect("=${text}" "=1: ")
      expect("${text}" "The Python package cannot be built: ")
    else()
      expect("=${text}" "=0: ")
      expect("${text}" "Building without the Python package: ")
    endif()
  endforeach()
endforeach()
file(REMOVE_RECURSE ${root})
