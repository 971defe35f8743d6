/* SPDX-License-Identifier: MIT
 *
 * Records moved where the permutation says, directly: a block has the indices of a tile of
 * neighbouring places in shared memory, and its threads move what belongs there, side by side.
 * Of `primefold` the block works them out for itself; of the others, which know no value by
 * itself, they are computed before and read. Records that are large together go by windows
 * (shuffle_windows.cu).
 */
#include "shuffle.cuh"

#include "fold_forms.cuh"
#include "shape.h"
#include "tuning.cuh"

#include <cassert>

namespace shuf
{

namespace
{

constexpr int listed_tile = 2048; /* places of a block that reads its indices */

/* What is moved: `units` words of the type Unit make a record. */
struct Records {
    const void *in;
    void *out;
    uint64_t n;
    uint32_t units;
    uint32_t parts; /* blocks that share a tile */
};

/* Record index[k] of the input becomes record first + k; of Inverse, the other way round. Each
 * thread has several loads on their way before it stores. */
template <bool Inverse, typename Unit, typename Index>
__device__ __forceinline__ void move(const Records &r, uint64_t first, uint32_t places,
                                     const Index *index)
{
    constexpr uint32_t batch = sizeof(Unit) > 8 ? 4 : 8;
    const Unit *const in = static_cast<const Unit *>(r.in);
    Unit *const out = static_cast<Unit *>(r.out);
    const uint32_t total = places * r.units, share = (total + r.parts - 1) / r.parts;
    const uint32_t begin = blockIdx.y * share;
    const uint32_t end = begin + share < total ? begin + share : total;
    for (uint32_t t = begin + threadIdx.x; t < end; t += blockDim.x * batch) {
        Unit unit[batch];
        uint64_t to[batch];
#pragma unroll
        for (uint32_t b = 0; b < batch; b++) {
            const uint32_t at = t + b * blockDim.x;
            if (at >= end)
                break;
            const uint32_t k = r.units == 1 ? at : at / r.units;
            const uint32_t part = at - k * r.units;
            const uint64_t here = (first + k) * r.units + part;
            const uint64_t there = uint64_t{index[k]} * r.units + part;
            unit[b] = in[Inverse ? here : there];
            to[b] = Inverse ? there : here;
        }
#pragma unroll
        for (uint32_t b = 0; b < batch; b++)
            if (t + b * blockDim.x < end)
                out[to[b]] = unit[b];
    }
}

/* Groups: of a thread. */
template <typename Form, int Groups>
constexpr uint64_t tile_of = uint64_t{fold_threads} * group *Groups;

template <int Groups, typename Unit, typename Form>
__global__ void __launch_bounds__(fold_threads)
    move_folded(__grid_constant__ const Form f,
                __grid_constant__ const Steps<typename Form::Word> steps,
                __grid_constant__ const Rows rows, __grid_constant__ const Records records)
{
    constexpr uint64_t tile = tile_of<Form, Groups>;
    __shared__ alignas(16) typename Form::Word index[tile];
    const uint64_t first = blockIdx.x * tile, left = records.n - first;
    tile_of_row<Form, Groups>(f, f.row, steps, rows, first, index);
    __syncthreads();
    move<false, Unit>(records, first, static_cast<uint32_t>(left < tile ? left : tile), index);
}

template <bool Inverse, typename Unit, typename Index>
__global__ void __launch_bounds__(fold_threads)
    move_listed(const Index *list, __grid_constant__ const Records records)
{
    __shared__ Index index[listed_tile];
    const uint64_t first = uint64_t{blockIdx.x} * listed_tile, left = records.n - first;
    const auto places = static_cast<uint32_t>(left < listed_tile ? left : listed_tile);
    for (uint32_t k = threadIdx.x; k < places; k += blockDim.x)
        index[k] = list[first + k];
    __syncthreads();
    move<Inverse, Unit>(records, first, places, index);
}

/* ---- Choosing ---- */

/* use(Unit{}) with the widest unit that records consist of. */
template <typename Use> cudaError_t with_unit(const shuf__job &job, Use use)
{
    const uint64_t odd = job.record | sizeof(uint4);
    switch (odd & (~odd + 1)) {
    case 1:
        return use(uint8_t{});
    case 2:
        return use(uint16_t{});
    case 4:
        return use(uint32_t{});
    case 8:
        return use(uint64_t{});
    default:
        return use(uint4{});
    }
}

Records make_records(const shuf__job &job, const void *in, void *out, size_t unit, uint64_t tile)
{
    const uint64_t parts = tile * job.record / tuning::move_bytes;
    return {in, out, job.n, static_cast<uint32_t>(job.record / unit),
            static_cast<uint32_t>(parts < 1       ? 1
                                  : parts > 65535 ? 65535
                                                  : parts)};
}

dim3 grid_of(const Records &records, uint64_t tile)
{
    return dim3(blocks_for(records.n, tile), records.parts);
}

/* Few records are shared out among all of the GPU's threads, more of them in larger tiles. */
template <typename Of, typename Unit>
cudaError_t fold_and_move(Of of, Unit, const shuf__job &job, const shuf_primefold_shape &shape,
                          const void *in, void *out, cudaStream_t stream)
{
    using Form = typename Of::Form;
    const Form f = of.make(job, shape);
    const Rows rows = make_rows_for<Form>(job, shape.p);
    const auto steps = make_steps(f, shape.p, 1);
    const auto launch = [&](auto groups) {
        constexpr uint64_t tile = tile_of<Form, decltype(groups)::value>;
        const Records r = make_records(job, in, out, sizeof(Unit), tile);
        move_folded<decltype(groups)::value, Unit>
            <<<grid_of(r, tile), fold_threads, 0, stream>>>(f, steps, rows, r);
        return cudaGetLastError();
    };
    return job.n < tuning::move_few ? launch(std::integral_constant<int, 1>{})
                                    : launch(std::integral_constant<int, Form::groups>{});
}

cudaError_t folded(const shuf__job &job, const void *in, void *out, cudaStream_t stream)
{
    const shuf_primefold_shape shape = shuf__primefold_shape(job.n);
    const auto use = [&](auto of) {
        return with_unit(
            job, [&](auto unit) { return fold_and_move(of, unit, job, shape, in, out, stream); });
    };
    return job.inverse ? with_form<Way::backward>(shape, true, use) : with_form(shape, true, use);
}

template <typename Index>
cudaError_t listed(const shuf__job &job, const void *in, void *out, const void *list,
                   cudaStream_t stream)
{
    return with_unit(job, [&](auto unit) {
        using Unit = decltype(unit);
        const Records r = make_records(job, in, out, sizeof(Unit), listed_tile);
        const auto move_all =
            job.inverse ? move_listed<true, Unit, Index> : move_listed<false, Unit, Index>;
        move_all<<<grid_of(r, listed_tile), fold_threads, 0, stream>>>(
            static_cast<const Index *>(list), r);
        return cudaGetLastError();
    });
}

bool is_folded(const shuf__job &job)
{
    return job.algorithm == SHUF_ALGORITHM_PRIMEFOLD && job.n > SHUF_PRIMEFOLD_EXACT;
}

/* The job that makes the list. */
shuf__job indices_of(const shuf__job &job)
{
    shuf__job list = job;
    list.record = 0;
    list.width = job.n <= uint64_t{1} << 32 ? 4 : 8;
    return list;
}

} // namespace

uint64_t shuffle_need(const shuf__job &job)
{
    return is_folded(job) ? 0 : job.n * indices_of(job).width;
}

uint64_t shuffle_wish(const shuf__job &job)
{
    return windows_suit(job) ? windows_bytes(job) : shuffle_need(job);
}

cudaError_t shuffle_async(const Scratch &scratch, const shuf__job &job, const void *in, void *out,
                          void *temporary, bool wished, cudaStream_t stream, bool *cancelled)
{
    assert(job.record && job.rows == 1 && job.offset == 0 && job.stride == 1 && job.count == job.n);
    *cancelled = job.cancelled && job.cancelled(job.cancel_context);
    if (*cancelled)
        return cudaSuccess;
    if (wished && windows_suit(job))
        return windows_async(job, in, out, temporary, stream);
    if (is_folded(job))
        return folded(job, in, out, stream);
    const shuf__job list = indices_of(job);
    const cudaError_t e = permute_async(scratch, list, temporary, stream, cancelled);
    if (e != cudaSuccess || *cancelled)
        return e;
    return list.width == 4 ? listed<uint32_t>(job, in, out, temporary, stream)
                           : listed<uint64_t>(job, in, out, temporary, stream);
}

} // namespace shuf
