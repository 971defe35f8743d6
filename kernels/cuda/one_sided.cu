/* SPDX-License-Identifier: MIT
 *
 * One-sided plans (docs/cluster.md): see exchange.cuh. The rank's places are sorted by the windows
 * from which its records come. A tile of neighbouring places belongs to one block. There are three
 * steps:
 *
 *     find    evaluates the permutation at the places, keeps the number and the window of each
 *             record, and counts the places of the tile for each window
 *     sum     adds the counts of all tiles before a tile, window by window in each part, so each
 *             tile knows where its places go
 *     sort    sorts the places of a tile in shared memory, and appends each run to its window
 */
#include "exchange.cuh"

#include "scratch.cuh"
#include "walk.cuh"

#include <cub/block/block_scan.cuh>

namespace shuf
{

namespace
{

using walk::Positions, walk::Walk, walk::is_cancelled, walk::lanes, walk::lane;

constexpr uint32_t tile = walk::warps * tuning::walk_run;
constexpr uint32_t most = SHUF__WINDOWS_MOST;
constexpr int window_bits = 8; /* of a window's number */
static_assert(1 << window_bits == most, "each digit is a window");
static_assert(SHUF__PART_UNIT % tile == 0, "a tile is in one part");

constexpr uint32_t sort_threads = tuning::plan_sort_threads, sort_warps = sort_threads / lanes;
constexpr uint32_t of_warp = tile / sort_warps;     /* places */
constexpr uint32_t batch = tuning::plan_sort_batch; /* places that a lane has loaded */
static_assert(sort_threads == most, "a thread for each window");
constexpr uint32_t writers = 16; /* threads that write the run of a window */
static_assert(of_warp % (batch * lanes) == 0, "batches are whole");
static_assert(tile <= UINT16_MAX, "a count has 16 bits");

/* The ranks that have the records. Those without records at the end are left out. */
template <typename Word> struct Owners {
    Word first[SHUF__RANKS_ONE_SIDED];
    uint32_t window[SHUF__RANKS_ONE_SIDED]; /* the first of each rank */
    uint32_t count;
};

struct Windows {
    uint32_t count, bits;
};

/* The tiles of the parts. The last part may have fewer. */
struct Tiles {
    uint64_t places;
    uint32_t part; /* places of a part */
    uint32_t of_part, all;
};

/* A tile, and its counts. */
struct Tile {
    uint64_t part_first; /* place */
    uint64_t counts;     /* of its first window, in the list of all counts */
    uint32_t stride;     /* to those of the next window: the tiles of its part */

