/* SPDX-License-Identifier: MIT
 *
 * Tests that call the CUDA runtime themselves.
 */
#ifndef SHUF__TEST_DEVICE_TESTS_CUH
#define SHUF__TEST_DEVICE_TESTS_CUH

extern "C" {
#include "cmocka_all.h"
}

#include <cstdio>
#include <cuda_runtime.h>

/* Fails the test unless the call succeeded. */
inline void check(cudaError_t e)
{
    if (e != cudaSuccess)
        fail_msg("%s", cudaGetErrorString(e));
}

/* Runs the tests and returns the result for main(). Without a GPU this is 77, which ctest reports
 * as skipped. */
template <size_t Count> int run_device_tests(const CMUnitTest (&tests)[Count])
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        fprintf(stderr, "no CUDA device\n");
        return 77;
    }
    return _cmocka_run_group_tests("tests", tests, Count, nullptr, nullptr);
}

#endif
