# SPDX-License-Identifier: MIT
#
# The tests of the Python package. Each file is a test of ctest. The run time of AddressSanitizer must be
# loaded before Python. ThreadSanitizer does not work with a Python that was built without it.
if(SHUF_SANITIZE STREQUAL "thread")
  return()
endif()
shuf_python_has(has_test_modules ${Python3_EXECUTABLE} ${test_modules})
if(NOT has_test_modules)
  message(STATUS "No pytest, hypothesis or NumPy: no tests of the Python package")
  return()
endif()

set(environment PYTHONPATH=${CMAKE_CURRENT_BINARY_DIR} PYTHONDONTWRITEBYTECODE=1
                OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive)
if(SHUF_SANITIZE)
  foreach(name IN ITEMS asan ubsan)
    execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=lib${name}.so
                    OUTPUT_VARIABLE library OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND runtimes ${library})
  endforeach()
  list(JOIN runtimes " " runtimes)
  list(APPEND environment "LD_PRELOAD=${runtimes}" ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=2)
endif()

# shuf_python_tests(PYTHON LABEL FOLDER COST): the files of a folder. ctest begins with the highest costs.
function(shuf_python_tests python label folder cost)
  set(labels python ${label})
  list(REMOVE_DUPLICATES labels)
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/test_*.py)
  foreach(file IN LISTS files)
    string(REGEX REPLACE "^test_(.*)\\.py$" "${label}_\\1" name ${file})
    add_test(NAME ${name} COMMAND ${python} -m pytest -q -rs -p no:cacheprovider ${folder}/${file})
    set_tests_properties(
      ${name} PROPERTIES LABELS "${labels}" COST ${cost} TIMEOUT 1200 ENVIRONMENT "${environment}"
                         SKIP_RETURN_CODE 5) # pytest exits with 5 if it could run no test of the file
  endforeach()
endfunction()

shuf_python_tests(${Python3_EXECUTABLE} python ${CMAKE_CURRENT_SOURCE_DIR}/tests 1)

# The frameworks are no packages of Debian, so ./dev test-parts installs them for a Python of their own. They
# start processes that do not work with a preloaded run time.
find_program(SHUF_FRAMEWORKS_PYTHON python PATHS ${PROJECT_SOURCE_DIR}/build/frameworks-python/bin NO_DEFAULT_PATH
             DOC "A Python with the packages of tests/frameworks/requirements.txt")
if(NOT SHUF_FRAMEWORKS_PYTHON)
  set(SHUF_FRAMEWORKS_PYTHON ${Python3_EXECUTABLE}) # its tests are skipped
endif()
if(NOT SHUF_SANITIZE)
  shuf_python_tests(${SHUF_FRAMEWORKS_PYTHON} frameworks ${CMAKE_CURRENT_SOURCE_DIR}/tests/frameworks 2)
endif()

if(NOT SHUF_SANITIZE)
  add_test(NAME python_order_pictures
           COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/bench/order_pictures.py --check)
  set_tests_properties(python_order_pictures PROPERTIES LABELS python ENVIRONMENT "${environment}")
endif()

shuf_python_has(has_mypy ${Python3_EXECUTABLE} mypy)
if(has_mypy AND NOT SHUF_SANITIZE)
  add_test(NAME python_types
           COMMAND ${Python3_EXECUTABLE} -m mypy --config-file pyproject.toml
                   --cache-dir ${CMAKE_CURRENT_BINARY_DIR}/mypy src/shufd
           WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(python_types PROPERTIES LABELS python TIMEOUT 600)
endif()
