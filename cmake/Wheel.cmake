# SPDX-License-Identifier: MIT
#
# A build whose programs run with an old glibc: by the compiler and the libraries of the root that packaging/wheel-root
# has made. The environment has the root (SHUF_WHEEL_ROOT), and x86_64 or aarch64 (SHUF_WHEEL_PROCESSOR).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $ENV{SHUF_WHEEL_PROCESSOR})
set(CMAKE_SYSROOT $ENV{SHUF_WHEEL_ROOT})
set(CMAKE_LIBRARY_ARCHITECTURE ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
set(CMAKE_C_COMPILER ${CMAKE_SYSROOT}/usr/bin/${CMAKE_LIBRARY_ARCHITECTURE}-gcc-10)
foreach(tool IN ITEMS AR NM OBJCOPY RANLIB STRIP) # those of the root need libraries of the root
  string(TOLOWER ${CMAKE_LIBRARY_ARCHITECTURE}-${tool} CMAKE_${tool})
endforeach()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  set(CMAKE_CROSSCOMPILING_EMULATOR env) # shufctl prints its completion during the build
else()
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${CMAKE_SYSTEM_PROCESSOR}-static -L ${CMAKE_SYSROOT})
endif()
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_SYSROOT}/usr/bin/${CMAKE_LIBRARY_ARCHITECTURE}-g++-10)
set(CMAKE_CUDA_FLAGS_INIT -Xcompiler=--sysroot=${CMAKE_SYSROOT})
foreach(kind IN ITEMS EXE SHARED MODULE) # nvcc's linker
  set(CMAKE_${kind}_LINKER_FLAGS_INIT --sysroot=${CMAKE_SYSROOT})
endforeach()
