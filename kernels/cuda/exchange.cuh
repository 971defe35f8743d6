/* SPDX-License-Identifier: MIT
 *
 * The plan by which a rank exchanges its records with others (docs/cluster.md), on the GPU.
 */
#ifndef SHUF__CUDA_EXCHANGE_CUH
#define SHUF__CUDA_EXCHANGE_CUH

#include "host/exchange.h"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime.h>

namespace shuf
{

/* Which lists of a plan exchange_few.cu makes, without sorts. Results do not depend on it. Only for
 * at most tuning::split_ranks ranks places can be split. */
struct Methods {
    bool selects_order, splits_places;
};

/* The faster methods. */
Methods exchange_methods(const shuf__plan &plan);

/* The bytes of the workspace, which is device memory: counters, and for sorts 8 for each record of
 * the larger sorted side, or 12 if the numbers have 64 bits. Never 0. Asks the current device. */
uint64_t exchange_bytes(const shuf__request &request, const Methods &methods);

/* Queues the computation of a plan to `out`, which is device memory. The computation has its
 * workspace. For n <= SHUF_PRIMEFOLD_EXACT one of the host's processors makes the plan. The call
 * checks for cancellation before each sort or launch. */
cudaError_t exchange_async(const shuf__simd_ops *simd, const shuf__computation &computation,
                           const Methods &methods, void *out, cudaStream_t stream, bool *cancelled);

/* ---- exchange_few.cu: the two lists of a plan without sorts, for few ranks ---- */

/* Whether these methods take less time than sorts. */
bool selects_order(const shuf__plan &plan);
bool splits_places(const shuf__plan &plan);

/* The bytes of their scratch memory, a small part of a byte for each position. Ask the current
 * device. */
uint64_t select_bytes(const shuf__plan &plan);
uint64_t split_bytes(const shuf__plan &plan);

/* Queue the computation of a list. They check for cancellation before each launch. */
template <typename Number>
cudaError_t select_order(const shuf__computation &computation, void *scratch, Number *order,
                         cudaStream_t stream, bool *cancelled);
template <typename Number>
cudaError_t split_places(const shuf__computation &computation, void *scratch, Number *places,
                         cudaStream_t stream, bool *cancelled);

/* ---- one_sided.cu: one-sided plans. exchange_async() and exchange_bytes() call these ---- */

/* The bytes of the workspace, which is device memory: up to 2.25 for each place. Asks the current
 * device. */
uint64_t one_sided_bytes(const shuf__plan &plan);

/* Queues the computation of a plan to `out`, which is device memory. The computation has its
 * workspace. The call checks for cancellation before each launch. */
cudaError_t one_sided_async(const shuf__computation &computation, void *out, cudaStream_t stream,
                            bool *cancelled);

/* ---- exchange_sort.cu: the sorts by CUB, and a sum, as asynchronous work ---- */

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