    __device__ __forceinline__ Tile(const Tiles &tiles, const Windows &windows, uint32_t index)
    {
        const uint32_t part = index / tiles.of_part, first = part * tiles.of_part;
        stride = min(tiles.of_part, tiles.all - first);
        part_first = uint64_t{part} * tiles.part;
        counts = uint64_t{first} * windows.count + (index - first);
    }
};

/* The owners of all values of a turn. */
template <typename Form>
__device__ __forceinline__ void find_owners(const Owners<typename Form::Word> &owners,
                                            const Walk<Form> &walk,
                                            uint32_t (&owner)[walk::each<Form>])
{
#pragma unroll
    for (uint32_t i = 0; i < walk::each<Form>; i++)
        owner[i] = 0;
#pragma unroll 1
    for (uint32_t count = owners.count; count > 1; count -= count / 2)
#pragma unroll
        for (uint32_t i = 0; i < walk::each<Form>; i++)
            owner[i] += owners.first[owner[i] + count / 2] <= walk.value(i) ? count / 2 : 0;
}

/* Sets numbers[j] and windows_of[j] to the number and the window of the record for place j. */
template <typename Form>
__global__ void __launch_bounds__(fold_threads, walk::blocks_per_sm<Form>)
    find_records(__grid_constant__ const Form f, typename Form::Word step,
                 __grid_constant__ const Positions positions,
                 __grid_constant__ const Owners<typename Form::Word> all_owners,
                 __grid_constant__ const Windows windows, __grid_constant__ const Tiles tiles,
                 uint32_t *numbers, uint16_t *windows_of, uint64_t *counts)
{
    __shared__ Owners<typename Form::Word> owners;
    __shared__ uint32_t count[most];
    for (uint32_t w = threadIdx.x; w < most; w += fold_threads)
        count[w] = 0;
    if (threadIdx.x < SHUF__RANKS_ONE_SIDED) {
        owners.first[threadIdx.x] = all_owners.first[threadIdx.x];
        owners.window[threadIdx.x] = all_owners.window[threadIdx.x];
        owners.count = all_owners.count;
    }
    __syncthreads();
    Walk<Form> walk(f, step, positions, tuning::walk_run);
    walk.for_turns(tuning::walk_run, [&] {
        uint32_t owner[walk::each<Form>];
        find_owners(owners, walk, owner);
        const auto put = [&](auto is_whole) {
            constexpr bool whole = decltype(is_whole)::value; /* all places exist */
#pragma unroll
            for (uint32_t i = 0; i < walk::each<Form>; i++) {
                const auto number = static_cast<uint32_t>(walk.value(i) - owners.first[owner[i]]);
                const uint32_t window = owners.window[owner[i]] + (number >> windows.bits);
                if (!whole && static_cast<int>(i * lanes) >= walk.left)
                    break;
                numbers[walk.at + i * lanes] = number;
                windows_of[walk.at + i * lanes] = static_cast<uint16_t>(window);
                atomicAdd(&count[window], 1);
            }
        };
        if (walk.left > static_cast<int>(walk::turn<Form> - lanes))
            put(std::true_type{});
        else
            put(std::false_type{});
    });
    __syncthreads();
    const Tile own(tiles, windows, blockIdx.x);
    for (uint32_t w = threadIdx.x; w < windows.count; w += fold_threads)
        counts[own.counts + uint64_t{w} * own.stride] = count[w];
}

/* The begins of the windows of all parts, and their ends, from the sums. */
__global__ void __launch_bounds__(fold_threads)
    write_begins(__grid_constant__ const Windows windows, __grid_constant__ const Tiles tiles,
                 const uint64_t *sums, uint32_t *begins)
{
    const uint32_t part = blockIdx.x;
    const Tile first(tiles, windows, part * tiles.of_part);
    const uint64_t rest = tiles.places - first.part_first;
    uint32_t *const own = begins + uint64_t{part} * (windows.count + 1);
    for (uint32_t w = threadIdx.x; w < windows.count; w += fold_threads)
        own[w] = static_cast<uint32_t>(sums[first.counts + uint64_t{w} * first.stride] -
                                       first.part_first);
    if (threadIdx.x == 0)
        own[windows.count] = static_cast<uint32_t>(rest < tiles.part ? rest : tiles.part);
}

using Scan = cub::BlockScan<uint32_t, sort_threads>;

/* The shared memory of a block. */
struct Sorted {
    uint32_t number[tile]; /* of the records, window by window */
    union { /* for each warp and window: the count, then the next place in the tile */
        uint16_t next[sort_warps][most];
        uint32_t pairs[sort_warps][most / 2]; /* no count passes `tile`, so none overflows */
    };
    uint32_t less[most];      /* the index of a window's run in the part, less `start` */
    uint16_t start[most + 1]; /* of a window's run in the tile */
    typename Scan::TempStorage scan;
};

/* Neighbouring places of a warp, every 32nd for each lane. They are loaded together, because the
 * compiler loads nothing before a store that precedes it. With Whole, all places exist. */
template <bool Whole> struct Batch {
    uint32_t from, here;
    uint32_t window[batch];

    /* Places past the end get the last window, because they come last. */
    __device__ __forceinline__ Batch(const uint16_t *windows_of, uint32_t from, uint32_t here)
        : from(from + lane()), here(here)
    {
#pragma unroll
        for (uint32_t i = 0; i < batch; i++)
            window[i] = is_valid(i) ? windows_of[at(i)] : most - 1;
    }

    __device__ __forceinline__ uint32_t at(uint32_t i) const
    {
        return from + i * lanes;
    }

    __device__ __forceinline__ bool is_valid(uint32_t i) const
    {
        return Whole || at(i) < here;
    }
};

/* The lanes of a warp that have the same window as this one. */
__device__ __forceinline__ uint32_t peers_of(uint32_t window)
{
    uint32_t peers = walk::all_lanes;
#pragma unroll
    for (int bit = 0; bit < window_bits; bit++) {
        const int set = static_cast<int>(window << (31 - bit)) >> 31; /* in all bits */
        peers &= ~(__ballot_sync(walk::all_lanes, set) ^ static_cast<uint32_t>(set));
    }
    return peers;
}

/* Counts the places of each warp and window. */
template <bool Whole>
__device__ __forceinline__ void count_windows(Sorted &shared, const uint16_t *windows_of,
                                              uint32_t here)
{
    const uint32_t warp = threadIdx.x / lanes;
    for (uint32_t k = threadIdx.x; k < sort_warps * most / 2; k += sort_threads)
        shared.pairs[k / (most / 2)][k % (most / 2)] = 0;
    __syncthreads();
#pragma unroll 1
    for (uint32_t from = warp * of_warp; from < (warp + 1) * of_warp; from += batch * lanes) {
        const Batch<Whole> places(windows_of, from, here);
#pragma unroll
        for (uint32_t i = 0; i < batch; i++)
            if (places.is_valid(i))
                atomicAdd(&shared.pairs[warp][places.window[i] / 2],
                          places.window[i] % 2 ? 1u << 16 : 1u);
    }
    __syncthreads();
}

/* Turns the counts into places. A thread has a window. */
__device__ __forceinline__ void start_runs(Sorted &shared, const Windows &windows, const Tile &own,
                                           uint32_t here, const uint64_t *sums)
{
    const uint32_t w = threadIdx.x;
    uint32_t count = 0, start;
#pragma unroll
    for (uint32_t warp = 0; warp < sort_warps; warp++)
        count += shared.next[warp][w];
    Scan(shared.scan).ExclusiveSum(count, start);
    uint32_t next = start;
#pragma unroll
    for (uint32_t warp = 0; warp < sort_warps; warp++) {
        const uint32_t of_this_warp = shared.next[warp][w];
        shared.next[warp][w] = static_cast<uint16_t>(next);
        next += of_this_warp;
    }
    shared.start[w] = static_cast<uint16_t>(start);
    if (w < windows.count)
        shared.less[w] =
            static_cast<uint32_t>(sums[own.counts + uint64_t{w} * own.stride] - own.part_first) -
            start;
    if (w == 0)
        shared.start[most] = static_cast<uint16_t>(here);
    __syncthreads();
}

/* Puts the records of a warp's places in order, and writes the index of each place. */
template <bool Whole>
__device__ __forceinline__ void sort_warp(Sorted &shared, const uint16_t *windows_of, uint32_t here,
                                          uint32_t *indices)
{
    const uint32_t warp = threadIdx.x / lanes, lanes_before = (1u << lane()) - 1;
    uint16_t *const next = shared.next[warp];
#pragma unroll 1
    for (uint32_t from = warp * of_warp; from < (warp + 1) * of_warp; from += batch * lanes) {
        const Batch<Whole> places(windows_of, from, here);
        uint32_t number[batch];
#pragma unroll
        for (uint32_t i = 0; i < batch; i++)
            number[i] = places.is_valid(i) ? indices[places.at(i)] : 0;
#pragma unroll
        for (uint32_t i = 0; i < batch; i++) {
            const uint32_t window = places.window[i], peers = peers_of(window);
            const uint32_t before = __popc(peers & lanes_before), place = next[window] + before;
            __syncwarp();
            if (before == 0)
                next[window] = static_cast<uint16_t>(place + __popc(peers));
            __syncwarp();
            if (places.is_valid(i)) {
                shared.number[place] = number[i];
                indices[places.at(i)] = shared.less[window] + place;
            }
        }
    }
}

/* A block sorts the places of a tile by window, from tile number `first_tile` on. indices[j] has
 * the number of the record for place j, and receives the index of the place in its part. */
template <bool Whole>
__global__ void __launch_bounds__(sort_threads, tuning::plan_sort_blocks_per_sm)
    sort_tiles(__grid_constant__ const Windows windows, __grid_constant__ const Tiles tiles,
               uint32_t first_tile, const uint16_t *windows_of, const uint64_t *sums,
               uint32_t *numbers, uint32_t *indices)
{
    extern __shared__ __align__(16) unsigned char memory[];
    Sorted &shared = *reinterpret_cast<Sorted *>(memory);
    const uint32_t index = first_tile + blockIdx.x;
    const Tile own(tiles, windows, index);
    const uint64_t first = uint64_t{index} * tile;
    const uint32_t here = Whole ? tile : static_cast<uint32_t>(tiles.places - first);
    count_windows<Whole>(shared, windows_of + first, here);
    start_runs(shared, windows, own, here, sums);
    sort_warp<Whole>(shared, windows_of + first, here, indices + first);
    __syncthreads();
    uint32_t *const out = numbers + own.part_first;
#pragma unroll 1
    for (uint32_t w = threadIdx.x / writers; w < windows.count; w += sort_threads / writers) {
        const uint32_t end = shared.start[w + 1], less = shared.less[w];
#pragma unroll 1
        for (uint32_t k = shared.start[w] + threadIdx.x % writers; k < end; k += writers)
            out[less + k] = shared.number[k];
    }
}

/* ---- Launching ---- */

Windows windows_of(const shuf__plan &plan)
{
    const shuf__windows w = shuf__plan_windows(&plan);
    return {static_cast<uint32_t>(w.count), w.bits};
}

Tiles tiles_of(const shuf__plan &plan)
{
    const uint64_t places = shuf__plan_part(&plan, plan.rank, true).count;
    return {places, static_cast<uint32_t>(plan.part), static_cast<uint32_t>(plan.part / tile),
            blocks_for(places, tile)};
}

template <typename Word> Owners<Word> owners_of(const shuf__plan &plan, const Windows &windows)
{
    Owners<Word> owners{};
    uint32_t window = 0;
    for (uint64_t r = 0; r < plan.world; r++) {
        const shuf__range part = shuf__plan_part(&plan, r, false);
        if (part.count)
            owners.count = static_cast<uint32_t>(r + 1);
        owners.first[r] = static_cast<Word>(part.first);
        owners.window[r] = window;
        window += static_cast<uint32_t>(shuf__windows_of(part.count, windows.bits));
    }
    return owners;
}

/* The arrays of the workspace. */
struct Arrays {
    uint16_t *windows_of;
    uint64_t *counts;
    void *temporary;
    uint64_t all;   /* counts */
    uint64_t bytes; /* of all arrays */
};

Arrays lay_out(const shuf__plan &plan, void *memory)
{
    Arrays a{};
    Workspace workspace(memory);
    const Tiles tiles = tiles_of(plan);
    a.all = uint64_t{tiles.all} * windows_of(plan).count;
    a.windows_of = workspace.take<uint16_t>(tiles.places);
    a.counts = workspace.take<uint64_t>(a.all);
    a.temporary = workspace.take<char>(scan_bytes(a.all) + 1);
    a.bytes = workspace.bytes();
    return a;
}

cudaError_t find_async(const shuf__plan &plan, const Arrays &a, const Windows &windows,
                       const Tiles &tiles, uint32_t *numbers, cudaStream_t stream)
{
    const shuf__range out = shuf__plan_part(&plan, plan.rank, true);
    return walk::with_values(plan, [&](const auto &f, auto step) {
        using Form = std::decay_t<decltype(f)>;
        const auto owners = owners_of<typename Form::Word>(plan, windows);
        find_records<<<tiles.all, fold_threads, 0, stream>>>(
            f, step, Positions{out.first, out.count}, owners, windows, tiles, numbers, a.windows_of,
            a.counts);
        return cudaGetLastError();
    });
}

cudaError_t sort_async(const Arrays &a, const Windows &windows, const Tiles &tiles,
                       uint32_t *begins, uint32_t *numbers, uint32_t *indices, cudaStream_t stream)
{
    const auto whole = static_cast<uint32_t>(tiles.places / tile);
    cudaError_t e = cudaSuccess;
    write_begins<<<blocks_for(tiles.all, tiles.of_part), fold_threads, 0, stream>>>(
        windows, tiles, a.counts, begins);
    const auto sort = [&](auto kernel, uint32_t first, uint32_t count) {
        if (e == cudaSuccess)
            e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     sizeof(Sorted));
        if (e == cudaSuccess && count)
            kernel<<<count, sort_threads, sizeof(Sorted), stream>>>(
                windows, tiles, first, a.windows_of, a.counts, numbers, indices);
    };
    sort(sort_tiles<true>, 0, whole);
    sort(sort_tiles<false>, whole, tiles.all - whole);
    return e == cudaSuccess ? cudaGetLastError() : e;
}

} // namespace

