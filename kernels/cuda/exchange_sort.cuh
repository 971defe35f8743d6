/* SPDX-License-Identifier: MIT
 *
 * The sorts of plans by CUB, and a sum, as asynchronous work. Their own file, because the build
 * does not refuse CUB's kernels if they spill registers: for Digit they do so on GPUs before the
 * H100.
 */
#ifndef SHUF__CUDA_EXCHANGE_SORT_CUH
#define SHUF__CUDA_EXCHANGE_SORT_CUH

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

namespace shuf
{

using Digit = uint16_t;
using Key = uint32_t;

/* Two arrays between which a sort moves its elements. `now` has them, before and after. */
template <typename Element> struct Buffers {
    Element *now, *other;
};

/* The bytes of `temporary` in the sorts below, for `count` elements. Asks the current device.
 * 0 if the device fails; the sorts then fail too. */
template <typename Number> size_t sort_bytes(Number count);

/* Sorts keys by their lowest `bits` bits. */
template <typename Number>
cudaError_t sort_keys(Buffers<Key> *keys, Number count, unsigned bits, void *temporary,
                      size_t bytes, cudaStream_t stream);

/* Sorts numbers by the lowest `bits` bits of their digits. Numbers with equal digits keep their
 * order. */
template <typename Number>
cudaError_t sort_digits(Buffers<Digit> *digits, Buffers<Number> *numbers, Number count,
                        unsigned bits, void *temporary, size_t bytes, cudaStream_t stream);

/* The bytes of `temporary` in sum_before(). */
size_t scan_bytes(uint64_t count);

/* Replaces each number by the sum of all numbers before it. */
cudaError_t sum_before(uint64_t *numbers, uint64_t count, void *temporary, size_t bytes,
                       cudaStream_t stream);

} // namespace shuf

#endif
