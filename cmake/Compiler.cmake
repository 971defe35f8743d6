# SPDX-License-Identifier: MIT
#
# shuf::compiler: the warnings and sanitizers that all of our own C shares.
add_library(shuf_compiler INTERFACE)
add_library(shuf::compiler ALIAS shuf_compiler)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Assertions stay on in every build: they state what only a bug can cause.
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELEASE "${CMAKE_C_FLAGS_RELEASE}")
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELWITHDEBINFO "${CMAKE_C_FLAGS_RELWITHDEBINFO}")

target_compile_definitions(shuf_compiler INTERFACE $<$<COMPILE_LANGUAGE:C>:_GNU_SOURCE>)
target_compile_options(
  shuf_compiler
  INTERFACE $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow -Wstrict-prototypes
            -Wmissing-prototypes -Wvla -Wwrite-strings -Wformat=2>
            $<$<AND:$<COMPILE_LANGUAGE:C>,$<BOOL:${SHUF_WERROR}>>:-Werror>)
# A build is the same in every folder: no path of the machine is in it.
target_compile_options(
  shuf_compiler INTERFACE -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.
                          -ffile-prefix-map=${PROJECT_BINARY_DIR}=build)

# What makes memory errors harder to exploit. Sanitizers check the same more closely.
if(SHUF_SANITIZE)
  target_compile_options(
    shuf_compiler INTERFACE $<$<COMPILE_LANGUAGE:C>:-fsanitize=${SHUF_SANITIZE}
                            -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_link_options(shuf_compiler INTERFACE -fsanitize=${SHUF_SANITIZE})
else()
  target_compile_options(
    shuf_compiler INTERFACE $<$<COMPILE_LANGUAGE:C>:-fstack-protector-strong -fstack-clash-protection>
                            $<$<AND:$<COMPILE_LANGUAGE:C>,$<NOT:$<CONFIG:Debug>>>:-U_FORTIFY_SOURCE
                            -D_FORTIFY_SOURCE=2>)
  target_link_options(shuf_compiler INTERFACE LINKER:-z,relro LINKER:-z,now)
endif()

include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
