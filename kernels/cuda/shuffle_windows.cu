/* SPDX-License-Identifier: MIT
 *
 * Shuffles of arrays that are larger than the L2 cache, in three passes that read and write memory
 * in order. A direct gather would load each record from another page of memory. The input is
 * divided into windows that fit the L2. Each window has a list of indices. A tile of output places
 * adds a run of indices to each list. The order of the runs does not matter. The passes:
 *
 *     partition  sorts the indices of a tile by window, and appends each run to the list of its
 *                window; each place keeps the number of its index in the sorted tile
 *     gather     loads the records in the order of the lists, so it uses one window at a time
 *     unpermute  takes the records of a tile from their runs, and sorts them in shared memory
 *
 * A list has as many indices as its window has records. So the place of each list is known.
 */
#include "shuffle.cuh"

#include "fold_forms.cuh"
#include "scratch.cuh"
#include "simd/primefold.h"
#include "tuning.cuh"

#include <cub/block/block_scan.cuh>
#include <cuda_pipeline.h>

namespace shuf
{

namespace
{

using tuning::unpermute_threads, tuning::gather_threads, tuning::window_threads;
constexpr uint32_t items = tuning::window_items; /* places of a thread in partition */
constexpr uint32_t tile = window_threads * items;
constexpr uint32_t groups = items / group;
constexpr uint32_t stride = window_threads * group; /* from one group of a thread to the next */
constexpr uint32_t together = 2;                    /* groups evaluated together */
constexpr uint32_t most = tuning::window_most;
constexpr uint32_t share = most / window_threads; /* windows for which a thread works */
static_assert(most % window_threads == 0 && items % (group * together) == 0, "dealt out evenly");
static_assert(tile <= UINT16_MAX, "for Windows::start and Windows::place");

struct Windows {
    uint32_t n, tiles, count;
    int bits;        /* a window has 2^bits records */
    uint32_t *list;  /* all lists; a list begins at the offset of its window */
    uint32_t *end;   /* the end of each list so far */
    uint32_t *run;   /* for each tile and window, the start of the run in the list */
    uint16_t *start; /* for each tile and window, the start of the run in the sorted tile */
    uint16_t *place; /* for each output place, the number of its index in the sorted tile */
    void *gathered;  /* the records in the order of the lists */
    uint64_t bytes;  /* of all these arrays */
};

__global__ void empty_lists(__grid_constant__ const Windows w)
{
    const uint32_t window = blockIdx.x * blockDim.x + threadIdx.x;
    if (window < w.count)
        w.end[window] = window << w.bits;
}

constexpr uint32_t side_by_side = 32 * together * group; /* indices that a warp computes together */
static_assert(2 * side_by_side <= 32 * items, "they fit the warp's part of the sorted tile");

/* Repairs the indices whose bit is set in `again`. They belong to the places of a warp, from
 * `first` on. A list divides them evenly among the threads. */
template <typename Form>
__device__ __forceinline__ void repair_indices(const Form &f, uint32_t first, uint32_t again,
                                               uint32_t *right, uint32_t (*x)[group])
{
    uint32_t *const list = right + side_by_side;
    const uint32_t lane = threadIdx.x % 32;
    const WarpPart part(__popc(again));
    uint32_t k = part.begin;
#pragma unroll 1
    for (uint32_t left = again; left != 0; left &= left - 1)
        list[k++] = (__ffs(static_cast<int>(left)) - 1) * 32 + lane;
    __syncwarp();
#pragma unroll 1
    for (uint32_t i = lane; i < part.all; i += 32) {
        const uint32_t bit = list[i] / 32, of = list[i] % 32;
        const uint32_t position = first + (of - lane) * group + bit / group * stride + bit % group;
        /* Cycle walking from a position at n or beyond might never end. */
        right[list[i]] = position < f.n ? cycle_walk(f, f.row, position) : 0;
    }
    __syncwarp();
#pragma unroll
    for (uint32_t i = 0; i < together * group; i++)
        if (again >> i & 1)
            x[i / group][i % group] = right[32 * i + lane];
    __syncwarp();
}

/* Computes the indices of some groups of this thread's places, from place `first` on. The warp has
 * `scratch` for itself. */
template <typename Form>
__device__ __forceinline__ void indices(const Form &f, const Steps<uint32_t> &steps, uint32_t first,
                                        uint32_t *scratch, uint32_t (&x)[together][group])
{
    uint32_t start = f.start(f.row, first);
#pragma unroll
    for (uint32_t g = 0; g < together; g++) {
        spread(f, start, steps.one, x[g]);
        start = f.add(start, steps.leap);
    }
    uint32_t met = 0;
    f.evaluate_unchecked(f.row, x, met);
    bool all = true;
#pragma unroll
    for (uint32_t g = 0; g < together; g++)
        all = all && finished(f, met, x[g]);
    if (__all_sync(0xffffffff, all))
        return;
    uint32_t again = 0; /* a bit for each index that must be computed again */
#pragma unroll
    for (uint32_t g = 0; g < together; g++)
        again |= unfinished(f, met, x[g]) << g * group;
    repair_indices(f, first, again, scratch, x);
}

/* A rank, of 16 bits, counts the earlier indices of the tile in the same window. */
struct Ranks {
    uint32_t pair[group / 2];

