/* SPDX-License-Identifier: MIT
 *
 * Helpers for benchmarks of kernels: failures end the program, and events measure device time.
 */
#ifndef SHUF__BENCH_DEVICE_CUH
#define SHUF__BENCH_DEVICE_CUH

#include "report.h"

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

namespace bench
{

[[noreturn]] inline void die(const char *label, const char *text)
{
    fprintf(stderr, "%s: %s\n", label, text);
    exit(1);
}

inline void check(cudaError_t e, const char *label)
{
    if (e != cudaSuccess)
        die(label, cudaGetErrorString(e));
}

constexpr int samples = 9;

/* The durations, in nanoseconds, of `count` runs of the work on the default stream, after a warm-up
 * run. */
template <typename Work> void time_device(const char *label, double *ns, int count, Work work)
{
    cudaEvent_t start, stop;
    check(cudaEventCreate(&start), label);
    check(cudaEventCreate(&stop), label);
    for (int i = -1; i < count; i++) {
        float ms;
        check(cudaEventRecord(start), label);
        work();
        check(cudaGetLastError(), label);
        check(cudaEventRecord(stop), label);
        check(cudaEventSynchronize(stop), label);
        check(cudaEventElapsedTime(&ms, start, stop), label);
        if (i >= 0)
            ns[i] = static_cast<double>(ms) * 1e6;
    }
    check(cudaEventDestroy(start), label);
    check(cudaEventDestroy(stop), label);
}

template <typename Work> void time_device(const char *label, double (&ns)[samples], Work work)
{
    time_device(label, ns, samples, work);
}

/* Adds device and driver to the report. Returns the number of multiprocessors. */
inline int say_device(report *out)
{
    cudaDeviceProp properties;
    int version = 0;
    char driver[32];
    check(cudaGetDeviceProperties(&properties, 0), "device 0");
    check(cudaDriverGetVersion(&version), "driver");
    snprintf(driver, sizeof driver, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    report_fact(out, "device", properties.name);
    report_fact(out, "driver", driver);
    return properties.multiProcessorCount;
}

} // namespace bench

#endif
