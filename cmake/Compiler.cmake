# SPDX-License-Identifier: MIT
#
# shuf::compiler: the options for all C of this project, such as warnings and sanitizers.
add_library(shuf_compiler INTERFACE)
add_library(shuf::compiler ALIAS shuf_compiler)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Assertions stay on in every build, because only a bug can violate them.
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELEASE "${CMAKE_C_FLAGS_RELEASE}")
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELWITHDEBINFO "${CMAKE_C_FLAGS_RELWITHDEBINFO}")

target_compile_definitions(shuf_compiler INTERFACE $<$<COMPILE_LANGUAGE:C>:_GNU_SOURCE>)
target_compile_options(
  shuf_compiler
  INTERFACE $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow -Wstrict-prototypes
            -Wmissing-prototypes -Wvla -Wwrite-strings -Wformat=2>
            $<$<AND:$<COMPILE_LANGUAGE:C>,$<BOOL:${SHUF_WERROR}>>:-Werror>)
# A build contains no path of the machine, so it is the same in every folder.
target_compile_options(
  shuf_compiler INTERFACE -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.
                          -ffile-prefix-map=${PROJECT_BINARY_DIR}=build)

# Options that make memory errors harder to exploit. Builds with sanitizers do not need them, because
# a sanitizer detects these errors.
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
