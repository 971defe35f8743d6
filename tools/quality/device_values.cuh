/* SPDX-License-Identifier: MIT
 *
 * Reads values of all types. A thread reads one block: position p of block l is value number 64 (p
 * / 2) + 2 l + p % 2 of the superblock.
 */
#ifndef SHUF__QUALITY_DEVICE_VALUES_CUH
#define SHUF__QUALITY_DEVICE_VALUES_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace quality
{

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
