# SPDX-License-Identifier: MIT
#
# Finds nvcc. Without it the build has no CUDA backend. The toolkit's own installer puts nvcc in a
# folder that is not in PATH.
set(SHUF_HAVE_CUDA OFF)
if(SHUF_CUDA)
  include(CheckLanguage)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "80;90" CACHE STRING "GPU architectures to compile for")
  endif()
  find_program(SHUF_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  if(SHUF_NVCC AND NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    set(CMAKE_CUDA_COMPILER ${SHUF_NVCC})
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(SHUF_HAVE_CUDA ON)
  else()
    message(STATUS "No nvcc: building without the CUDA backend")
  endif()
endif()

# The build fails if a kernel spills registers or uses local memory, and on any warning.
set(SHUF_KERNEL_OPTIONS
    -Werror all-warnings -Xcompiler=-Wall,-Wextra,-Werror
    -Xptxas=--warn-on-spills,--warn-on-local-memory-usage,--warning-as-error)
