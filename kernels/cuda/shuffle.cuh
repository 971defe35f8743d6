/* SPDX-License-Identifier: MIT
 *
 * Shuffles on the GPU, as asynchronous work: a permutation moves records from one array of device
 * memory to another.
 */
#ifndef SHUF__CUDA_SHUFFLE_CUH
#define SHUF__CUDA_SHUFFLE_CUH

#include "host/permute.h"
#include "permute.cuh"

namespace shuf
{

/* Bytes of device memory with which the shuffle is fastest, besides its input and output; 0 for
 * none. */
uint64_t shuffle_best_bytes(const shuf__shuffle &s);

/* Bytes of `list`, which every shuffle gets. */
constexpr uint64_t shuffle_list_bytes = SHUF_PRIMEFOLD_EXACT * sizeof(uint32_t);

/* Queues the work of a shuffle. `in` and `out` begin at multiples of 16 bytes. `windows` has
 * shuffle_best_bytes() or is NULL; `list` has shuffle_list_bytes. */
cudaError_t shuffle_async(const Scratch &scratch, const shuf__computation &computation,
                          const void *in, void *out, void *windows, void *list, cudaStream_t stream,
                          bool *cancelled);

/* shuffle_scan.cu: the same for philox24 and lcg. If it takes several launches, it waits between
 * them and can be cancelled there. */
cudaError_t scan_and_move(const Scratch &scratch, const shuf__computation &computation,
                          const void *in, void *out, cudaStream_t stream, bool *cancelled);

/* shuffle_large.cu: whether records are large, and their shuffle. */
bool is_large(const shuf__shuffle &s);
cudaError_t large_async(const shuf__simd_ops *simd, const shuf__computation &computation,
                        const void *in, void *out, cudaStream_t stream, bool *cancelled);

/* shuffle_windows.cu: whether windows are faster, and the bytes of their memory. */
bool windows_suit(const shuf__shuffle &s);
uint64_t windows_bytes(const shuf__shuffle &s);
cudaError_t windows_async(const shuf__shuffle &s, const void *in, void *out, void *temporary,
                          cudaStream_t stream);

} // namespace shuf

#endif
