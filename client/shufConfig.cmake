# SPDX-License-Identifier: MIT
#
# find_package(shuf) gives the targets shuf::shuf, the shared library, and shuf::static, which needs
# protobuf-c and OpenMP.
include(${CMAKE_CURRENT_LIST_DIR}/shufTargets.cmake)
include(CMakeFindDependencyMacro)
find_dependency(OpenMP COMPONENTS C)
find_library(SHUF_PROTOBUF_C protobuf-c)
mark_as_advanced(SHUF_PROTOBUF_C)
if(SHUF_PROTOBUF_C)
  set_property(TARGET shuf::static PROPERTY INTERFACE_LINK_LIBRARIES ${SHUF_PROTOBUF_C}
                                            OpenMP::OpenMP_C ${CMAKE_DL_LIBS} m)
endif()
set_property(TARGET shuf::shuf PROPERTY INTERFACE_LINK_LIBRARIES m) # of the inline functions
