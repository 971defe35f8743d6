/* SPDX-License-Identifier: MIT
 *
 * The fused kernel: bijection, flag, single-pass scan with decoupled look-back
 * (Merrill and Garland, "Single-pass parallel prefix scan with decoupled
 * look-back", 2016; CUB's), and the compacted store straight from registers.
 * It is bound by arithmetic, so its stores need not be staged.
 *
 * Rows follow one another in one scan: as every row keeps exactly n values, a
 * value's place in its row is its place in the scan less row * n.
 */
#include "permute.cuh"

#include "shuf/fingerprint.h"
#include "tile.cuh"

#include <cub/agent/single_pass_scan_operators.cuh>
#include <cub/block/block_reduce.cuh>
#include <cuda/std/functional>

namespace shuf
{

namespace
{

using tuning::items;
using tuning::tile;
constexpr int warps = tuning::threads / 32;

using TileState = cub::ScanTileState<uint32_t>;
using Plus = ::cuda::std::plus<>;
using Prefix = cub::TilePrefixCallbackOp<uint32_t, Plus, TileState>;

/* The key words of `rows` rows, and every tile's state before the scan. */
template <shuf_purpose Purpose>
__global__ void __launch_bounds__(tuning::threads)
    prepare(TileState state, int tiles, uint32_t *keys, int rows, uint64_t seed, uint64_t epoch)
{
    if (tiles)
        state.InitializeStatus(tiles);
    constexpr int blocks = key_words / 8;
    int index = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (index < rows * blocks)
        shuf_key_words(seed, epoch + index / blocks, Purpose, index % blocks, keys + 8 * index);
}

__device__ __forceinline__ void load_key(const Launch &launch, uint64_t row, uint32_t *key)
{
    if (threadIdx.x < key_words)
        key[threadIdx.x] = launch.keys
                               ? launch.keys[(row - launch.first_row) * key_words + threadIdx.x]
                               : launch.key[threadIdx.x];
    __syncthreads();
}

/* Called by the first warp: kept values in this launch before this tile. */
__device__ __forceinline__ void look_back(TileState &state, Prefix::TempStorage &storage,
                                          const Launch &launch, uint32_t kept, uint32_t *prefix)
{
    int index = static_cast<int>(blockIdx.x);
    uint32_t exclusive = 0;
    if (gridDim.x > 1 && index > 0)
        exclusive = Prefix(state, storage, Plus{}, index)(kept);
    else if (gridDim.x > 1 && threadIdx.x == 0)
        state.SetInclusive(0, kept);
    if (threadIdx.x == 0) {
        *prefix = exclusive;
        if (blockIdx.x == gridDim.x - 1 && launch.base_out)
            *launch.base_out = (launch.base_in ? *launch.base_in : 0) + exclusive + kept;
    }
}

/* One block a tile of a row's domain. */
template <bool Strided, typename Bijection, typename Out>
__global__ void __launch_bounds__(tuning::threads, tuning::blocks_per_sm)
    compact(Bijection f, TileState state, __grid_constant__ const Launch launch, Out *out)
{
    using Word = typename Bijection::Word;
    __shared__ uint32_t key[key_words], warp_kept[warps], prefix;
    __shared__ typename Prefix::TempStorage storage;

    uint64_t number = launch.first_tile + blockIdx.x;
    uint64_t row = launch.tiles == 1 ? number : number / launch.tiles;
    load_key(launch, row, key);

    uint64_t start =
        (number - row * launch.tiles) * tile + threadIdx.x / 32 * (32 * items) + threadIdx.x % 32;
    Word x[items];
    uint32_t rank[items];
#pragma unroll
    for (int i = 0; i < items; i++)
        x[i] = static_cast<Word>(start + 32 * i);
    f.evaluate(key, x);
    if (launch.domain < tile) { /* inputs past a small domain are no values */
#pragma unroll
        for (int i = 0; i < items; i++)
            x[i] = start + 32 * i < launch.domain ? x[i] : static_cast<Word>(launch.n);
    }
    uint32_t kept = rank_kept<warps>(x, static_cast<Word>(launch.n), rank, warp_kept, warps);
    if (threadIdx.x < 32)
        look_back(state, storage, launch, kept, &prefix);
    __syncthreads();

    uint64_t position = (launch.base_in ? *launch.base_in : 0) + prefix - row * launch.n;
    Out *row_out = out + row * launch.count;
    store<Strided>(launch, position, kept, x, rank, row_out);
    if (launch.last >= launch.n) /* a padded shard's last value stands at the front */
        store<Strided>(launch, position + launch.n, kept, x, rank, row_out);
}

/* n = 2^B: nothing is dropped, so every value knows its place and the scan is
 * skipped. One block a tile of a row's output. */
template <typename Bijection, typename Out>
__global__ void __launch_bounds__(tuning::threads, tuning::blocks_per_sm)
    direct(Bijection f, __grid_constant__ const Launch launch, Out *out)
{
    using Word = typename Bijection::Word;
    __shared__ uint32_t key[key_words];
    uint64_t number = launch.first_tile + blockIdx.x;
    uint64_t row = launch.tiles == 1 ? number : number / launch.tiles;
    load_key(launch, row, key);

    uint64_t start = (number - row * launch.tiles) * tile + threadIdx.x;
    Word x[items], mask = static_cast<Word>(launch.domain - 1);
#pragma unroll
    for (int i = 0; i < items; i++)
        x[i] =
            static_cast<Word>(launch.offset + (start + i * tuning::threads) * launch.stride) & mask;
    f.evaluate(key, x);
    Out *row_out = out + row * launch.count + start;
#pragma unroll
    for (int i = 0; i < items; i++)
        if (start + i * tuning::threads < launch.count)
            row_out[i * tuning::threads] = static_cast<Out>(x[i]);
}

/* A job of several launches takes long enough to leave the core to others. */
cudaError_t sleep_until_done(const Scratch &scratch, cudaStream_t stream)
{
    cudaError_t e = cudaEventRecord(scratch.turn, stream);
    return e == cudaSuccess ? cudaEventSynchronize(scratch.turn) : e;
}

/* One job with its types chosen. */
template <typename Bijection, typename Out> struct Run {
    const Scratch &scratch;
    const shuf__job &job;
    Bijection f;
    Out *out;
    cudaStream_t stream;
    Launch launch;
    bool whole;

    Run(const Scratch &scratch_, const shuf__job &job_, void *out_, cudaStream_t stream_)
        : scratch(scratch_), job(job_), f(job_.n), out(static_cast<Out *>(out_)), stream(stream_),
          launch(make_launch(job_, Bijection::purpose))
    {
        whole = job.n == launch.domain;
        uint64_t inputs = whole ? job.count : launch.domain;
        launch.tiles = (inputs + tile - 1) / tile;
    }

    void begin(uint64_t rows, int tiles, TileState state)
    {
        uint64_t work = job.rows > 1 ? rows * (key_words / 8) : 0;
        work = work > static_cast<uint64_t>(tiles) ? work : static_cast<uint64_t>(tiles);
        if (work == 0)
            return;
        int blocks = static_cast<int>((work + tuning::threads - 1) / tuning::threads);
        prepare<Bijection::purpose><<<blocks, tuning::threads, 0, stream>>>(
            state, tiles, scratch.keys, job.rows > 1 ? static_cast<int>(rows) : 0, job.seed,
            job.epoch + launch.first_row);
    }

    /* Tiles [launch.first_tile, + tiles), which touch `rows` rows. */
    cudaError_t one_launch(uint64_t tiles, uint64_t rows)
    {
        TileState state;
        bool scan = !whole && tiles > 1;
        if (scan)
            state.Init(static_cast<int>(tiles), scratch.tile_state, scratch_bytes(tiles));
        launch.keys = job.rows > 1 ? scratch.keys : nullptr;
        begin(rows, scan ? static_cast<int>(tiles) : 0, state);
        auto grid = static_cast<unsigned>(tiles);
        if (whole)
            direct<<<grid, tuning::threads, 0, stream>>>(f, launch, out);
        else if (job.stride > 1)
            compact<true><<<grid, tuning::threads, 0, stream>>>(f, state, launch, out);
        else
            compact<false><<<grid, tuning::threads, 0, stream>>>(f, state, launch, out);
        return cudaGetLastError();
    }

    static size_t scratch_bytes(uint64_t tiles)
    {
        size_t bytes = 0;
        TileState::AllocationSize(static_cast<int>(tiles), bytes);
        return bytes;
    }

    /* How many tiles one launch may take from here. */
    uint64_t most_tiles() const
    {
        uint64_t by_rows = (tuning::launch_rows - 1) * launch.tiles;
        return launch.tiles < tuning::launch_tiles && by_rows < tuning::launch_tiles
                   ? by_rows
                   : tuning::launch_tiles;
    }

    /* Between two launches: has the job been cancelled, or been given all it asked for? */
    cudaError_t between(bool *cancelled, bool *complete)
    {
        cudaError_t e = cudaSuccess;
        if (!whole)
            e = cudaMemcpyAsync(scratch.progress, launch.base_out, sizeof *scratch.progress,
                                cudaMemcpyDeviceToHost, stream);
        if (e == cudaSuccess)
            e = sleep_until_done(scratch, stream);
        *complete = !whole && job.rows == 1 && *scratch.progress > launch.last;
        *cancelled = job.cancelled && job.cancelled(job.cancel_context);
        return e;
    }

    cudaError_t all(bool *cancelled)
    {
        bool complete = false;
        const uint64_t total = launch.tiles * job.rows;
        for (int turn = 0;; turn ^= 1) {
            uint64_t left = total - launch.first_tile, most = most_tiles();
            uint64_t tiles = left < most ? left : most;
            uint64_t end = launch.first_tile + tiles;
            launch.first_row = launch.first_tile / launch.tiles;
            launch.base_out = left > most ? scratch.base + turn : nullptr;
            cudaError_t e = one_launch(tiles, (end - 1) / launch.tiles - launch.first_row + 1);
            if (e != cudaSuccess || left <= most)
                return e;
            e = between(cancelled, &complete);
            if (e != cudaSuccess || *cancelled || complete)
                return e;
            launch.base_in = launch.base_out;
            launch.first_tile = end;
        }
    }
};

template <typename Bijection>
cudaError_t run(const Scratch &scratch, const shuf__job &job, void *out, cudaStream_t stream,
                bool *cancelled)
{
    if (job.width == 4)
        return Run<Bijection, uint32_t>(scratch, job, out, stream).all(cancelled);
    return Run<Bijection, uint64_t>(scratch, job, out, stream).all(cancelled);
}

/* Wide words hold no u32 result: n would not fit. */
template <typename Bijection>
cudaError_t run_wide(const Scratch &scratch, const shuf__job &job, void *out, cudaStream_t stream,
                     bool *cancelled)
{
    return Run<Bijection, uint64_t>(scratch, job, out, stream).all(cancelled);
}

template <typename Value>
__global__ void __launch_bounds__(tuning::reduce_threads)
    sum_fingerprint(const Value *data, uint64_t values, unsigned long long *sum)
{
    using Reduce = cub::BlockReduce<unsigned long long, tuning::reduce_threads>;
    __shared__ typename Reduce::TempStorage storage;
    uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
    unsigned long long part = 0;
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < values;
         i += step)
        part += shuf_fingerprint_term(i, data[i]);
    part = Reduce(storage).Sum(part);
    if (threadIdx.x == 0)
        atomicAdd(sum, part);
}

} // namespace

