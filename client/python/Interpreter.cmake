# SPDX-License-Identifier: MIT
#
# Finds a Python for the package. ./dev installs packages for the system's Python, but $PATH may
# begin with another Python that lacks them.

# shuf_python_has(RESULT PYTHON MODULE...): whether this Python imports these modules
function(shuf_python_has result python)
  list(JOIN ARGN "," modules)
  execute_process(COMMAND ${python} -c "import ${modules}" RESULT_VARIABLE status
                  OUTPUT_QUIET ERROR_QUIET)
  if(status EQUAL 0)
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

set(build_modules cffi)
set(test_modules hypothesis numpy pytest)
if(NOT Python3_EXECUTABLE)
  shuf_python_has(first_has_all python3 ${build_modules} ${test_modules})
  shuf_python_has(system_has_all /usr/bin/python3 ${build_modules} ${test_modules})
  if(system_has_all AND NOT first_has_all)
    set(Python3_EXECUTABLE /usr/bin/python3)
  endif()
endif()
find_package(Python3 3.10 COMPONENTS Interpreter Development.Module)
