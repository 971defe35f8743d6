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

/* The bytes of device memory, as scratch memory, with which the shuffle is fastest. 0 if it needs
 * none. */
uint64_t shuffle_best_bytes(const shuf__shuffle &s);

/* The bytes of `list`. Every shuffle gets this memory. */
constexpr uint64_t shuffle_list_bytes = SHUF_PRIMEFOLD_EXACT * sizeof(uint32_t);

/* Queues the work of a shuffle. `in` and `out` begin at multiples of 16 bytes. `windows` has
 * shuffle_best_bytes() or is NULL; `list` has shuffle_list_bytes. */
cudaError_t shuffle_async(const Scratch &scratch, const shuf__computation &computation,
                          const void *in, void *out, void *windows, void *list, cudaStream_t stream,
                          bool *cancelled);

/* shuffle_scan.cu: the same for philox24 and lcg. If the work takes several launches, the call
 * waits between them, and the computation can be cancelled there. */
cudaError_t scan_and_move(const Scratch &scratch, const shuf__computation &computation,
                          const void *in, void *out, cudaStream_t stream, bool *cancelled);

/* shuffle_large.cu: whether the records are large, and the shuffle of large records. */
bool is_large(const shuf__shuffle &s);
cudaError_t large_async(const shuf__simd_ops *simd, const shuf__computation &computation,
                        const void *in, void *out, cudaStream_t stream, bool *cancelled);

/* shuffle_windows.cu: whether a shuffle by windows is faster, and its scratch memory in bytes. */
bool windows_suit(const shuf__shuffle &s);
uint64_t windows_bytes(const shuf__shuffle &s);
cudaError_t windows_async(const shuf__shuffle &s, const void *in, void *out, void *temporary,
                          cudaStream_t stream);

} // namespace shuf

#endif
