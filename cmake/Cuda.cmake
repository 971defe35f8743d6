# SPDX-License-Identifier: MIT
#
# Finds nvcc, which is not required: without it the CUDA backend drops out. The toolkit's own
# installer puts it where no PATH looks.
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

# A kernel that spills, or keeps anything in local memory, does not build; nor does one that draws a
# warning.
set(SHUF_KERNEL_OPTIONS
    -Werror all-warnings -Xcompiler=-Wall,-Wextra,-Werror
    -Xptxas=--warn-on-spills,--warn-on-local-memory-usage,--warning-as-error)
