/* SPDX-License-Identifier: MIT
 *
 * The sorts of plans by CUB, and a sum: see exchange.cuh. Their own file, because the build does
 * not refuse CUB's kernels if they spill registers: for Digit they do so on GPUs before the H100.
 */
#include "exchange.cuh"

#include "cub_call.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include <algorithm>

namespace shuf
{

namespace
{

constexpr int key_bits = 32, digit_bits = 16, pass_bits = 8;

template <typename Element> cub::DoubleBuffer<Element> doubled(const Buffers<Element> &buffers)
{
    return {buffers.now, buffers.other};
}

template <typename Element> void take(Buffers<Element> *buffers, cub::DoubleBuffer<Element> &sorted)
{
    *buffers = {sorted.Current(), sorted.Alternate()};
}

} // namespace

template <typename Number> size_t sort_bytes(Number count)
{
    cub::DoubleBuffer<Key> keys;
    cub::DoubleBuffer<Digit> digits;
    cub::DoubleBuffer<Number> numbers;
    size_t most = 0, bytes = 0;
    for (int bits = pass_bits; bits <= key_bits; bits += pass_bits) {
        const auto by_keys = [&] {
            return cub::DeviceRadixSort::SortKeys(nullptr, bytes, keys, count, 0, bits);
        };
        const auto by_digits = [&] {
            return cub::DeviceRadixSort::SortPairs(nullptr, bytes, digits, numbers, count, 0, bits);
        };
        if (guarded(by_keys) == cudaSuccess)
            most = std::max(most, bytes);
        if (bits <= digit_bits && guarded(by_digits) == cudaSuccess)
            most = std::max(most, bytes);
    }
    return most;
}

template <typename Number>
cudaError_t sort_keys(Buffers<Key> *keys, Number count, unsigned bits, void *temporary,
                      size_t bytes, cudaStream_t stream)
{
    cub::DoubleBuffer<Key> sorted = doubled(*keys);
    const cudaError_t e = guarded([&] {
        return cub::DeviceRadixSort::SortKeys(temporary, bytes, sorted, count, 0,
                                              static_cast<int>(bits), stream);
    });
    take(keys, sorted);
    return e;
}

template <typename Number>
cudaError_t sort_digits(Buffers<Digit> *digits, Buffers<Number> *numbers, Number count,
                        unsigned bits, void *temporary, size_t bytes, cudaStream_t stream)
{
    cub::DoubleBuffer<Digit> sorted = doubled(*digits);
    cub::DoubleBuffer<Number> moved = doubled(*numbers);
    const cudaError_t e = guarded([&] {
        return cub::DeviceRadixSort::SortPairs(temporary, bytes, sorted, moved, count, 0,
                                               static_cast<int>(bits), stream);
    });
    take(digits, sorted);
    take(numbers, moved);
    return e;
}

size_t scan_bytes(uint64_t count)
{
    size_t bytes = 0;
    uint64_t *const none = nullptr;
    const cudaError_t e =
        guarded([&] { return cub::DeviceScan::ExclusiveSum(nullptr, bytes, none, none, count); });
    return e == cudaSuccess ? bytes : 0;
}

cudaError_t sum_before(uint64_t *numbers, uint64_t count, void *temporary, size_t bytes,
                       cudaStream_t stream)
{
    return guarded([&] {
        return cub::DeviceScan::ExclusiveSum(temporary, bytes, numbers, numbers, count, stream);
    });
}

template size_t sort_bytes(uint32_t);
template size_t sort_bytes(uint64_t);
template cudaError_t sort_keys(Buffers<Key> *, uint32_t, unsigned, void *, size_t, cudaStream_t);
template cudaError_t sort_keys(Buffers<Key> *, uint64_t, unsigned, void *, size_t, cudaStream_t);
template cudaError_t sort_digits(Buffers<Digit> *, Buffers<uint32_t> *, uint32_t, unsigned, void *,
                                 size_t, cudaStream_t);
template cudaError_t sort_digits(Buffers<Digit> *, Buffers<uint64_t> *, uint64_t, unsigned, void *,
                                 size_t, cudaStream_t);

} // namespace shuf
