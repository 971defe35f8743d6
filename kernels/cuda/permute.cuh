/* SPDX-License-Identifier: MIT
 *
 * Whole computations on the GPU, as asynchronous work in a CUDA stream.
 */
#ifndef SHUF__CUDA_PERMUTE_CUH
#define SHUF__CUDA_PERMUTE_CUH

#include "backend.h"
#include "scratch.cuh"
#include "shuf/primefold.h"

#include <cuda_runtime.h>

namespace shuf
{

cudaError_t scratch_make(Scratch *scratch);
void scratch_free(Scratch *scratch);

/* The number of bytes of a value of the computation. */
inline unsigned width_of(const shuf__computation &computation)
{
    return shuf__dtype_bytes(computation.request.dtype);
}

/* Queues the work of a permutation. If the work takes several launches, the call waits between
 * them. It also waits for the counts that it adds to a rank index. *cancelled says whether the
 * computation was cancelled during such a wait. */
cudaError_t permute_async(const Scratch &scratch, const shuf__computation &computation, void *out,
                          cudaStream_t stream, bool *cancelled);

/* The scratch memory of permute_async() and scan_and_move() for philox24 or lcg, if the work takes
 * one launch and so never waits; else 0. local_scratch() makes a Scratch in this memory. */
size_t local_scratch_bytes(const shuf__permutation &p);
Scratch local_scratch(void *memory);

struct Signal;

/* Whether primefold_async() computes a single row in two launches: one without range checks, and
 * one that corrects its values. With a signal it never does. */
bool primefold_is_corrected(const shuf__permutation &p);

/* Queues the values of `primefold`, of `width` bytes each, in one launch or two. With a signal, p
 * must be one row of at most tuning::tile values. One block then computes the row and gives the
 * signal. */
cudaError_t primefold_async(const shuf__permutation &p, unsigned width, void *out,
                            const Signal *signal, cudaStream_t stream);

/* Queues the values of many rows of `primefold`, or of rows with n <= SHUF_PRIMEFOLD_EXACT. */
cudaError_t primefold_rows_async(const shuf__permutation &p, unsigned width,
                                 const shuf_primefold_shape &shape, void *out, cudaStream_t stream);

/* Does a look-up of `primefold`: values[i] for at[i], i < count. Both arrays are device memory,
 * have numbers of `width` bytes, and begin at multiples of 16 bytes. They may be the same array. An
 * at[i] of n or more gives the largest number of its type. */
cudaError_t primefold_look_up_async(const shuf__look_up &l, unsigned width, const void *at,
                                    void *values, uint64_t count, cudaStream_t stream);

/* Whether primefold_sum_async() can do the permutation. */
bool primefold_sums(const shuf__permutation &p);

/* Queues one launch that sets *sum, which is device memory, to the fingerprint of the values.
 * `index` is the index of the first value in the result. */
cudaError_t primefold_sum_async(const shuf__permutation &p, uint64_t index, unsigned long long *sum,
                                cudaStream_t stream);

/* Loads the kernels of quick computations with `primefold`. */
cudaError_t primefold_load();

/* Writes the fingerprint of `values` values to *sum, which is device memory. `index` is the index
 * of the first value in the result. */
cudaError_t fingerprint_async(const void *data, unsigned width, uint64_t values, uint64_t index,
                              int sm_count, unsigned long long *sum, cudaStream_t stream);

} // namespace shuf

#endif
