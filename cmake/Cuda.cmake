# SPDX-License-Identifier: MIT
#
# Finds nvcc, which is not required: without it the CUDA backend drops out.
set(SHUF_HAVE_CUDA OFF)
if(SHUF_CUDA)
  include(CheckLanguage)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "80;90" CACHE STRING "GPU architectures to compile for")
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
