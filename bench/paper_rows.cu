/* SPDX-License-Identifier: MIT
 *
 * See paper_rows.cuh. CUB does the scans in memory, the selection and the sort.
 */
#include "paper_rows.cuh"

#include "device.cuh"
#include "paper.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/execution_policy.h>
#include <thrust/iterator/transform_output_iterator.h>
#include <thrust/random.h>
#include <thrust/shuffle.h>

#include <memory>

namespace bench
{

namespace
{

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

} // namespace

Shuffle bijective0(const Arrays &arrays)
{
    const uint64_t domain = domain_of(arrays.n);
    auto values = memory<uint32_t>(domain), kept = memory<uint32_t>(domain),
         places = memory<uint32_t>(domain);
    auto sum = scan(kept.get(), places.get(), domain);
    return [=](uint64_t epoch) mutable {
        check(evaluate_async(arrays.n, epoch, values.get(), kept.get()), "evaluate");
        sum();
        check(compact_async(arrays, values.get(), kept.get(), places.get()), "compact");
    };
}

Shuffle bijective1(const Arrays &arrays)
{
    const uint64_t tiles = tiles_of(arrays.n);
    auto counts = memory<uint32_t>(tiles), places = memory<uint32_t>(tiles);
    auto sum = scan(counts.get(), places.get(), tiles);
    return [=](uint64_t epoch) mutable {
        check(count_async(arrays.n, epoch, counts.get()), "count");
        sum();
        check(place_async(arrays, epoch, places.get()), "place");
    };
}

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

Shuffle thrust_shuffle(const Arrays &arrays)
{
    return [=](uint64_t epoch) {
        thrust::default_random_engine engine(static_cast<unsigned>(PAPER_SEED + epoch));
        thrust::shuffle_copy(thrust::device, arrays.in, arrays.in + arrays.n, arrays.out, engine);
    };
}

} // namespace bench
