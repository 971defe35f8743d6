# SPDX-License-Identifier: MIT
#
# Finds NCCL: the header and the library of Debian's libnccl-dev, or those of the Python package
# nvidia-nccl-cu13 (its folder nvidia/nccl in NCCL_HOME). Without them, or without nvcc, the build has
# no libshuf-nccl. Its test on the host needs only the headers of NCCL and of the CUDA runtime.
set(SHUF_HAVE_NCCL OFF)
set(SHUF_HAVE_NCCL_HEADERS OFF)
if(SHUF_NCCL)
  find_path(SHUF_NCCL_INCLUDE nccl.h HINTS $ENV{NCCL_HOME}/include)
  find_path(SHUF_CUDART_INCLUDE cuda_runtime.h
            HINTS ${CUDAToolkit_INCLUDE_DIRS} $ENV{CUDA_HOME}/include /usr/local/cuda/include)
  if(SHUF_NCCL_INCLUDE AND SHUF_CUDART_INCLUDE)
    add_library(deps::nccl_headers INTERFACE IMPORTED GLOBAL)
    target_include_directories(deps::nccl_headers SYSTEM INTERFACE ${SHUF_NCCL_INCLUDE}
                                                                   ${SHUF_CUDART_INCLUDE})
    set(SHUF_HAVE_NCCL_HEADERS ON)
  endif()
endif()
if(SHUF_HAVE_NCCL_HEADERS AND SHUF_HAVE_CUDA)
  find_library(SHUF_NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS $ENV{NCCL_HOME}/lib)
  if(SHUF_NCCL_LIBRARY)
    add_library(deps::nccl INTERFACE IMPORTED GLOBAL)
    target_link_libraries(deps::nccl INTERFACE deps::nccl_headers ${SHUF_NCCL_LIBRARY})
    set(SHUF_HAVE_NCCL ON)
  endif()
endif()
if(SHUF_HAVE_CUDA AND SHUF_NCCL AND NOT SHUF_HAVE_NCCL)
  message(STATUS "NCCL not found (Debian: libnccl-dev): building without libshuf-nccl")
endif()
