/* SPDX-License-Identifier: MIT
 *
 * Compaction in a single kernel, by decoupled look-back (Merrill and Garland: "Single-pass parallel
 * prefix scan with decoupled look-back", 2016; the code is CUB's). A block evaluates the bijection
 * on a tile, and counts the values below n. The look-back gives it the sum of the counts of all
 * earlier tiles, so it knows the positions of its values. A *sink* then takes the values from
 * registers.
 *
 * One scan covers all rows. Every row keeps exactly n values, so
 *
 *     place of a value in its row = its place in the scan - row * n
 *
 * A sink is a struct that the host makes, with these members:
 *
 * - in_rows: whether there may be several rows.
 * - in_parts, parts(): whether several blocks share a tile, and how many. These blocks have the
 *   same blockIdx.x.
 * - prefetch(): runs before the look-back, and starts loads that need the values. Prefetched is the
 *   type of the loaded data.
 * - stage(): runs when the ranks in the tile are known. All threads wait between stage() and
 *   emit().
 * - emit(): runs when the positions in the row are known.
 * - Dense: the type whose emit_dense() takes the values if n = 2^B, without waits. It is the type
 *   of the sink or of its base class.
 */
#ifndef SHUF__CUDA_SCAN_CUH
#define SHUF__CUDA_SCAN_CUH

#include "rank_index.h"
#include "scratch.cuh"
#include "tile.cuh"

#include <cub/agent/single_pass_scan_operators.cuh>
#include <cuda/std/functional>

namespace shuf::scan
{

using tuning::items;
using tuning::tile;

constexpr int warps = tuning::threads / 32;
template <typename Word>
constexpr int blocks_per_sm = sizeof(Word) == 4 ? tuning::blocks_per_sm
                                                : tuning::wide_blocks_per_sm;
/* A tile of the rank index is as large as index_tile tiles of the scan. A launch has at most
 * launch_index_tiles tiles of the index. */
constexpr int index_tile = SHUF__RANK_INDEX_TILE / tile;
constexpr uint64_t launch_index_tiles = tuning::launch_tiles / index_tile;
static_assert(SHUF__RANK_INDEX_TILE % tile == 0 && tuning::launch_tiles % index_tile == 0,
              "a launch has only whole tiles of the rank index");

using TileState = cub::ScanTileState<uint32_t>;
using Plus = ::cuda::std::plus<>;
using Prefix = cub::TilePrefixCallbackOp<uint32_t, Plus, TileState>;

/* Computes the key words of `rows` rows, and sets the state of every tile for the scan. */
template <shuf_purpose Purpose>
__global__ void __launch_bounds__(tuning::threads)
    prepare(TileState state, int tiles, uint32_t *keys, int rows, shuf_key key, uint64_t epoch)
{
    if (tiles)
        state.InitializeStatus(tiles);
    constexpr int blocks = key_words / 8;
    int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index < rows * blocks)
        shuf_key_words(key, epoch + index / blocks, Purpose, index % blocks, keys + 8 * index);
}

__device__ __forceinline__ void load_key(const Launch &launch, uint64_t row, uint32_t *key)
{
    if (threadIdx.x < key_words)
        key[threadIdx.x] = launch.keys
                               ? launch.keys[(row - launch.first_row) * key_words + threadIdx.x]
                               : launch.key[threadIdx.x];
    __syncthreads();
}

/* The row of tile number `number`. */
template <bool InRows>
__device__ __forceinline__ uint64_t row_of(const Launch &launch, uint64_t number)
{
    if constexpr (!InRows)
        return 0;
    return launch.tiles == 1 ? number : number / launch.tiles;
}

/* Several blocks may share a tile. The block with blockIdx.y = 0 publishes the tile's prefix: the
 * number of kept values before the tile. The first warp of each other block waits for the prefix in
 * this function. The wait always ends, because all blocks with blockIdx.y = 0 start before the
 * others. */
