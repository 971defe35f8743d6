# SPDX-License-Identifier: MIT
#
# Third-party libraries, as imported targets deps::NAME. README.md gives the reason for
# each.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS C)

# shuf_dependency(NAME pkg-config-module static-archives header): an archive has other names in other releases
function(shuf_dependency name module archives)
  if(SHUF_STATIC_DEPS)
    find_library(SHUF_${name}_ARCHIVE NAMES ${archives} REQUIRED)
    find_path(SHUF_${name}_INCLUDE ${ARGV3} REQUIRED)
    add_library(deps::${name} INTERFACE IMPORTED GLOBAL)
    target_include_directories(deps::${name} SYSTEM INTERFACE ${SHUF_${name}_INCLUDE})
    target_link_libraries(deps::${name} INTERFACE ${SHUF_${name}_ARCHIVE} Threads::Threads
                                                  ${CMAKE_DL_LIBS})
  else()
    pkg_check_modules(SHUF_${name} REQUIRED IMPORTED_TARGET GLOBAL ${module})
    add_library(deps::${name} ALIAS PkgConfig::SHUF_${name})
  endif()
endfunction()

shuf_dependency(uv libuv "libuv_a.a;libuv.a" uv.h)
shuf_dependency(protobuf-c libprotobuf-c libprotobuf-c.a protobuf-c/protobuf-c.h)
shuf_dependency(inih inih libinih.a ini.h)
shuf_dependency(jansson jansson libjansson.a jansson.h)

# Debian has no static libsystemd. Without this library the daemon does not notify a service manager,
# and takes no socket from it.
add_library(deps::systemd INTERFACE IMPORTED GLOBAL)
if(SHUF_SYSTEMD)
  pkg_check_modules(SHUF_systemd REQUIRED IMPORTED_TARGET GLOBAL libsystemd)
  target_link_libraries(deps::systemd INTERFACE PkgConfig::SHUF_systemd)
  target_compile_definitions(deps::systemd INTERFACE SHUF_HAVE_SYSTEMD)
endif()

# The library for the screen of `shufctl top`. Without it, and in static builds, top prints pages of
# text.
add_library(deps::ncurses INTERFACE IMPORTED GLOBAL)
if(NOT SHUF_STATIC_DEPS)
  pkg_check_modules(SHUF_ncurses IMPORTED_TARGET GLOBAL ncursesw)
  if(SHUF_ncurses_FOUND)
    target_link_libraries(deps::ncurses INTERFACE PkgConfig::SHUF_ncurses)
    target_compile_definitions(deps::ncurses INTERFACE SHUF_HAVE_NCURSES)
  else()
    message(STATUS "ncurses not found (Debian: libncurses-dev): shufctl top prints pages of text")
  endif()
endif()

# Debian's static libmicrohttpd needs all of GnuTLS.
add_library(deps::microhttpd INTERFACE IMPORTED GLOBAL)
if(SHUF_HTTP AND NOT SHUF_STATIC_DEPS)
  pkg_check_modules(SHUF_microhttpd IMPORTED_TARGET GLOBAL libmicrohttpd>=0.9.70)
  if(SHUF_microhttpd_FOUND)
    target_link_libraries(deps::microhttpd INTERFACE PkgConfig::SHUF_microhttpd)
    target_compile_definitions(deps::microhttpd INTERFACE SHUF_HAVE_MICROHTTPD)
  else()
    message(STATUS "libmicrohttpd not found (Debian: libmicrohttpd-dev): no metrics by HTTP")
  endif()
endif()

# The daemon's static probes need only a header, no library.
add_library(deps::sdt INTERFACE IMPORTED GLOBAL)
find_path(SHUF_SDT_INCLUDE sys/sdt.h)
if(SHUF_SDT_INCLUDE)
  target_compile_definitions(deps::sdt INTERFACE SHUF_HAVE_SDT)
else()
  message(STATUS "sys/sdt.h not found (Debian: systemtap-sdt-dev): building without USDT probes")
endif()

# The ranges for Nsight Systems need only headers of the CUDA Toolkit, no library.
add_library(deps::nvtx INTERFACE IMPORTED GLOBAL)
find_path(SHUF_NVTX_INCLUDE nvtx3/nvToolsExt.h
          HINTS $ENV{CUDA_HOME}/include /usr/local/cuda/include)
if(SHUF_NVTX_INCLUDE)
  target_include_directories(deps::nvtx SYSTEM INTERFACE ${SHUF_NVTX_INCLUDE})
  target_compile_definitions(deps::nvtx INTERFACE SHUF_HAVE_NVTX)
  target_link_libraries(deps::nvtx INTERFACE ${CMAKE_DL_LIBS})
else()
  message(STATUS "nvtx3/nvToolsExt.h not found (CUDA Toolkit): building without NVTX ranges")
endif()

find_program(PROTOC_C protoc-c REQUIRED)
