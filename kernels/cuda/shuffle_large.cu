/* SPDX-License-Identifier: MIT
 *
 * Shuffles of large records. An array has few of them, so the host evaluates the permutation. A
 * launch moves up to `together` records. It gets their numbers as arguments, and many blocks share
 * each record.
 */
#include "shuffle.cuh"

#include "host/permute.h"
#include "move.cuh"

#include <memory>
#include <new>

namespace shuf
{

namespace
{

constexpr uint32_t together = 256, threads = 256, blocks_most = 4096;

struct Batch {
    const void *in;
    void *out;
    uint64_t units; /* words of a record */
    uint64_t first; /* the launch moves the records at the positions first, first + 1, ... */
    uint64_t index[together];
    bool inverse;
};

template <typename Unit>
__global__ void __launch_bounds__(threads) move_large(__grid_constant__ const Batch b)
{
    constexpr int loads = sizeof(Unit) > 8 ? 4 : 8; /* loads that a thread issues together */
    const uint64_t here = (b.first + blockIdx.y) * b.units, there = b.index[blockIdx.y] * b.units;
    const Unit *const from = static_cast<const Unit *>(b.in) + (b.inverse ? here : there);
    Unit *const to = static_cast<Unit *>(b.out) + (b.inverse ? there : here);
    const uint64_t stride = uint64_t{gridDim.x} * threads;
    for (uint64_t u = uint64_t{blockIdx.x} * threads + threadIdx.x; u < b.units;
         u += stride * loads) {
        Unit unit[loads];
#pragma unroll
        for (int k = 0; k < loads; k++)
            if (u + k * stride < b.units)
                unit[k] = from[u + k * stride];
#pragma unroll
        for (int k = 0; k < loads; k++)
            if (u + k * stride < b.units)
                to[u + k * stride] = unit[k];
    }
}

cudaError_t move_batch(const shuf__shuffle &s, const Batch &b, cudaStream_t stream)
{
    const uint64_t left = s.permutation.n - b.first, blocks = s.record / tuning::move_bytes;
    const dim3 grid(static_cast<uint32_t>(std::min<uint64_t>(blocks, blocks_most)),
                    static_cast<uint32_t>(std::min<uint64_t>(left, together)));
    with_unit(unit_of(s),
              [&](auto unit) { move_large<decltype(unit)><<<grid, threads, 0, stream>>>(b); });
    return cudaGetLastError();
}

bool is_cancelled(const shuf__computation &computation)
{
    return computation.cancelled && computation.cancelled(computation.cancel_context);
}

} // namespace

bool is_large(const shuf__shuffle &s)
{
    return s.record >= tuning::large_record;
}

cudaError_t large_async(const shuf__simd_ops *simd, const shuf__computation &computation,
                        const void *in, void *out, cudaStream_t stream, bool *cancelled)
{
    const shuf__shuffle &s = computation.request.shuffle;
    const uint64_t n = s.permutation.n;
    const std::unique_ptr<uint64_t[]> order(new (std::nothrow) uint64_t[n]);
    if (!order)
        return cudaErrorMemoryAllocation;
    shuf__computation values = computation;
    values.request.kind = SHUF__PERMUTATION;
    values.request.dtype = SHUF_U64;
    values.request.permutation = s.permutation;
    *cancelled = !shuf__host_permute(simd, 1, &values, order.get());
    cudaError_t e = cudaSuccess;
    for (uint64_t first = 0; first < n && e == cudaSuccess && !*cancelled; first += together) {
        Batch b{in, out, s.record / unit_of(s), first, {}, s.inverse};
        std::copy_n(order.get() + first, std::min<uint64_t>(n - first, together), b.index);
        e = move_batch(s, b, stream);
        *cancelled = is_cancelled(computation);
    }
    return e;
}

} // namespace shuf
