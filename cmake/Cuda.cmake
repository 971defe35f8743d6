# SPDX-License-Identifier: MIT
#
# Finds nvcc. Without it the build has no libshuf-cuda, and so no CUDA backend. The toolkit's own
# installer puts nvcc in a folder that is not in PATH.
set(SHUF_HAVE_CUDA OFF)
if(SHUF_CUDA)
  include(CheckLanguage)
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    # Code for 8.0 also runs on 8.6 and 8.9. For newer GPUs, the driver compiles the PTX code of 9.0.
    set(CMAKE_CUDA_ARCHITECTURES "75-real;80-real;90" CACHE STRING "GPU architectures to compile for")
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
    set(CMAKE_BUILD_RPATH ${PROJECT_BINARY_DIR}/kernels/cuda) # where programs load the library
  else()
    message(STATUS "No nvcc: building without the CUDA backend")
  endif()
endif()

# The build fails if a kernel spills registers or uses local memory, and on any warning.
set(SHUF_KERNEL_OPTIONS
    -Werror all-warnings -Xcompiler=-Wall,-Wextra,-Werror
    -Xptxas=--warn-on-spills,--warn-on-local-memory-usage,--warning-as-error)

# shuf_finds_cuda(target) lets an installed program or library load libshuf-cuda from its own
# installation, in which another build may have put it. Under /usr the system's linker finds it. The Python
# package has it beside its module.
file(RELATIVE_PATH shuf_libdir_from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
function(shuf_finds_cuda target)
  if(DEFINED SKBUILD)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN:$ORIGIN/..")
  elseif(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN:$ORIGIN/${shuf_libdir_from_bin}")
  endif()
endfunction()
