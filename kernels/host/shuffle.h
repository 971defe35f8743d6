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

/* Does the same as shuf__host_shuffle(), but moves each record directly, without partition.h. */
bool shuf__host_shuffle_directly(const struct shuf__simd_ops *simd, int threads,
                                 const struct shuf__computation *computation, void *out);

#ifdef __cplusplus
}
#endif

#endif
