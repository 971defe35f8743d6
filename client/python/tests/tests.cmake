# SPDX-License-Identifier: MIT
#
# The tests of the Python package, as one row of ctest. Under AddressSanitizer its run time comes
# before Python. ThreadSanitizer knows no uninstrumented Python.
if(SHUF_SANITIZE STREQUAL "thread")
  return()
endif()
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import hypothesis, numpy, pytest"
                RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
if(missing)
  message(STATUS "No pytest, hypothesis or NumPy: no tests of the Python package")
  return()
endif()
set(environment PYTHONPATH=${CMAKE_CURRENT_BINARY_DIR} PYTHONDONTWRITEBYTECODE=1
                OMP_NUM_THREADS=2)
if(SHUF_SANITIZE)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libasan.so OUTPUT_VARIABLE asan
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libubsan.so OUTPUT_VARIABLE ubsan
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  list(APPEND environment "LD_PRELOAD=${asan} ${ubsan}" ASAN_OPTIONS=detect_leaks=0)
endif()
add_test(NAME python COMMAND ${Python3_EXECUTABLE} -m pytest -q -p no:cacheprovider
                             ${CMAKE_CURRENT_SOURCE_DIR}/tests)
set_tests_properties(python PROPERTIES TIMEOUT 2400 ENVIRONMENT "${environment}")
