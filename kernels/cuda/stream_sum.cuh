/* SPDX-License-Identifier: MIT
 *
 * The summary of a stream in one pass that stores no values. Each thread adds the terms of the
 * fingerprint (shuf/fingerprint.h) and, if they are requested, the powers of its values, in
 * registers. Each thread block adds up its threads and writes the powers to a place of its own. The
 * host adds these in order, so the same request on the same GPU gives the same bits.
 */
#ifndef SHUF__CUDA_STREAM_SUM_CUH
#define SHUF__CUDA_STREAM_SUM_CUH

#include "shuf/fingerprint.h"
#include "stream.cuh"

#include <cub/block/block_reduce.cuh>
#include <cuda/std/limits>
#include <cuda/std/type_traits>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace shuf
{

/* The bits of a value. */
inline __device__ uint64_t bits_of(uint32_t x)
{
    return x;
}
inline __device__ uint64_t bits_of(uint64_t x)
{
    return x;
}
inline __device__ uint64_t bits_of(float x)
{
    return __float_as_uint(x);
}
inline __device__ uint64_t bits_of(double x)
{
    return static_cast<uint64_t>(__double_as_longlong(x));
}
inline __device__ uint64_t bits_of(__half x)
{
    return __half_as_ushort(x);
}
inline __device__ uint64_t bits_of(__nv_bfloat16 x)
{
    return __bfloat16_as_ushort(x);
}

/* The number of a value, to compare and to add. */
template <typename Out> __device__ __forceinline__ Out ordered(Out x)
{
    return x;
}
inline __device__ float ordered(__half x)
{
    return __half2float(x);
}
inline __device__ float ordered(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

inline __device__ uint32_t smaller(uint32_t a, uint32_t b)
{
    return min(a, b);
}
inline __device__ uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}
inline __device__ float smaller(float a, float b)
{
    return fminf(a, b);
}
inline __device__ double smaller(double a, double b)
{
    return fmin(a, b);
}
inline __device__ uint32_t larger(uint32_t a, uint32_t b)
{
    return max(a, b);
}
inline __device__ uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}
inline __device__ float larger(float a, float b)
{
    return fmaxf(a, b);
}
inline __device__ double larger(double a, double b)
{
    return fmax(a, b);
}

/* What a thread adds up. `i` is the number of a value in the request. With Moments, the powers and
 * the extremes too. */
template <typename Out, bool Moments> class Sums
{
    using Ordered = decltype(ordered(Out{}));

    uint64_t place; /* of the term of value 0 */
    double centre, scale;
    unsigned long long fingerprint = 0;
    double power[4] = {0, 0, 0, 0};
    Ordered least, largest;

    __device__ __forceinline__ uint64_t term(uint64_t i, Out value) const
    {
        return shuf_fingerprint_mix(place + i * SHUF_FINGERPRINT_STEP + bits_of(value));
    }

    static __device__ __forceinline__ Ordered endless()
    {
        using Limits = cuda::std::numeric_limits<Ordered>;
        return Limits::has_infinity ? Limits::infinity() : Limits::max();
    }

  public:
    explicit __device__ __forceinline__ Sums(const Summary &to)
        : place((to.index + 1) * SHUF_FINGERPRINT_STEP), centre(to.centre), scale(to.scale),
          least(endless()),
          largest(cuda::std::is_floating_point_v<Ordered> ? -endless() : Ordered{0})
    {
    }

    /* A value that is not right is no extreme. take_back() must follow, and then add() of the right
     * value. */
    __device__ __forceinline__ void add(uint64_t i, Out value, bool is_right = true)
    {
        fingerprint += term(i, value);
        if (Moments) {
            const double x = static_cast<double>(ordered(value));
            const double z = is_right ? (x - centre) * scale : 0, square = z * z;
            power[0] += z;
            power[1] += square;
            power[2] += square * z;
            power[3] += square * square;
            least = smaller(least, ordered(value));
            largest = larger(largest, ordered(value));
        }
    }

    __device__ __forceinline__ void take_back(uint64_t i, Out value)
    {
        fingerprint -= term(i, value);
    }

    /* Adds up the threads of the block, all of which call it. */
    template <int Threads>
    __device__ __forceinline__ void finish(const Summary &to, unsigned part) const
    {
        using Terms = cub::BlockReduce<unsigned long long, Threads>;
        __shared__ typename Terms::TempStorage terms;
        const unsigned long long sum = Terms(terms).Sum(fingerprint);
        if (threadIdx.x == 0)
            atomicAdd(to.fingerprint, sum);
        if constexpr (Moments) {
            using Powers = cub::BlockReduce<shuf__sums, Threads>;
            __shared__ typename Powers::TempStorage powers;
            const auto add_sums = [](const shuf__sums &a, const shuf__sums &b) {
                return sum_of(a, b);
            };
            const shuf__sums all =
                Powers(powers).Reduce(shuf__sums{{power[0], power[1], power[2], power[3]},
                                                 static_cast<double>(least),
                                                 static_cast<double>(largest)},
                                      add_sums);
            if (threadIdx.x == 0)
                to.parts[part] = all;
        }
    }
};

} // namespace shuf

#endif