uint64_t one_sided_bytes(const shuf__plan &plan)
{
    return lay_out(plan, nullptr).bytes;
}

cudaError_t one_sided_async(const shuf__computation &computation, void *out, cudaStream_t stream,
                            bool *cancelled)
{
    const shuf__plan &plan = computation.request.plan;
    const Windows windows = windows_of(plan);
    const Tiles tiles = tiles_of(plan);
    const Arrays a = lay_out(plan, computation.workspace->memory);
    auto *const begins = static_cast<uint32_t *>(out);
    uint32_t *const numbers = begins + shuf__plan_parts(&plan) * (windows.count + 1);
    uint32_t *const indices = numbers + tiles.places;
    if (computation.workspace->bytes < a.bytes)
        return cudaErrorInvalidValue;
    if (tiles.places == 0)
        return cudaMemsetAsync(begins, 0, (windows.count + 1) * sizeof *begins, stream);
    if (is_cancelled(computation, cancelled))
        return cudaSuccess;
    cudaError_t e = find_async(plan, a, windows, tiles, indices, stream);
    if (e == cudaSuccess)
        e = sum_before(a.counts, a.all, a.temporary, scan_bytes(a.all), stream);
    if (e != cudaSuccess || is_cancelled(computation, cancelled))
        return e;
    return sort_async(a, windows, tiles, begins, numbers, indices, stream);
}

} // namespace shuf
