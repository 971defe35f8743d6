/* SPDX-License-Identifier: MIT
 *
 * Shuffles on the GPU, as asynchronous work: records moved from one place of device memory to
 * another by a permutation.
 */
#ifndef SHUF__CUDA_SHUFFLE_CUH
#define SHUF__CUDA_SHUFFLE_CUH

#include "host/permute.h"
#include "permute.cuh"

namespace shuf
{

/* Device memory that the shuffle works best with beside its input and output; 0 for none. */
uint64_t shuffle_best_bytes(const shuf__shuffle &s);

/* Device memory that every computation is given. */
constexpr uint64_t shuffle_list_bytes = SHUF_PRIMEFOLD_EXACT * sizeof(uint32_t);

/* Queues the computation's work. `in` and `out` begin at multiples of 16 bytes; `windows` has what
 * shuffle_best_bytes() says or is NULL, `list` has shuffle_list_bytes. */
cudaError_t shuffle_async(const Scratch &scratch, const shuf__computation &computation,
                          const void *in, void *out, void *windows, void *list, cudaStream_t stream,
                          bool *cancelled);

/* shuffle_scan.cu: the same by philox24 and lcg. Waits between the launches of a computation that
 * takes several, where it can be cancelled. */
cudaError_t scan_and_move(const Scratch &scratch, const shuf__computation &computation,
                          const void *in, void *out, cudaStream_t stream, bool *cancelled);

/* shuffle_large.cu: whether records are large, and the same for them. */
bool is_large(const shuf__shuffle &s);
cudaError_t large_async(const shuf__simd_ops *simd, const shuf__computation &computation,
                        const void *in, void *out, cudaStream_t stream, bool *cancelled);

/* shuffle_windows.cu: whether windows pay for themselves, and their memory. */
bool windows_suit(const shuf__shuffle &s);
uint64_t windows_bytes(const shuf__shuffle &s);
cudaError_t windows_async(const shuf__shuffle &s, const void *in, void *out, void *temporary,
                          cudaStream_t stream);

} // namespace shuf

#endif
