/* SPDX-License-Identifier: MIT
 *
 * Measures the paper's figures for GPUs (paper.h) and the shuffles of shufd in one run. The rows:
 *
 * - a gather by random indices: no method that gathers can be faster;
 * - the paper's three bijective shuffles; the third one is the backend's own;
 * - other methods that the paper names, and thrust::shuffle_copy;
 * - the backend's default.
 *
 * Each row is the median device time of five trials. Before it starts the clock, the program checks
 * that every item occurs once in each result. If docs/spec.md defines the order, it also checks the
 * order.
 */
#include "backend.h"
#include "device.cuh"
#include "paper.h"
#include "paper_kernels.cuh"
#include "shuf/primefold.h"
#include "timed.h"

#include <cstring>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <functional>
#include <memory>
#include <thrust/execution_policy.h>
#include <thrust/iterator/transform_output_iterator.h>
#include <thrust/random.h>
#include <thrust/shuffle.h>

namespace
{

using bench::Arrays;
using bench::check;
using bench::die;

/* ---- Rows without the backend ---- */

/* Each of these functions allocates scratch memory for its arrays. The Shuffle that it returns
 * queues the work of one epoch on the default stream. CUB does the scans in memory, the selection
 * and the sort. */
using Shuffle = std::function<void(uint64_t epoch)>;

constexpr int threads = 256;
constexpr uint32_t free_place = ~uint32_t{0};

unsigned blocks_for(uint64_t work)
{
    return static_cast<unsigned>((work + threads - 1) / threads);
}

/* Device memory. The destructor of the last copy frees it. */
template <typename T = char> std::shared_ptr<T> memory(uint64_t count)
{
    void *at = nullptr;
    check(cudaMalloc(&at, (count ? count : 1) * sizeof(T)), "memory");
    return std::shared_ptr<T>(static_cast<T *>(at), cudaFree);
}

/* Calls a function of CUB twice: the first call returns the size of the temporary memory. */
template <typename Call> auto with_memory(Call call)
{
    size_t bytes = 0;
    check(call(nullptr, bytes), "CUB");
    auto room = memory(bytes);
    return [=]() mutable { check(call(room.get(), bytes), "CUB"); };
}

auto scan(uint32_t *counts, uint32_t *places, uint64_t count)
{
    return with_memory([=](void *room, size_t &bytes) {
        return cub::DeviceScan::ExclusiveSum(room, bytes, counts, places, count);
    });
}

/* The mixing function of SplitMix64: a bijection of 64 bits. */
__device__ __forceinline__ uint64_t mixed(uint64_t z)
{
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

__device__ __forceinline__ uint64_t draw(uint64_t epoch, uint64_t i)
{
    return mixed((epoch << 40) + (i + 1) * 0x9E3779B97F4A7C15);
}

__global__ void __launch_bounds__(threads)
    throw_darts(uint32_t *table, uint64_t places, uint32_t n, uint64_t epoch)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t random = draw(epoch, i);
    if (i >= n)
        return;
    while (atomicCAS(&table[__umul64hi(random, places)], free_place, i) != free_place)
        random = mixed(random + 0x9E3779B97F4A7C15);
}

__global__ void __launch_bounds__(threads) make_keys(uint64_t *keys, uint32_t n, uint64_t epoch)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        keys[i] = draw(epoch, i);
}

struct IsTaken {
    __device__ bool operator()(uint32_t index) const
    {
        return index != free_place;
    }
};

struct ItemAt {
    const uint64_t *in;
    __device__ uint64_t operator()(uint32_t index) const
    {
        return in[index];
    }
};

/* VarPhilox, in separate passes. */
Shuffle bijective0(const Arrays &arrays)
{
    const uint64_t domain = bench::domain_of(arrays.n);
    auto values = memory<uint32_t>(domain), kept = memory<uint32_t>(domain),
         places = memory<uint32_t>(domain);
    auto sum = scan(kept.get(), places.get(), domain);
    return [=](uint64_t epoch) mutable {
        check(bench::evaluate_async(arrays.n, epoch, values.get(), kept.get()), "evaluate");
        sum();
        check(bench::compact_async(arrays, values.get(), kept.get(), places.get()), "compact");
    };
}

/* VarPhilox, by a two-pass scan. */
Shuffle bijective1(const Arrays &arrays)
{
    const uint64_t tiles = bench::tiles_of(arrays.n);
    auto counts = memory<uint32_t>(tiles), places = memory<uint32_t>(tiles);
    auto sum = scan(counts.get(), places.get(), tiles);
    return [=](uint64_t epoch) mutable {
        check(bench::count_async(arrays.n, epoch, counts.get()), "count");
        sum();
        check(bench::place_async(arrays, epoch, places.get()), "place");
    };
}

/* Writes the index of each item to a random free place of a table with 2n places. The permutation
 * is the order of the indices in the table. It differs in each run. */
