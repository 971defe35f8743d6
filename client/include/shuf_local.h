/* SPDX-License-Identifier: MIT
 *
 * Results computed in this process, without a daemon. The values have the same bits as those of a
 * daemon. Included by shuf.h.
 *
 *     uint32_t order[1000];
 *     shuf_request request = {.permutation = {.n = 1000, .seed = 7, .epoch = 3}};
 *     if (shuf_host_fill(&request, 1, order, sizeof order) != SHUF_OK)
 *         fprintf(stderr, "%s\n", shuf_message(NULL));
 *
 * Use a daemon if several processes share the values, for named keys (a key never leaves the
 * daemon), and for slices and look-ups of philox24 and lcg: a daemon remembers their counts.
 *
 * shuf_host_*() compute with SIMD instructions in host memory. shuf_cuda_*() queue the work in a
 * CUDA stream and return before it is done. All of them are thread-safe. The message of a failure
 * is shuf_message(NULL) of the same thread. The contents of `out` are undefined after a failure.
 * All fail with SHUF_INVALID for a request that a daemon would refuse, for a named key, and for
 * `out` with fewer bytes than the result, and with SHUF_NO_MEMORY for a result of 2^63 bytes or
 * more. The bits of the values are those of the default floating-point environment, which rounds to
 * nearest.
 */
#ifndef SHUF_LOCAL_H
#define SHUF_LOCAL_H

#include "shuf_request.h"
#include "shuf_status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Host memory ---- */

/* `threads` is the number of threads that compute: 1 is only the caller's thread, 0 means all
 * processors of this process. More than one are a team of OpenMP that the caller's thread keeps for
 * later calls. A child of fork() computes with one thread, because a team of its parent, also one
 * of another library, would make it wait for ever. The values do not depend on the number. A call
 * fails with SHUF_IO if the system has no more threads, and with SHUF_CANCELLED if the function of
 * shuf_set_interrupt() ends it. */

/* Writes the values of a PERMUTATION, NUMBERS or RANKS to `out`, which has `bytes` bytes, row-major
 * in the host's byte order, aligned for their type. Returns no summary: fails with SHUF_INVALID if
 * `fingerprint` or `moments` is set. */
SHUF_API shuf_status shuf_host_fill(const shuf_request *request, unsigned threads, void *out,
                                    size_t bytes);

/* Shuffles n * record bytes from `in` to `out`, as shuf_shuffle(). Both have `bytes` bytes and must
 * not overlap. Large arrays of small records use a few further MiB while the call runs, and take
 * less time if `out` begins at a multiple of 64 bytes. */
SHUF_API shuf_status shuf_host_shuffle(const shuf_records *records, unsigned threads,
                                       const void *in, void *out, size_t bytes);

/* Looks up `count` positions or values, as shuf_index(), but only of primefold. */
SHUF_API shuf_status shuf_host_index(const shuf_permutation *permutation, shuf_direction direction,
                                     unsigned threads, const uint64_t *at, size_t count,
                                     uint64_t *out);

/* Writes to *fingerprint the fingerprint (shuf/fingerprint.h) of `count` values of `width` bytes,
 * which are 2, 4 or 8: that of a result, if these are its values. */
SHUF_API shuf_status shuf_host_fingerprint(const void *values, unsigned width, uint64_t count,
                                           unsigned threads, uint64_t *fingerprint);

/* Writes a part of the result of a PERMUTATION or NUMBERS to `out`: `count` values from number
 * `first` on, counted row by row. Several threads may so compute one result, each with threads = 1.
 * *fingerprint, unless NULL, gets the part's share in the fingerprint of the whole: the sum of all
 * shares modulo 2^64 is that fingerprint. A part of philox24 or lcg takes the time of all values of
 * the row before it. */
SHUF_API shuf_status shuf_host_part(const shuf_request *request, uint64_t first, uint64_t count,
                                    unsigned threads, void *out, uint64_t *fingerprint);

/* ---- Device memory ---- */

/* These functions load libshuf-cuda and CUDA at the first call, and fail with SHUF_DEVICE if
 * there is none, if the driver is too old, or in a child of fork() whose parent has used CUDA.
 * `stream` is a cudaStream_t or CUstream of the device of `out`; NULL is the legacy default
 * stream.
 *
 * Device memory begins at a multiple of 16 bytes, on one device, and stays allocated until the work
 * is done. The functions allocate no device memory, do not synchronise, and can be captured in a
 * CUDA graph, except as shuf_cuda_fill() says. The first use of a kernel loads it, which takes
 * milliseconds. SHUF_OK says that the work is queued: an error while it runs appears in the stream,
 * as with any kernel. */

/* Sets *bytes to the device memory, aligned to 256 bytes, that the fill or shuffle needs as its
 * workspace: 0 for numbers and uniform permutations by primefold. The workspace has no meaning
 * before or after the work, but no other work may use it at the same time. Uses no device. Fails
 * with SHUF_INVALID if a GPU cannot compute the request in process: RANKS, and philox24 or lcg with
 * more than 2^31 inputs (the next power of two from n, times the epochs) or 1024 epochs. */
SHUF_API shuf_status shuf_cuda_workspace(const shuf_request *request, size_t *bytes);

/* Fills device memory as shuf_host_fill(), but not with RANKS. `workspace` may be NULL if
 * shuf_cuda_workspace() gives 0. For a windowed order whose values are much fewer than the
 * chunks between them, the host computes the values first, in memory of its own, and the call fails
 * with SHUF_INVALID if `stream` is captured. */
SHUF_API shuf_status shuf_cuda_fill(const shuf_request *request, void *out, size_t bytes,
                                    void *workspace, size_t workspace_bytes, void *stream);

/* Shuffles device memory as shuf_host_shuffle(). For records of 512 KiB or more, the host computes
 * the permutation first, in 8 n bytes of host memory. */
SHUF_API shuf_status shuf_cuda_shuffle(const shuf_records *records, const void *in, void *out,
                                       size_t bytes, void *workspace, size_t workspace_bytes,
                                       void *stream);

/* Looks up `count` numbers in device memory as shuf_host_index(). `dtype`, SHUF_U32 or SHUF_U64, is
 * the type of both arrays, which may be the same one. Not with windows. The call cannot see the
 * numbers: an at[i] of n or more gives the largest number of the type, which is -1 as a signed
 * number. */
SHUF_API shuf_status shuf_cuda_index(const shuf_permutation *permutation, shuf_direction direction,
                                     shuf_dtype dtype, const void *at, size_t count, void *out,
                                     void *stream);

/* As shuf_host_fingerprint(). `fingerprint` is device memory, aligned to 8 bytes. */
SHUF_API shuf_status shuf_cuda_fingerprint(const void *values, unsigned width, uint64_t count,
                                           uint64_t *fingerprint, void *stream);

#ifdef __cplusplus
}
#endif

#endif