__device__ __forceinline__ void look_up(TileState &state, uint32_t kept, uint32_t *prefix)
{
    TileState::StatusWord status = cub::SCAN_TILE_INCLUSIVE;
    uint32_t inclusive = kept;
    if (gridDim.x > 1)
        do
            state.WaitForValid(static_cast<int>(blockIdx.x), status, inclusive);
        while (__any_sync(0xffffffffu, status != cub::SCAN_TILE_INCLUSIVE));
    if (threadIdx.x == 0)
        *prefix = inclusive - kept;
}

/* Called by the first warp of a block. Sets *prefix to the number of values that this launch keeps
 * before this tile. */
template <bool InParts>
__device__ __forceinline__ void look_back(TileState &state, Prefix::TempStorage &storage,
                                          const Launch &launch, uint32_t kept, uint32_t *prefix)
{
    int index = static_cast<int>(blockIdx.x);
    uint32_t exclusive = 0;
    if (InParts && blockIdx.y > 0)
        return look_up(state, kept, prefix);
    if (gridDim.x > 1 && index > 0)
        exclusive = Prefix(state, storage, Plus{}, index)(kept);
    else if (gridDim.x > 1 && threadIdx.x == 0)
        state.SetInclusive(0, kept);
    if (threadIdx.x == 0) {
        *prefix = exclusive;
        if (launch.starts && blockIdx.x % index_tile == 0)
            launch.starts[blockIdx.x / index_tile] = launch.base + exclusive;
        if (blockIdx.x == gridDim.x - 1 && launch.base_out)
            *launch.base_out = launch.base + exclusive + kept;
    }
}

/* The kernel for n < 2^B. Each tile of a row's domain has one block or several. */
template <typename Bijection, typename Sink>
__global__ void __launch_bounds__(tuning::threads, blocks_per_sm<typename Bijection::Word>)
    compact(Bijection f, TileState state, __grid_constant__ const Launch launch,
            __grid_constant__ const Sink sink)
{
    using Word = typename Bijection::Word;
    __shared__ uint32_t key[key_words], warp_kept[warps], prefix;
    __shared__ typename Prefix::TempStorage storage;

    uint64_t number = launch.first_tile + blockIdx.x;
    uint64_t row = row_of<Sink::in_rows>(launch, number);
    load_key(launch, row, key);

    uint64_t start =
        (number - row * launch.tiles) * tile + threadIdx.x / 32 * (32 * items) + threadIdx.x % 32;
    Word x[items], n = static_cast<Word>(launch.n);
    uint32_t rank[items];
#pragma unroll
    for (int i = 0; i < items; i++)
        x[i] = static_cast<Word>(start + 32 * i);
    f.evaluate(key, x);
    if (launch.domain < tile) { /* leaves out the inputs past a small domain */
#pragma unroll
        for (int i = 0; i < items; i++)
            x[i] = start + 32 * i < launch.domain ? x[i] : n;
    }
    typename Sink::Prefetched prefetched;
    sink.prefetch(x, n, prefetched);
    uint32_t kept = rank_kept<warps>(x, n, rank, warp_kept, warps);
    sink.stage(x, n, rank);
    if (threadIdx.x < 32)
        look_back<Sink::in_parts>(state, storage, launch, kept, &prefix);
    __syncthreads();
    sink.emit(launch, row, launch.base + prefix - row * launch.n, kept, x, rank, prefetched);
}

/* The kernel for n = 2^B. No value is left out, so every place is known and no scan is needed. Each
 * tile of a row's output has one block or several. */
template <typename Bijection, typename Sink>
__global__ void __launch_bounds__(tuning::threads, blocks_per_sm<typename Bijection::Word>)
    direct(Bijection f, __grid_constant__ const Launch launch, __grid_constant__ const Sink sink)
{
    using Word = typename Bijection::Word;
    __shared__ uint32_t key[key_words];
    uint64_t number = launch.first_tile + blockIdx.x;
    uint64_t row = row_of<Sink::in_rows>(launch, number);
    load_key(launch, row, key);

    uint64_t start = (number - row * launch.tiles) * tile + threadIdx.x;
    Word x[items], mask = static_cast<Word>(launch.domain - 1);
#pragma unroll
    for (int i = 0; i < items; i++)
        x[i] =
            static_cast<Word>(launch.offset + (start + i * tuning::threads) * launch.stride) & mask;
    f.evaluate(key, x);
    sink.emit_dense(launch, row, start, x);
}

