/* SPDX-License-Identifier: MIT
 *
 * Moves records by a permutation on the CPU, from one block of memory to another.
 */
#ifndef SHUF__HOST_SHUFFLE_H
#define SHUF__HOST_SHUFFLE_H

#include "backend.h"
#include "simd/simd_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The best workspace for a computation of the request with so many threads. The computation also
 * works without a workspace. */
struct shuf__workspace shuf__host_workspace(int threads, const struct shuf__request *request);

/* Fills `out` from the computation's input. Returns false if the computation was cancelled. With
 * `threads` = 1 only the caller's thread works. */
bool shuf__host_shuffle(const struct shuf__simd_ops *simd, int threads,
                        const struct shuf__computation *computation, void *out);

/* Does the same as shuf__host_shuffle(), but moves each record directly, without a workspace. */
bool shuf__host_shuffle_directly(const struct shuf__simd_ops *simd, int threads,
                                 const struct shuf__computation *computation, void *out);

/* ---- partition.c: an array larger than the caches ---- */

/* Two passes read and write memory in order. The first one moves each record to its part of the
 * output, and the second one to its place in the part. */

/* Whether two passes are faster than moving each record directly. */
bool shuf__partition_pays(const struct shuf__shuffle *shuffle);

/* The best `bits` for the shuffle on this processor: a part has 2^bits records. */
unsigned shuf__partition_bits(const struct shuf__shuffle *shuffle);

/* Bytes of the workspace: for each record its place in its part (2 bytes, or 4 if bits > 16), and
 * some memory for each thread. */
uint64_t shuf__partition_bytes(const struct shuf__shuffle *shuffle, int threads, unsigned bits);

/* Does the work of shuf__host_shuffle(), for primefold and records of at most 127 bytes, with 9 <=
 * bits <= 32. `memory` has shuf__partition_bytes() and is aligned to a cache line. */
bool shuf__partition(const struct shuf__simd_ops *simd, int threads,
                     const struct shuf__computation *computation, unsigned bits, void *memory,
                     void *out);

#ifdef __cplusplus
}
#endif

#endif