/* Rows that take a launch or more each gain nothing from one scan, which could not stop early in
 * each of them, and whose number of tiles might pass 64 bits. */
static cudaError_t row_by_row(const Scratch &scratch, const shuf__job &job, void *out,
                              cudaStream_t stream, bool *cancelled)
{
    shuf__job one = job;
    cudaError_t e = cudaSuccess;
    one.rows = 1;
    for (uint64_t row = 0; row < job.rows && e == cudaSuccess && !*cancelled; row++) {
        one.epoch = job.epoch + row;
        e = permute_async(scratch, one, static_cast<char *>(out) + row * job.count * job.width,
                          stream, cancelled);
        if (e == cudaSuccess)
            e = sleep_until_done(scratch, stream);
        *cancelled = *cancelled || (job.cancelled && job.cancelled(job.cancel_context));
    }
    return e;
}

cudaError_t permute_async(const Scratch &scratch, const shuf__job &job, void *out,
                          cudaStream_t stream, bool *cancelled)
{
    const unsigned bits = shuf_domain_bits(job.n);
    const bool narrow = bits <= 32, odd = bits % 2 != 0;
    *cancelled = false;
    if (job.count == 0)
        return cudaSuccess;
    if (job.algorithm == SHUF_ALGORITHM_PRIMEFOLD) { /* over too soon to be asked again */
        *cancelled = job.cancelled && job.cancelled(job.cancel_context);
        return *cancelled ? cudaSuccess : primefold_async(job, out, nullptr, stream);
    }
    const uint64_t domain = uint64_t{1} << bits;
    if (job.rows > 1 && job.n != domain && domain / tuning::tile >= tuning::launch_tiles)
        return row_by_row(scratch, job, out, stream, cancelled);
    switch (job.algorithm) {
    case SHUF_ALGORITHM_PHILOX24:
        if (narrow)
            return odd ? run<Philox24<uint32_t, true>>(scratch, job, out, stream, cancelled)
                       : run<Philox24<uint32_t, false>>(scratch, job, out, stream, cancelled);
        return odd ? run_wide<Philox24<uint64_t, true>>(scratch, job, out, stream, cancelled)
                   : run_wide<Philox24<uint64_t, false>>(scratch, job, out, stream, cancelled);
    case SHUF_ALGORITHM_LCG:
        return narrow ? run<Lcg<uint32_t>>(scratch, job, out, stream, cancelled)
                      : run_wide<Lcg<uint64_t>>(scratch, job, out, stream, cancelled);
    case SHUF_ALGORITHM_PRIMEFOLD:
    case SHUF_ALGORITHM_COUNT:
        break;
    }
    return cudaErrorInvalidValue;
}

