/* SPDX-License-Identifier: MIT
 *
 * The code that the files for a device share: the backend, memory, and the report of failures.
 */
#ifndef SHUF__QUALITY_DEVICE_CUH
#define SHUF__QUALITY_DEVICE_CUH

#include "backend.h"
#include "device.h"

#include <cuda_runtime.h>

#include <cstdint>

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

} // namespace quality

#endif
