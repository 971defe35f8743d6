/* SPDX-License-Identifier: MIT
 *
 * The two lists of a plan without sorts, for few ranks. Values of the permutation at neighbouring
 * positions are fast, so these methods evaluate positions in ascending order, and the lists need no
 * other order:
 *
 *   order   evaluates all positions of the output of all ranks, and selects the values that are
 *           records of this rank. Its time depends on n.
 *   places  evaluates the rank's own places, and splits them by the rank that sends the record.
 *           Its time depends on the number of ranks.
 */
#ifndef SHUF__CUDA_EXCHANGE_FEW_CUH
#define SHUF__CUDA_EXCHANGE_FEW_CUH

#include "backend.h"

#include <cuda_runtime.h>

namespace shuf
{

/* Whether the lists of a plan are made without sorts. */
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

} // namespace shuf

#endif
