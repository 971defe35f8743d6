/* SPDX-License-Identifier: MIT
 *
 * The code that the files for a device share: the backend, memory, and the report of failures.
 */
#ifndef SHUF__QUALITY_DEVICE_CUH
#define SHUF__QUALITY_DEVICE_CUH

#include "backend.h"
#include "device.h"

#include <cstdint>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <vector>

struct shuf__device {
    shuf__backend *backend;
    shuf__block values; /* the last block; it is kept, because the next values may have its size */
};

namespace quality
{

/* Returns SHUF_OK, or writes an error that names the failed step. */
inline shuf_status to_status(cudaError_t e, const char *what, shuf__error *error)
{
    if (e == cudaSuccess)
        return SHUF_OK;
    return shuf__fail(error, e == cudaErrorMemoryAllocation ? SHUF_NO_MEMORY : SHUF_DEVICE,
                      "%s: %s", what, cudaGetErrorString(e));
}

/* Device memory for a number of values, all zeros. The destructor frees it. */
template <typename T> class Memory
{
  public:
    Memory() = default;
    ~Memory()
    {
        cudaFree(memory_);
    }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    cudaError_t allocate(size_t count)
    {
        count_ = count;
        const cudaError_t e = cudaMalloc(&memory_, count * sizeof(T));
        return e == cudaSuccess ? clear() : e;
    }
    cudaError_t clear()
    {
        return cudaMemset(memory_, 0, count_ * sizeof(T));
    }
    cudaError_t put(const T *from)
    {
        return cudaMemcpy(memory_, from, count_ * sizeof(T), cudaMemcpyHostToDevice);
    }
    cudaError_t get(T *to) const
    {
        return cudaMemcpy(to, memory_, count_ * sizeof(T), cudaMemcpyDeviceToHost);
    }
    size_t size() const
    {
        return count_;
    }
    T *at() const
    {
        return memory_;
    }

  private:
    T *memory_ = nullptr;
    size_t count_ = 0;
};

/* Fills device->values with the values of a computation. */
shuf_status make(shuf__device *device, const shuf__computation &job, uint64_t bytes,
                 shuf__error *error);

/* Fills device->values with a part of a stream. */
shuf_status make(shuf__device *device, const shuf__device_stream *stream, shuf__error *error);

/* ---- Values of all types ---- */

/* A thread reads one block: position p of block l is value number 64 (p / 2) + 2 l + p % 2 of the
 * superblock. */

__device__ inline double to_double(double x)
{
    return x;
}

__device__ inline double to_double(float x)
{
    return x;
}

__device__ inline double to_double(__half x)
{
    return __half2float(x);
}

__device__ inline double to_double(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

/* Two neighbouring values, which are read together. */
template <typename T> struct alignas(2 * sizeof(T)) Pair {
    T x, y;
};

template <typename T> struct Values {
    template <typename Use> static __device__ void each(const T *superblock, unsigned lane, Use use)
    {
        const auto *pairs = reinterpret_cast<const Pair<T> *>(superblock);
#pragma unroll
        for (unsigned j = 0; j < 16; j++) {
            const Pair<T> pair = pairs[32 * j + lane];
            use(2 * j, pair.x);
            use(2 * j + 1, pair.y);
        }
    }
};

/* Calls `call` with a value of the type with this name. */
template <typename Call> cudaError_t by_type(const char *name, Call call)
{
    if (strcmp(name, "f64") == 0)
        return call(double{});
    if (strcmp(name, "f32") == 0)
        return call(float{});
    return strcmp(name, "f16") == 0 ? call(__half{}) : call(__nv_bfloat16{});
}

} // namespace quality

#endif
