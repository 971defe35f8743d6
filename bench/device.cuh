/* SPDX-License-Identifier: MIT
 *
 * Helpers for benchmarks of kernels: failures end the program, and events measure device time.
 */
#ifndef SHUF__BENCH_DEVICE_CUH
#define SHUF__BENCH_DEVICE_CUH

#include "backend.h"
#include "report.h"

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

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

/* The workspace of a computation that fills blocks of that kind, for the lifetime of this object.
 * Many runs of the computation share it, as in the daemon: the same work takes longer in new
 * memory. */
class Workspace
{
  public:
    Workspace(shuf__backend *backend, shuf__computation *computation, shuf__memory kind)
        : backend_(backend)
    {
        shuf__error error;
        const shuf__workspace needs = backend->ops->workspace(backend, &computation->request, kind);
        if (shuf__backend_alloc_workspace(backend, &needs, &block_, &error))
            die("workspace", error.text);
        computation->workspace = block_.memory ? &block_ : nullptr;
    }
    ~Workspace()
    {
        backend_->ops->free(backend_, &block_);
    }
    Workspace(const Workspace &) = delete;
    Workspace &operator=(const Workspace &) = delete;

  private:
    shuf__backend *backend_;
    shuf__block block_;
};

} // namespace bench

#endif
