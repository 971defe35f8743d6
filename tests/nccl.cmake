# SPDX-License-Identifier: MIT
#
# Tests of libshuf-nccl. agreement.c and rounds.c need neither NCCL nor CUDA.
shuf_test(nccl_rules shuf::core shuf_test_support)
target_sources(test_nccl_rules PRIVATE ../client/nccl/agreement.c ../client/nccl/rounds.c)
target_include_directories(test_nccl_rules PRIVATE ../client/nccl ../client/include)
if(NOT SHUF_HAVE_NCCL_HEADERS)
  message(STATUS "No headers of NCCL and CUDA: building without the test nccl_shuffle.cpu")
  return()
endif()

# On host memory, with a fake NCCL and a fake CUDA runtime.
add_executable(test_nccl_shuffle_host test_nccl_shuffle.c fake/nccl.c fake/cudart.c
                                      $<TARGET_OBJECTS:shuf_nccl_objects>)
target_link_libraries(test_nccl_shuffle_host PRIVATE shuf_test_client deps::nccl_headers
                                                     ${CMAKE_DL_LIBS})
target_include_directories(test_nccl_shuffle_host PRIVATE ../client/nccl)
target_link_libraries(test_nccl_shuffle_host PRIVATE PkgConfig::CMOCKA shuf::compiler)
set_target_properties(test_nccl_shuffle_host PROPERTIES ENABLE_EXPORTS ON)
add_test(NAME nccl_shuffle.cpu COMMAND test_nccl_shuffle_host cpu)
set_tests_properties(nccl_shuffle.cpu PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
if(NOT SHUF_HAVE_NCCL)
  return()
endif()

# On a GPU, with the fake NCCL and with the real one.
set(folder ${CMAKE_CURRENT_BINARY_DIR}/fake-nccl)
add_library(fake_nccl SHARED fake/nccl.c)
set_target_properties(fake_nccl PROPERTIES OUTPUT_NAME nccl SOVERSION 2
                                           LIBRARY_OUTPUT_DIRECTORY ${folder})
target_link_libraries(fake_nccl PRIVATE deps::nccl_headers CUDA::cudart_static shuf::compiler)
shuf_test_program(nccl_shuffle shuf_test_client shuf_nccl deps::nccl CUDA::cudart_static
                  ${CMAKE_DL_LIBS})
target_include_directories(test_nccl_shuffle PRIVATE ../client/nccl)
add_dependencies(test_nccl_shuffle fake_nccl)
add_test(NAME nccl_shuffle.cuda COMMAND test_nccl_shuffle cuda)
add_test(NAME nccl_shuffle_real.cuda COMMAND test_nccl_shuffle cuda)
set_tests_properties(nccl_shuffle.cuda PROPERTIES ENVIRONMENT LD_LIBRARY_PATH=${folder})
set_tests_properties(nccl_shuffle.cuda nccl_shuffle_real.cuda PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
