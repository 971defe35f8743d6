/* SPDX-License-Identifier: MIT
 *
 * See stream.cuh: the choice among the distributions, and sums over numbers in device memory. Each
 * thread block writes its sums to its own place. The host adds them in order. So the same values on
 * the same GPU give the same bits.
 */
#include "stream.cuh"

#include "tuning.cuh"

#include <cub/block/block_reduce.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace shuf
{

/* ---- The distributions ---- */

cudaError_t stream_async(const shuf__stream &s, shuf_dtype dtype, int sm_count, const Target &to,
                         cudaStream_t stream)
{
    switch (s.distribution) {
#define SHUF__ROW(NAME, name)      \
    case SHUF_DISTRIBUTION_##NAME: \
        return name##_async(s, dtype, sm_count, to, stream);
        SHUF__STREAM_KERNELS(SHUF__ROW)
#undef SHUF__ROW
    default:
        return cudaErrorInvalidValue;
    }
}

cudaError_t stream_load()
{
    cudaError_t e = cudaSuccess;
#define SHUF__ROW(NAME, name) \
    if (e == cudaSuccess)     \
        e = name##_load();
    SHUF__STREAM_KERNELS(SHUF__ROW)
#undef SHUF__ROW
    return e;
}

/* ---- Sums ---- */

namespace
{

struct Add {
    __device__ __forceinline__ shuf__sums operator()(const shuf__sums &a, const shuf__sums &b) const
    {
        return sum_of(a, b);
    }
};

template <typename Value> __device__ __forceinline__ double number_of(Value x)
{
    return static_cast<double>(x);
}

__device__ __forceinline__ double number_of(__half x)
{
    return static_cast<double>(__half2float(x));
}

__device__ __forceinline__ double number_of(__nv_bfloat16 x)
{
    return static_cast<double>(__bfloat162float(x));
}

template <typename Value>
__global__ void __launch_bounds__(tuning::reduce_threads)
    sum_powers(const Value *data, uint64_t values, double centre, double scale, shuf__sums *parts)
{
    using Reduce = cub::BlockReduce<shuf__sums, tuning::reduce_threads>;
    __shared__ typename Reduce::TempStorage storage;
    const double x0 = number_of(data[0]); /* least and largest x of a thread without values */
    shuf__sums part = {{0, 0, 0, 0}, x0, x0};
    for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < values;
         i += uint64_t{gridDim.x} * blockDim.x) {
        const double x = number_of(data[i]), z = (x - centre) * scale, square = z * z;
        part.power[0] += z;
        part.power[1] += square;
        part.power[2] += square * z;
        part.power[3] += square * square;
        part.least = fmin(part.least, x);
        part.largest = fmax(part.largest, x);
    }
    part = Reduce(storage).Reduce(part, Add{});
    if (threadIdx.x == 0)
        parts[blockIdx.x] = part;
}

template <typename Value>
cudaError_t start(const void *data, uint64_t values, double centre, double scale, shuf__sums *parts,
                  int count, cudaStream_t stream)
{
    sum_powers<<<count, tuning::reduce_threads, 0, stream>>>(static_cast<const Value *>(data),
                                                             values, centre, scale, parts);
    return cudaGetLastError();
}

} // namespace

cudaError_t sums_async(const void *data, shuf_dtype dtype, uint64_t values, double centre,
                       double scale, shuf__sums *parts, int *count, cudaStream_t stream)
{
    const uint64_t needed = (values + tuning::reduce_threads - 1) / tuning::reduce_threads;
    *count = needed < sums_parts ? static_cast<int>(needed) : sums_parts;
    switch (dtype) {
    case SHUF_U32:
        return start<uint32_t>(data, values, centre, scale, parts, *count, stream);
    case SHUF_U64:
        return start<uint64_t>(data, values, centre, scale, parts, *count, stream);
    case SHUF_F64:
        return start<double>(data, values, centre, scale, parts, *count, stream);
    case SHUF_F32:
        return start<float>(data, values, centre, scale, parts, *count, stream);
    case SHUF_F16:
        return start<__half>(data, values, centre, scale, parts, *count, stream);
    case SHUF_BF16:
        return start<__nv_bfloat16>(data, values, centre, scale, parts, *count, stream);
    default:
        break;
    }
    return cudaErrorInvalidValue;
}

} // namespace shuf
