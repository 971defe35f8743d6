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

/* The workspace for a computation of the request with this many threads. A shuffle also works
 * without. */
struct shuf__workspace shuf__host_workspace(int threads, const struct shuf__request *request);

/* Fills `out` from the computation's input. False if cancelled. `threads` = 1 uses the caller's
 * thread only. */
bool shuf__host_shuffle(const struct shuf__simd_ops *simd, int threads,
                        const struct shuf__computation *computation, void *out);

/* The same in one pass, without partition.h. */
bool shuf__host_shuffle_directly(const struct shuf__simd_ops *simd, int threads,
                                 const struct shuf__computation *computation, void *out);

#ifdef __cplusplus
}
#endif

#endif