/* Sleeps until the CUDA stream is done. Polling would take a core from other threads for long,
 * because a computation of several launches is long. */
inline cudaError_t sleep_until_done(const Scratch &scratch, cudaStream_t stream)
{
    cudaError_t e = cudaEventRecord(scratch.launch_done, stream);
    return e == cudaSuccess ? cudaEventSynchronize(scratch.launch_done) : e;
}

/* One computation, with the types of its bijection and its sink. */
template <typename Bijection, typename Sink> struct Run {
    const Scratch &scratch;
    const shuf__computation &computation;
    const shuf__permutation &p; /* of the computation */
    Bijection f;
    Sink sink;
    cudaStream_t stream;
    Launch launch;
    bool dense;          /* n = 2^B */
    uint64_t queued = 0; /* tiles of the rank index queued since the last wait */

    Run(const Scratch &scratch_, const shuf__computation &computation_, Bijection f_, Sink sink_,
        cudaStream_t stream_)
        : scratch(scratch_), computation(computation_),
          p(*shuf__request_permutation(&computation_.request)), f(f_), sink(sink_), stream(stream_),
          launch(make_launch(p, Bijection::purpose))
    {
        dense = p.n == launch.domain;
        uint64_t inputs = dense ? p.count : launch.domain;
        launch.tiles = (inputs + tile - 1) / tile;
    }

    void begin(uint64_t rows, int tiles, TileState state)
    {
        uint64_t work = p.rows > 1 ? rows * (key_words / 8) : 0;
        work = work > static_cast<uint64_t>(tiles) ? work : static_cast<uint64_t>(tiles);
        if (work == 0)
            return;
        int blocks = static_cast<int>((work + tuning::threads - 1) / tuning::threads);
        prepare<Bijection::purpose><<<blocks, tuning::threads, 0, stream>>>(
            state, tiles, scratch.keys, p.rows > 1 ? static_cast<int>(rows) : 0,
            shuf__permutation_key(&p), p.epoch + launch.first_row);
    }

    /* Launches `tiles` tiles from launch.first_tile on. They belong to `rows` rows. */
    cudaError_t one_launch(uint64_t tiles, uint64_t rows)
    {
        TileState state;
        bool scan = !dense && tiles > 1;
        if (scan)
            state.Init(static_cast<int>(tiles), scratch.tile_state, scratch_bytes(tiles));
        launch.keys = p.rows > 1 ? scratch.keys : nullptr;
        begin(rows, scan ? static_cast<int>(tiles) : 0, state);
        const dim3 grid(static_cast<unsigned>(tiles), sink.parts());
        const typename Sink::Dense &all = sink;
        if (dense)
            direct<<<grid, tuning::threads, 0, stream>>>(f, launch, all);
        else
            compact<<<grid, tuning::threads, 0, stream>>>(f, state, launch, sink);
        return cudaGetLastError();
    }

    static size_t scratch_bytes(uint64_t tiles)
    {
        size_t bytes = 0;
        TileState::AllocationSize(static_cast<int>(tiles), bytes);
        return bytes;
    }

    /* The most tiles of one launch. */
    uint64_t most_tiles() const
    {
        uint64_t by_rows = (tuning::launch_rows - 1) * launch.tiles;
        return launch.tiles < tuning::launch_tiles && by_rows < tuning::launch_tiles
                   ? by_rows
                   : tuning::launch_tiles;
    }

    bool is_cancelled() const
    {
        return computation.cancelled && computation.cancelled(computation.cancel_context);
    }

    /* Copies `words` words of scratch.starts to the host, and waits until all queued work is
     * done. */
    cudaError_t fetch(uint64_t words)
    {
        cudaError_t e = cudaSuccess;
        queued = 0;
        if (words)
            e = cudaMemcpyAsync(scratch.starts_here, scratch.starts, words * sizeof *scratch.starts,
                                cudaMemcpyDeviceToHost, stream);
        return e == cudaSuccess ? sleep_until_done(scratch, stream) : e;
    }

    /* Called between two launches. Sets *cancelled, and *complete if the computation has all
     * requested values. */
    cudaError_t between(bool *cancelled, bool *complete)
    {
        cudaError_t e = fetch(dense ? 0 : 1);
        if (!dense)
            launch.base = *scratch.starts_here;
        *complete = !dense && p.rows == 1 && launch.base > launch.last;
        *cancelled = is_cancelled();
        return e;
    }

    cudaError_t all(bool *cancelled)
    {
        bool complete = false;
        const uint64_t total = launch.tiles * p.rows;
        for (;;) {
            uint64_t left = total - launch.first_tile, most = most_tiles();
            uint64_t tiles = left < most ? left : most;
            uint64_t end = launch.first_tile + tiles;
            launch.first_row = launch.first_tile / launch.tiles;
            launch.base_out = left > most ? scratch.starts : nullptr;
            cudaError_t e = one_launch(tiles, (end - 1) / launch.tiles - launch.first_row + 1);
            if (e != cudaSuccess || left <= most)
                return e;
            e = between(cancelled, &complete);
            if (e != cudaSuccess || *cancelled || complete)
                return e;
            launch.first_tile = end;
        }
    }

    /* Launches one span. Adds the counts to the rank index only if the whole span succeeds. */
    cudaError_t one_span(const shuf__span &span)
    {
        const uint64_t tiles = span.end - span.begin;
        const bool adds = span.end > computation.rank_index->known;
        launch.first_tile = span.begin * index_tile;
        launch.base = computation.rank_index->before[span.begin];
        launch.starts = adds ? scratch.starts : nullptr;
        launch.base_out = adds ? scratch.starts + tiles : nullptr;
        queued += tiles;
        cudaError_t e = one_launch(tiles * index_tile, 1);
        if (e == cudaSuccess && adds)
            e = fetch(tiles + 1);
        if (e == cudaSuccess && adds)
            shuf__rank_index_add(computation.rank_index, &span, scratch.starts_here);
        return e;
    }

    /* Computes the spans that the rank index selects. A launch over known tiles takes its first
     * position from the index, so it need not wait for the launch before it. As without an index,
     * the number of queued tiles is limited. */
    cudaError_t by_rank_index(bool *cancelled)
    {
        shuf__span span{};
        cudaError_t e = cudaSuccess;
        while (e == cudaSuccess &&
               shuf__rank_index_next(computation.rank_index, &p, launch_index_tiles,
                                     tuning::min_gap, &span)) {
            if (queued + span.end - span.begin > launch_index_tiles)
                e = fetch(0);
            *cancelled = is_cancelled();
            if (e != cudaSuccess || *cancelled)
                break;
            e = one_span(span);
        }
        return e;
    }

    cudaError_t go(bool *cancelled)
    {
        return computation.rank_index ? by_rank_index(cancelled) : all(cancelled);
    }
};

/* Calls use(f) with the permutation's bijection. */
template <typename Use> cudaError_t with_bijection(const shuf__permutation &p, Use use)
{
    const unsigned bits = shuf_domain_bits(p.n);
    const bool narrow = bits <= 32, odd = bits % 2 != 0;
    switch (p.algorithm) {
    case SHUF_ALGORITHM_PHILOX24:
        if (narrow)
            return odd ? use(Philox24<uint32_t, true>(p.n)) : use(Philox24<uint32_t, false>(p.n));
        return odd ? use(Philox24<uint64_t, true>(p.n)) : use(Philox24<uint64_t, false>(p.n));
    case SHUF_ALGORITHM_LCG:
        return narrow ? use(Lcg<uint32_t>(p.n)) : use(Lcg<uint64_t>(p.n));
    case SHUF_ALGORITHM_PRIMEFOLD:
    case SHUF_ALGORITHM_COUNT:
        break;
    }
    return cudaErrorInvalidValue;
}

} // namespace shuf::scan

#endif