Shuffle dart_throwing(const Arrays &arrays)
{
    const uint64_t places = 2 * arrays.n;
    auto table = memory<uint32_t>(places);
    auto taken = memory<uint64_t>(1);
    const auto out = thrust::make_transform_output_iterator(arrays.out, ItemAt{arrays.in});
    auto select = with_memory([=](void *room, size_t &bytes) {
        return cub::DeviceSelect::If(room, bytes, table.get(), out, taken.get(), places, IsTaken{});
    });
    return [=](uint64_t epoch) mutable {
        check(cudaMemsetAsync(table.get(), 0xff, places * sizeof(uint32_t)), "table");
        throw_darts<<<blocks_for(arrays.n), threads>>>(table.get(), places,
                                                       static_cast<uint32_t>(arrays.n), epoch);
        select();
    };
}

/* Sorts the items by 64 random bits. */
Shuffle sort_shuffle(const Arrays &arrays)
{
    auto keys = memory<uint64_t>(arrays.n), sorted = memory<uint64_t>(arrays.n);
    auto sort = with_memory([=](void *room, size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(room, bytes, keys.get(), sorted.get(), arrays.in,
                                               arrays.out, arrays.n);
    });
    return [=](uint64_t epoch) mutable {
        make_keys<<<blocks_for(arrays.n), threads>>>(keys.get(), static_cast<uint32_t>(arrays.n),
                                                     epoch);
        sort();
    };
}

/* thrust::shuffle, unchanged. */
Shuffle thrust_shuffle(const Arrays &arrays)
{
    return [=](uint64_t epoch) {
        thrust::default_random_engine engine(static_cast<unsigned>(PAPER_SEED + epoch));
        thrust::shuffle_copy(thrust::device, arrays.in, arrays.in + arrays.n, arrays.out, engine);
    };
}

/* ---- The program ---- */

constexpr uint64_t unit = SHUF__BLOCK_UNIT;

/* Which permutation the result must be, if it is defined. */
enum class Defined { no, by_philox24, by_lcg };

struct Bench {
    paper *out;
    shuf__backend *backend;
    shuf__block in, shuffled;
    cudaEvent_t start, stop;
    uint32_t *seen;
    unsigned long long *wrong;

    shuf__block alloc(uint64_t bytes)
    {
        shuf__block block;
        shuf__error error;
        if (backend->ops->alloc(backend, backend->ops->own, (bytes + unit - 1) / unit * unit,
                                &block, &error))
            die("alloc", error.text);
        return block;
    }

    Arrays arrays(uint64_t n) const
    {
        return {static_cast<const uint64_t *>(in.memory), static_cast<uint64_t *>(shuffled.memory),
                n};
    }

    void begin()
    {
        const uint64_t most = (uint64_t{1} << out->last) + 1;
        in = alloc(8 * most);
        shuffled = alloc(8 * most);
        check(cudaEventCreate(&start), "event");
        check(cudaEventCreate(&stop), "event");
        check(cudaMalloc(&seen, most / 8 + 4), "memory");
        check(cudaMalloc(&wrong, sizeof *wrong), "memory");
        check(bench::fill_async(static_cast<uint64_t *>(in.memory), most), "fill");
        check(cudaDeviceSynchronize(), "fill");
    }

    void end()
    {
        check(cudaFree(wrong), "memory");
        check(cudaFree(seen), "memory");
        backend->ops->free(backend, &shuffled);
        backend->ops->free(backend, &in);
        backend->ops->close(backend);
    }

    /* Clears the output: the check must not see the output of the row before. */
    void forget(uint64_t n)
    {
        check(cudaMemset(shuffled.memory, 0, 8 * n), "memset");
    }

