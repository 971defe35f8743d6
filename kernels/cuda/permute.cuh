/* SPDX-License-Identifier: MIT
 *
 * A whole computation on the GPU, as asynchronous work in a stream.
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

/* The bytes of a value of the computation. */
inline unsigned width_of(const shuf__computation &computation)
{
    return shuf__dtype_bytes(computation.request.dtype);
}

/* Queues the work of a permutation's computation. Waits only between the launches of a computation
 * that takes several, and for what is added to its rank index; *cancelled says whether it was
 * stopped there.
 */
cudaError_t permute_async(const Scratch &scratch, const shuf__computation &computation, void *out,
                          cudaStream_t stream, bool *cancelled);

struct Signal;

/* Whether primefold_async() makes a single row, without a signal, by values that nobody looks at
 * and a second launch that corrects them. */
bool primefold_is_corrected(const shuf__permutation &p);

/* The values of `primefold`, `width` bytes each, in one launch or two; with a signal, in a single
 * block that gives it: one row, of at most tuning::tile values. */
cudaError_t primefold_async(const shuf__permutation &p, unsigned width, void *out,
                            const Signal *signal, cudaStream_t stream);

/* The same for rows by the million, or of so few values that they are shuffled. */
cudaError_t primefold_rows_async(const shuf__permutation &p, unsigned width,
                                 const shuf_primefold_shape &shape, void *out, cudaStream_t stream);

/* values[i] = the value at position at[i] < n, i < count, for n > SHUF_PRIMEFOLD_EXACT. Both are
 * device memory of values of `width` bytes that begins at a multiple of 16 bytes. */
cudaError_t primefold_look_up_async(const shuf__permutation &p, unsigned width, const void *at,
                                    void *values, uint64_t count, cudaStream_t stream);

/* Loads its quick kernels. */
cudaError_t primefold_load();

/* Adds the fingerprint of `values` values, the first with that index, to *sum, which is device
 * memory. */
cudaError_t fingerprint_async(const void *data, unsigned width, uint64_t values, uint64_t index,
                              int sm_count, unsigned long long *sum, cudaStream_t stream);

} // namespace shuf

#endif
