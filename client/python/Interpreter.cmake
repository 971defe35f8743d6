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
find_package(Python3 3.10 COMPONENTS Interpreter)

# shuf_python_missing_header(RESULT): the first header of this Python that does not exist; empty if all do.
# FindPython ends with an error of its own if only some of them exist.
function(shuf_python_missing_header result)
  set(directory ${Python3_INCLUDE_DIR}) # pip sets it
  if(NOT directory)
    execute_process(COMMAND ${Python3_EXECUTABLE} -c
                            "import sysconfig; print(sysconfig.get_path('include'), end='')"
                    OUTPUT_VARIABLE directory)
  endif()
  set(${result} "" PARENT_SCOPE)
  foreach(name IN ITEMS Python.h patchlevel.h)
    if(NOT EXISTS ${directory}/${name})
      set(${result} ${directory}/${name} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

set(reason "no Python 3.10 or newer with cffi")
if(Python3_FOUND)
  shuf_python_missing_header(missing)
  if(missing)
    set(Python3_FOUND FALSE)
    set(reason "${missing}: no such file; expected the headers of Python ${Python3_VERSION}; install \
python3-dev (Debian, Ubuntu) or python3-devel (Fedora), or run ./dev setup")
  else()
    find_package(Python3 3.10 COMPONENTS Interpreter Development.Module)
  endif()
endif()