    bool is_right(const char *row, uint64_t n, Defined defined, uint64_t epoch)
    {
        unsigned long long found;
        check(cudaMemset(wrong, 0, sizeof *wrong), "memset");
        check(cudaMemset(seen, 0, n / 8 + 4), "memset");
        check(bench::check_all_async(arrays(n), seen, wrong), row);
        if (defined != Defined::no)
            check(bench::check_order_async(arrays(n),
                                           defined == Defined::by_lcg ? SHUF_ALGORITHM_LCG
                                                                      : SHUF_ALGORITHM_PHILOX24,
                                           epoch, wrong),
                  row);
        check(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost), row);
        if (found)
            paper_wrong(out, row, n, "wrong output");
        return found == 0;
    }

    void time(const char *row, uint64_t n, Defined defined, const Shuffle &shuffle)
    {
        double ns[PAPER_TRIALS];
        forget(n);
        shuffle(0);
        check(cudaGetLastError(), row);
        if (!is_right(row, n, defined, 0))
            return;
        for (uint64_t trial = 0; trial < PAPER_TRIALS; trial++) {
            float ms;
            check(cudaEventRecord(start), row);
            shuffle(trial + 1);
            check(cudaGetLastError(), row);
            check(cudaEventRecord(stop), row);
            check(cudaEventSynchronize(stop), row);
            check(cudaEventElapsedTime(&ms, start, stop), row);
            ns[trial] = static_cast<double>(ms) * 1e6;
        }
        paper_add(out, row, n, ns, PAPER_TRIALS);
    }

    /* Measures the row if the options select it. make() allocates memory, so it runs only then. */
    template <typename Make> void row(const char *name, uint64_t n, Defined defined, Make make)
    {
        if (paper_wants(out, name))
            time(name, n, defined, make());
    }

    void gather(uint64_t n)
    {
        const shuf__computation computation =
            timed_permutation(SHUF_ALGORITHM_PHILOX24, n, PAPER_SEED, 0);
        shuf__block index = alloc(4 * n);
        shuf__error error;
        uint64_t took;
        if (shuf__backend_compute(backend, &computation, &index, &took, &error))
            die("indices", error.text);
        time("gather", n, Defined::by_philox24, [&](uint64_t) {
            check(bench::gather_async(arrays(n), static_cast<uint32_t *>(index.memory)), "gather");
        });
        backend->ops->free(backend, &index);
    }

    bool ours(const char *row, shuf__computation computation, uint64_t epoch, double *ns)
    {
        shuf__error error;
        uint64_t took;
        computation.request.shuffle.permutation.epoch = epoch;
        if (shuf__backend_compute(backend, &computation, &shuffled, &took, &error)) {
            paper_skip(out, row, computation.request.shuffle.permutation.n, error.text);
            return false;
        }
        *ns = static_cast<double>(took);
        return true;
    }

    /* Compares items at 300 places with the inline code. */
    bool is_primefold(const char *row, uint64_t n)
    {
        const shuf_primefold f = shuf_primefold_make(n, PAPER_SEED, 0);
        const auto *from = static_cast<const uint64_t *>(shuffled.memory);
        for (uint64_t k = 0; k < 300; k++) {
            const uint64_t at = k < 100 ? k * (n - 1) / 99 : paper_item(k) % n;
            uint64_t found;
            check(cudaMemcpy(&found, from + at, sizeof found, cudaMemcpyDeviceToHost), row);
            if (found != paper_item(shuf_primefold_forward(&f, at))) {
                paper_wrong(out, row, n, "an item differs from the inline code");
                return false;
            }
        }
        return true;
    }

    /* The backend's shuffle. The backend measures its device time, also by events. */
    void backend_row(const char *row, uint64_t n, shuf_algorithm algorithm)
    {
        const Defined defined = algorithm == SHUF_ALGORITHM_PHILOX24 ? Defined::by_philox24
                                : algorithm == SHUF_ALGORITHM_LCG    ? Defined::by_lcg
                                                                     : Defined::no;
        double ns[PAPER_TRIALS];
        shuf__computation computation = timed_shuffle(algorithm, n, PAPER_SEED, 0, 8);
        if (!paper_wants(out, row))
            return;
        computation.input = &in;
        const bench::Workspace workspace(backend, &computation, shuffled.kind);
        forget(n);
        check(cudaDeviceSynchronize(), row);
        if (!ours(row, computation, 0, ns) || !is_right(row, n, defined, 0) ||
            (algorithm == SHUF_ALGORITHM_PRIMEFOLD && !is_primefold(row, n)))
            return;
        for (uint64_t trial = 0; trial < PAPER_TRIALS; trial++)
            if (!ours(row, computation, trial + 1, &ns[trial]))
                return;
        paper_add(out, row, n, ns, PAPER_TRIALS);
    }

    /* Rows have 2^w + 1 items, the worst case of an algorithm for powers of two. Rows whose names
     * end in -whole have 2^w items, and drop no value. */
    void size(unsigned w)
    {
        const uint64_t n = (uint64_t{1} << w) + 1, whole = n - 1;
        const Arrays a = arrays(n);
        constexpr auto philox24 = Defined::by_philox24;
        if (paper_wants(out, "gather"))
            gather(n);
        row("bijective0", n, philox24, [&] { return bijective0(a); });
        row("bijective1", n, philox24, [&] { return bijective1(a); });
        backend_row("bijective2", n, SHUF_ALGORITHM_PHILOX24);
        backend_row("bijective2-whole", whole, SHUF_ALGORITHM_PHILOX24);
        backend_row("lcg", n, SHUF_ALGORITHM_LCG);
        backend_row("lcg-whole", whole, SHUF_ALGORITHM_LCG);
        row("darts", n, Defined::no, [&] { return dart_throwing(a); });
        row("sort", n, Defined::no, [&] { return sort_shuffle(a); });
        row("thrust", n, Defined::no, [&] { return thrust_shuffle(a); });
        backend_row("primefold", n, SHUF_ALGORITHM_PRIMEFOLD);
    }
};

} // namespace

int main(int argc, char **argv)
{
    Bench b{};
    shuf__error error;
    b.out = paper_begin("shuffles of u64 as in the paper, on a GPU", argc, argv);
    bench::say_device(b.out->report);
    if (shuf__backend_open("cuda", 0, &b.backend, &error))
        die("cuda", error.text);
    paper_device(b.out, b.backend->device);
    b.begin();
    for (unsigned w = b.out->first; w <= b.out->last; w++)
        b.size(w);
    b.end();
    return paper_end(b.out);
}
