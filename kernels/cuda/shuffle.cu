/* SPDX-License-Identifier: MIT
 *
 * Shuffles by `primefold` that move each record directly to its place. A block computes the indices
 * of a tile of neighbouring places in shared memory. Its threads then move the records of the tile
 * together. For n <= SHUF_PRIMEFOLD_EXACT an earlier kernel makes a list of all indices instead.
 *
 * Other files have the shuffles of large records (shuffle_large.cu), those of arrays larger than
 * the L2 cache (shuffle_windows.cu), and those by philox24 and lcg (shuffle_scan.cu).
 */
#include "shuffle.cuh"

#include "fold_forms.cuh"
#include "move.cuh"
#include "simd/primefold.h"

#include <cassert>

namespace shuf
{

namespace
{

/* The number of places of a tile. A thread has `Groups` groups. */
template <typename Form, int Groups>
constexpr uint64_t tile_of = uint64_t{fold_threads} * group *Groups;

/* Computes the indices of a tile and moves its records. With few records, each thread has one group
 * and all blocks are on the GPU at the same time. */
template <int Groups, typename Unit, typename Form>
__global__ void __launch_bounds__(fold_threads, Groups == 1 ? tuning::move_few_blocks_per_sm : 1)
    move_folded(__grid_constant__ const Form f,
                __grid_constant__ const Steps<typename Form::Word> steps,
                __grid_constant__ const Rows rows, __grid_constant__ const Records records)
{
    constexpr uint64_t tile = tile_of<Form, Groups>;
    __shared__ alignas(16) typename Form::Word index[tile];
    const uint64_t first = blockIdx.x * tile, left = records.n - first;
    using Rest = Unfinished<Form, typename Form::Word, Groups>;
    __shared__ typename Rest::List list[fold_threads / 32];
    Rest rest{f, f.row, rows, list[threadIdx.x / 32], first, index};
    rest.start();
    const uint32_t mine = threadIdx.x * group;
    typename Form::Word start = f.start(f.row, first + mine);
    const Part part(rows, first, tile);
    rest.take(mine, tile_of_row<Groups>(f, f.row, steps, part, mine, start, index + mine));
    rest.finish();
    __syncthreads();
    constexpr uint32_t most = Groups == 1 ? group : 2 * group;
    move<Unit, most>(records, false, first, static_cast<uint32_t>(left < tile ? left : tile),
                     index);
}

/* Moves all records by the list of their indices: there is only one tile. */
__global__ void __launch_bounds__(fold_threads)
    move_listed(const uint32_t *list, __grid_constant__ const Records records)
{
    __shared__ uint32_t index[SHUF_PRIMEFOLD_EXACT];
    const auto places = static_cast<uint32_t>(records.n);
    for (uint32_t i = threadIdx.x; i < places; i += fold_threads)
        index[i] = list[i];
    __syncthreads();
    with_unit(records.unit,
              [&](auto unit) { move<decltype(unit)>(records, records.inverse, 0, places, index); });
}

/* ---- The choice of a kernel ---- */

dim3 grid_of(const Records &records, uint64_t tile)
{
    return dim3(blocks_for(records.n, tile), records.parts);
}

/* Chooses the size of tiles. With few records tiles are small. Otherwise some threads of the GPU
 * would have no work. */
template <typename Unit, typename Of>
cudaError_t fold_and_move(Of of, const shuf__shuffle &s, const shuf_primefold_shape &shape,
                          const void *in, void *out, cudaStream_t stream)
{
    using Form = typename Of::Form;
    const Form f = of.make(s.permutation, shape);
    const Rows rows = make_rows_for<Form>(s.permutation, shape.p);
    const auto steps = make_steps(f, shape.p, 1);
    const auto launch = [&](auto groups) {
        constexpr uint64_t tile = tile_of<Form, decltype(groups)::value>;
        const Records r = make_records(s, in, out, tile);
        move_folded<decltype(groups)::value, Unit>
            <<<grid_of(r, tile), fold_threads, 0, stream>>>(f, steps, rows, r);
        return cudaGetLastError();
    };
    if constexpr (sizeof(typename Form::Word) == sizeof(uint32_t)) /* 64-bit words: always many */
        if (s.permutation.n < tuning::move_few)
            return launch(std::integral_constant<int, 1>{});
    return launch(std::integral_constant<int, Form::groups>{});
}

cudaError_t folded(const shuf__shuffle &s, const void *in, void *out, cudaStream_t stream)
{
    const shuf_primefold_shape shape = shuf__primefold_shape(s.permutation.n);
    const auto use = [&](auto of) {
        cudaError_t e = cudaSuccess;
        with_unit(unit_of(s), [&](auto unit) {
            e = fold_and_move<decltype(unit)>(of, s, shape, in, out, stream);
        });
        return e;
    };
    return s.inverse ? with_form<Direction::inverse>(shape, use) : with_form(shape, use);
}

cudaError_t listed(const shuf__shuffle &s, const void *in, void *out, void *list,
                   cudaStream_t stream)
{
    const cudaError_t e = primefold_async(s.permutation, sizeof(uint32_t), list, nullptr, stream);
    if (e != cudaSuccess)
        return e;
    const Records r = make_records(s, in, out, SHUF_PRIMEFOLD_EXACT);
    move_listed<<<dim3(1, r.parts), fold_threads, 0, stream>>>(static_cast<uint32_t *>(list), r);
    return cudaGetLastError();
}

} // namespace

uint64_t shuffle_best_bytes(const shuf__shuffle &s)
{
    return windows_suit(s) ? windows_bytes(s) : 0;
}

cudaError_t shuffle_async(const Scratch &scratch, const shuf__computation &computation,
                          const void *in, void *out, void *windows, void *list, cudaStream_t stream,
                          bool *cancelled)
{
    const shuf__shuffle &s = computation.request.shuffle;
    const shuf__permutation &p = s.permutation;
    assert(computation.request.kind == SHUF__SHUFFLE && p.rows == 1 && p.offset == 0 &&
           p.stride == 1 && p.count == p.n);
    *cancelled = computation.cancelled && computation.cancelled(computation.cancel_context);
    if (*cancelled)
        return cudaSuccess;
    if (!shuf_algorithm_has_random_access(p.algorithm))
        return scan_and_move(scratch, computation, in, out, stream, cancelled);
    if (windows)
        return windows_async(s, in, out, windows, stream);
    return p.n > SHUF_PRIMEFOLD_EXACT ? folded(s, in, out, stream)
                                      : listed(s, in, out, list, stream);
}

} // namespace shuf