cudaError_t fingerprint_async(const void *data, unsigned width, uint64_t values, int sm_count,
                              unsigned long long *sum, cudaStream_t stream)
{
    uint64_t needed = (values + tuning::reduce_threads - 1) / tuning::reduce_threads;
    uint64_t most = static_cast<uint64_t>(sm_count) * tuning::reduce_blocks_per_sm;
    auto blocks = static_cast<unsigned>(needed < most ? needed : most);
    cudaError_t e = cudaMemsetAsync(sum, 0, sizeof *sum, stream);
    if (e != cudaSuccess || values == 0)
        return e;
    if (width == 2)
        sum_fingerprint<<<blocks, tuning::reduce_threads, 0, stream>>>(
            static_cast<const uint16_t *>(data), values, sum);
    else if (width == 4)
        sum_fingerprint<<<blocks, tuning::reduce_threads, 0, stream>>>(
            static_cast<const uint32_t *>(data), values, sum);
    else
        sum_fingerprint<<<blocks, tuning::reduce_threads, 0, stream>>>(
            static_cast<const uint64_t *>(data), values, sum);
    return cudaGetLastError();
}

cudaError_t scratch_make(Scratch *scratch)
{
    size_t state_bytes = 0;
    *scratch = Scratch{};
    TileState::AllocationSize(static_cast<int>(tuning::launch_tiles), state_bytes);
    cudaError_t e = cudaMalloc(&scratch->tile_state, state_bytes);
    if (e == cudaSuccess)
        e = cudaMalloc(&scratch->keys, tuning::launch_rows * key_words * sizeof *scratch->keys);
    if (e == cudaSuccess)
        e = cudaMalloc(&scratch->base, 2 * sizeof *scratch->base);
    if (e == cudaSuccess)
        e = cudaMallocHost(&scratch->progress, sizeof *scratch->progress);
    if (e == cudaSuccess)
        e = cudaEventCreateWithFlags(&scratch->turn,
                                     cudaEventBlockingSync | cudaEventDisableTiming);
    if (e != cudaSuccess)
        scratch_free(scratch);
    return e;
}

void scratch_free(Scratch *scratch)
{
    cudaFree(scratch->tile_state);
    cudaFree(scratch->keys);
    cudaFree(scratch->base);
    cudaFreeHost(scratch->progress);
    if (scratch->turn)
        cudaEventDestroy(scratch->turn);
    *scratch = Scratch{};
}

} // namespace shuf