    /* Called in ascending order of c. Two ranks share a register. The code waits for the two atomic
     * operations of each pair, because there are too few registers to keep all of them pending. */
    __device__ __forceinline__ void set(uint32_t c, uint32_t rank)
    {
        pair[c / 2] = c % 2 ? pair[c / 2] | rank << 16 : rank;
        if (c % 2)
            asm volatile("" : "+r"(pair[c / 2]));
    }

    __device__ __forceinline__ uint32_t get(uint32_t c) const
    {
        return c % 2 ? pair[c / 2] >> 16 : pair[c / 2] & 0xffff;
    }
};

/* Reserves room in the lists for the runs of a tile. On entry, count[w] is the number of the tile's
 * indices in window w. On return, count[w] is the start of run w in the sorted tile, and less[w] is
 * the start of run w in its list, minus count[w]. */
__device__ __forceinline__ void reserve(const Windows &w, uint32_t tile_number, uint32_t *count,
                                        uint32_t *less)
{
    using Scan = cub::BlockScan<uint32_t, window_threads>;
    __shared__ typename Scan::TempStorage storage;
    uint32_t mine[share], start[share];
#pragma unroll
    for (uint32_t k = 0; k < share; k++)
        mine[k] = count[threadIdx.x * share + k];
    Scan(storage).ExclusiveSum(mine, start);
#pragma unroll
    for (uint32_t k = 0; k < share; k++) {
        const uint32_t window = threadIdx.x * share + k;
        const uint32_t run = mine[k] ? atomicAdd(w.end + window, mine[k]) : 0;
        if (window < w.count) {
            const uint64_t at = uint64_t{tile_number} * w.count + window;
            w.run[at] = run;
            w.start[at] = static_cast<uint16_t>(start[k]);
        }
        count[window] = start[k];
        less[window] = run - start[k];
    }
}

/* A block partitions one tile. With Whole, all places of the tile are in the output. */
template <bool Whole, typename Form>
__global__ void __launch_bounds__(window_threads, tuning::window_blocks_per_sm)
    partition(__grid_constant__ const Form f, __grid_constant__ const Steps<uint32_t> steps,
              __grid_constant__ const Windows w, uint32_t first_tile)
{
    __shared__ uint32_t sorted[tile], count[most], less[most];
    const uint32_t tile_number = first_tile + blockIdx.x, begin = tile_number * tile;
    const uint32_t here = Whole ? tile : w.n - begin, mine = threadIdx.x * group;
    uint32_t x[groups / together][together][group];
    Ranks rank[groups];
    for (uint32_t window = threadIdx.x; window < most; window += window_threads)
        count[window] = 0;
#pragma unroll
    for (uint32_t g = 0; g < groups; g += together)
        indices(f, steps, begin + mine + g * stride, sorted + threadIdx.x / 32 * (32 * items),
                x[g / together]);
    __syncthreads();
#pragma unroll
    for (uint32_t g = 0; g < groups; g++)
#pragma unroll
        for (uint32_t c = 0; c < group; c++)
            if (Whole || mine + g * stride + c < here)
                rank[g].set(c, atomicAdd(&count[x[g / together][g % together][c] >> w.bits], 1));
    __syncthreads();
    reserve(w, tile_number, count, less);
    __syncthreads();
#pragma unroll
    for (uint32_t g = 0; g < groups; g++) {
        uint16_t place[group] = {};
#pragma unroll
        for (uint32_t c = 0; c < group; c++)
            if (Whole || mine + g * stride + c < here) {
                const uint32_t index = x[g / together][g % together][c];
                const uint32_t at = count[index >> w.bits] + rank[g].get(c);
                sorted[at] = index;
                place[c] = static_cast<uint16_t>(at);
            }
        if (Whole || mine + g * stride < here) /* the array always has room for a whole group */
            *reinterpret_cast<ushort4 *>(w.place + begin + mine + g * stride) =
                make_ushort4(place[0], place[1], place[2], place[3]);
    }
    __syncthreads();
#pragma unroll 4
    for (uint32_t k = threadIdx.x; k < here; k += window_threads) {
        const uint32_t index = sorted[k];
        w.list[less[index >> w.bits] + k] = index;
    }
}

/* Neighbouring records that one instruction stores. */
template <typename Record, uint32_t Records>
struct alignas(Records * sizeof(Record) < 16 ? Records * sizeof(Record) : 16) Pack {
    Record value[Records];
};

template <typename Packed>
using WordOf = std::conditional_t<sizeof(Packed) == 4, uint32_t,
                                  std::conditional_t<sizeof(Packed) == 8, uint2, uint4>>;

/* A load for data that is not read again soon: the caches evict it first. */
template <typename Packed> __device__ __forceinline__ Packed load_past(const Packed *from)
{
    const auto word = __ldcs(reinterpret_cast<const WordOf<Packed> *>(from));
    return reinterpret_cast<const Packed &>(word);
}

template <typename Packed>
__device__ __forceinline__ void store_past(Packed *to, const Packed &pack)
{
    __stcs(reinterpret_cast<WordOf<Packed> *>(to), reinterpret_cast<const WordOf<Packed> &>(pack));
}

/* A load that only the L2 caches, of a whole line: its other records are needed soon. */
template <typename Record> __device__ __forceinline__ Record load_of_window(const Record *from)
{
    if constexpr (sizeof(Record) == 8) {
        uint64_t word;
        asm volatile("ld.global.cg.L2::128B.u64 %0, [%1];" : "=l"(word) : "l"(from));
        return word;
    } else {
        uint32_t word;
        if constexpr (sizeof(Record) == 4)
            asm volatile("ld.global.cg.L2::128B.u32 %0, [%1];" : "=r"(word) : "l"(from));
        else if constexpr (sizeof(Record) == 2)
            asm volatile("ld.global.cg.L2::128B.u16 %0, [%1];" : "=r"(word) : "l"(from));
        else
            asm volatile("ld.global.cg.L2::128B.u8 %0, [%1];" : "=r"(word) : "l"(from));
        return static_cast<Record>(word);
    }
}

/* Gathers the records in the order of the lists. The stores of a warp have no gaps. */
template <typename Record>
__global__ void __launch_bounds__(gather_threads)
    gather(__grid_constant__ const Windows w, const Record *in)
{
    constexpr uint32_t packed = sizeof(Record) < 8 ? 4 : 2, each = tuning::gather_items / packed;
    constexpr uint32_t leap = gather_threads * packed;
    using In = Pack<uint32_t, packed>;
    using Out = Pack<Record, packed>;
    const uint32_t first = blockIdx.x * (leap * each) + threadIdx.x * packed;
    In at[each];
    Out record[each];
#pragma unroll
    for (uint32_t g = 0; g < each; g++)
        if (first + g * leap < w.n) /* the array always has room for a whole pack */
            at[g] = load_past(reinterpret_cast<const In *>(w.list + first + g * leap));
#pragma unroll
    for (uint32_t g = 0; g < each; g++)
#pragma unroll
        for (uint32_t c = 0; c < packed; c++)
            if (first + g * leap + c < w.n)
                record[g].value[c] = load_of_window(in + at[g].value[c]);
#pragma unroll
    for (uint32_t g = 0; g < each; g++)
        if (first + g * leap < w.n)
            store_past(
                reinterpret_cast<Out *>(static_cast<Record *>(w.gathered) + first + g * leap),
                record[g]);
}

/* A block puts the records of one tile in place. */
template <typename Record>
__global__ void __launch_bounds__(unpermute_threads)
    unpermute(__grid_constant__ const Windows w, Record *out)
{
    extern __shared__ __align__(16) unsigned char shared[];
    __shared__ uint32_t less[most];
    __shared__ uint16_t start[most + 1],
        window_of[tile / 32]; /* the window of every 32nd record of the sorted tile */
    Record *const sorted = reinterpret_cast<Record *>(shared);
    const auto *const gathered = static_cast<const Record *>(w.gathered);
    const uint32_t begin = blockIdx.x * tile, here = min(w.n - begin, tile);
    const uint64_t row = uint64_t{blockIdx.x} * w.count;
    for (uint32_t window = threadIdx.x; window < w.count; window += unpermute_threads) {
        const uint32_t from = w.start[row + window];
        const uint32_t to = window + 1 < w.count ? w.start[row + window + 1] : here;
        start[window] = static_cast<uint16_t>(from);
        less[window] = w.run[row + window] - from;
        for (uint32_t c = (from + 31) / 32; c < (to + 31) / 32; c++)
            window_of[c] = static_cast<uint16_t>(window);
    }
    if (threadIdx.x == 0)
        start[w.count] = static_cast<uint16_t>(here);
    __syncthreads();
#pragma unroll 4
    for (uint32_t k = threadIdx.x; k < here; k += unpermute_threads) {
        uint32_t window = window_of[k / 32];
        while (start[window + 1] <= k)
            window++;
        if constexpr (sizeof(Record) >= 4)
            __pipeline_memcpy_async(sorted + k, gathered + less[window] + k, sizeof(Record));
        else
            sorted[k] = gathered[less[window] + k];
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    constexpr uint32_t packed = 16 / sizeof(Record);
    using Out = Pack<Record, packed>;
    using Places = Pack<uint16_t, packed>;
    const auto *const places = reinterpret_cast<const Places *>(w.place + begin);
    auto *const to = reinterpret_cast<Out *>(out + begin);
    const uint32_t packs = here / packed;
#pragma unroll 4
    for (uint32_t k = threadIdx.x; k < packs; k += unpermute_threads) {
        const Places from = places[k];
        Out pack;
#pragma unroll
        for (uint32_t c = 0; c < packed; c++)
            pack.value[c] = sorted[from.value[c]];
        store_past(to + k, pack);
    }
    const uint32_t k = packs * packed + threadIdx.x;
    if (k < here)
        out[begin + k] = sorted[w.place[begin + k]];
}

/* ---- Launching ---- */

/* Divides the memory among the arrays. With NULL it computes only `bytes`. */
Windows lay_out(const shuf__shuffle &s, void *memory)
{
    Windows w{};
    Workspace workspace(memory);
    w.n = static_cast<uint32_t>(s.permutation.n);
    w.tiles = (w.n + tile - 1) / tile;
    while ((s.record << w.bits) < tuning::window_bytes || (w.n - 1) >> w.bits >= most)
        w.bits++;
    w.count = ((w.n - 1) >> w.bits) + 1;
    const uint64_t runs = uint64_t{w.tiles} * w.count, whole = uint64_t{w.n} + group;
    w.list = workspace.take<uint32_t>(whole);
    w.end = workspace.take<uint32_t>(w.count);
    w.run = workspace.take<uint32_t>(runs);
    w.start = workspace.take<uint16_t>(runs);
    w.place = workspace.take<uint16_t>(whole);
    w.gathered = workspace.take<char>(whole * s.record);
    w.bytes = workspace.bytes();
    return w;
}

template <typename Kernel> cudaError_t allow_shared(Kernel kernel, uint32_t bytes)
{
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(bytes));
}

template <typename Of>
cudaError_t partition_all(Of of, const shuf__shuffle &s, const shuf_primefold_shape &shape,
                          const Windows &w, cudaStream_t stream)
{
    using Form = typename Of::Form;
    const Form f = of.make(s.permutation, shape);
    const auto steps = make_steps(f, shape.p, 1, window_threads);
    const uint32_t whole = w.n / tile;
    empty_lists<<<blocks_for(w.count, 256), 256, 0, stream>>>(w);
    if (whole)
        partition<true><<<whole, window_threads, 0, stream>>>(f, steps, w, 0);
    if (whole < w.tiles)
        partition<false><<<1, window_threads, 0, stream>>>(f, steps, w, whole);
    return cudaGetLastError();
}

template <typename Record>
cudaError_t gather_and_unpermute(const Windows &w, const void *in, void *out, cudaStream_t stream)
{
    constexpr uint32_t shared = tile * sizeof(Record);
    const cudaError_t e = allow_shared(unpermute<Record>, shared);
    if (e != cudaSuccess)
        return e;
    gather<<<blocks_for(w.n, uint64_t{gather_threads} * tuning::gather_items), gather_threads, 0,
             stream>>>(w, static_cast<const Record *>(in));
    unpermute<<<w.tiles, unpermute_threads, shared, stream>>>(w, static_cast<Record *>(out));
    return cudaGetLastError();
}

} // namespace

bool windows_suit(const shuf__shuffle &s)
{
    if (s.permutation.algorithm != SHUF_ALGORITHM_PRIMEFOLD || s.record > 8 ||
        (s.record & (s.record - 1)) != 0 || s.permutation.n >> 31 != 0 ||
        s.permutation.n * s.record < tuning::windows_from)
        return false;
    return shuf__primefold_shape(s.permutation.n).p >> 31 == 0;
}

uint64_t windows_bytes(const shuf__shuffle &s)
{
    return lay_out(s, nullptr).bytes;
}

/* windows_suit() excludes the sizes of other forms. */
template <typename Form> constexpr bool suits = false;
template <Direction direction>
constexpr bool suits<Fold32<SHUF_PRIMEFOLD_MAPS_LARGE_62, direction>> = true;

cudaError_t windows_async(const shuf__shuffle &s, const void *in, void *out, void *temporary,
                          cudaStream_t stream)
{
    const Windows w = lay_out(s, temporary);
    const shuf_primefold_shape shape = shuf__primefold_shape(s.permutation.n);
    const auto use = [&](auto of) {
        if constexpr (suits<typename decltype(of)::Form>)
            return partition_all(of, s, shape, w, stream);
        else
            return cudaErrorInvalidValue;
    };
    const cudaError_t e = s.inverse ? with_form<Direction::inverse, true>(shape, use)
                                    : with_form<Direction::forward, true>(shape, use);
    if (e != cudaSuccess)
        return e;
    switch (s.record) {
    case 1:
        return gather_and_unpermute<uint8_t>(w, in, out, stream);
    case 2:
        return gather_and_unpermute<uint16_t>(w, in, out, stream);
    case 4:
        return gather_and_unpermute<uint32_t>(w, in, out, stream);
    default:
        return gather_and_unpermute<uint64_t>(w, in, out, stream);
    }
}

} // namespace shuf
