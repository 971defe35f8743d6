/* SPDX-License-Identifier: MIT
 *
 * Weighted samples without replacement (docs/spec.md, "Weighted samples") on the GPU: a key for
 * each weight, and CUB's sort of all of them.
 */
#include "cub_call.cuh"
#include "philox.cuh"
#include "shuf/box_muller.h"
#include "shuf/uniform.h"
#include "weights.cuh"

#include <cub/device/device_radix_sort.cuh>

namespace shuf
{

namespace
{

constexpr int threads = 256;

struct Keys {
    GoodWeights weights;
    Words<SHUF_UNIFORM_ROUNDS> words;
    shuf_box_muller_terms terms;
    uint64_t *key; /* the bits of a positive number, which have its order */
    uint32_t *index;
};

__global__ void __launch_bounds__(threads) make_keys(__grid_constant__ const Keys k)
{
    const uint64_t j = uint64_t{blockIdx.x} * threads + threadIdx.x;
    if (j >= k.weights.array.count)
        return;
    const shuf_weight weight = weight_at(k.weights.array, j);
    uint32_t word[4];
    k.words.draw(static_cast<uint32_t>(j), static_cast<uint32_t>(j >> 32), word);
    const uint64_t pair[2] = {uint64_t{word[1]} << 32 | word[0], uint64_t{word[3]} << 32 | word[2]};
    const double number = shuf_box_muller_log_f64(&k.terms, pair);
    k.key[j] = weight.number ? static_cast<uint64_t>(__double_as_longlong(
                                   number / shuf_weight_scaled(weight, k.weights.top)))
                             : UINT64_MAX;
    k.index[j] = static_cast<uint32_t>(j);
}

__global__ void __launch_bounds__(threads)
    write_sample(const uint32_t *index, uint64_t sample, uint64_t *out)
{
    const uint64_t i = uint64_t{blockIdx.x} * threads + threadIdx.x;
    if (i < sample)
        out[i] = index[i];
}

/* Two arrays of keys, two of indices, and CUB's own memory. */
struct Arrays {
    cub::DoubleBuffer<uint64_t> key;
    cub::DoubleBuffer<uint32_t> index;
    void *rest;

    Arrays(void *scratch, uint64_t count)
    {
        const uint64_t room = (count + 63) / 64 * 64;
        auto *const keys = static_cast<uint64_t *>(scratch);
        auto *const indices = reinterpret_cast<uint32_t *>(keys + 2 * room);
        key = {keys, keys + room};
        index = {indices, indices + room};
        rest = indices + 2 * room;
    }
};

size_t array_bytes(uint64_t count)
{
    return (count + 63) / 64 * 64 * 2 * (sizeof(uint64_t) + sizeof(uint32_t));
}

cudaError_t sort(Arrays *arrays, uint64_t count, void *temporary, size_t &bytes,
                 cudaStream_t stream)
{
    return guarded([&] {
        return cub::DeviceRadixSort::SortPairs(temporary, bytes, arrays->key, arrays->index,
                                               static_cast<int>(count), 0, 64, stream);
    });
}

unsigned blocks(uint64_t count)
{
    return static_cast<unsigned>((count - 1) / threads + 1);
}

} // namespace

size_t weight_sample_bytes(uint64_t count)
{
    Arrays none(nullptr, count);
    size_t bytes = 0;
    return sort(&none, count, nullptr, bytes, nullptr) == cudaSuccess ? array_bytes(count) + bytes
                                                                      : 0;
}

cudaError_t weight_sample_async(const GoodWeights &weights, uint64_t seed, uint64_t epoch,
                                uint64_t sample, uint64_t *out, const shuf__scratch_memory &scratch,
                                cudaStream_t stream)
{
    const uint64_t count = weights.array.count;
    Arrays arrays(scratch.memory, count);
    const Keys keys{weights,
                    Words<SHUF_UNIFORM_ROUNDS>(
                        shuf_stream_make(shuf_key_of_seed(seed), epoch, SHUF_STREAM_SAMPLE)),
                    shuf_box_muller_terms_make(), arrays.key.Current(), arrays.index.Current()};
    size_t bytes = scratch.bytes - array_bytes(count);
    make_keys<<<blocks(count), threads, 0, stream>>>(keys);
    cudaError_t e = cudaGetLastError();
    if (e == cudaSuccess)
        e = sort(&arrays, count, arrays.rest, bytes, stream);
    if (e != cudaSuccess || sample == 0)
        return e;
    write_sample<<<blocks(sample), threads, 0, stream>>>(arrays.index.Current(), sample, out);
    return cudaGetLastError();
}

} // namespace shuf
