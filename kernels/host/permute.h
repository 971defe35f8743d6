/* SPDX-License-Identifier: MIT
 *
 * A whole computation on the CPU: tiles over threads.
 */
#ifndef SHUF__HOST_PERMUTE_H
#define SHUF__HOST_PERMUTE_H

#include "backend.h"
#include "simd/simd_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes rows * count values to `out`, of a shuffle the records, where only n < 2^B of algorithms
 * with compaction come here (shuffle.h has the rest); false when the computation was cancelled.
 * With one thread, that is the caller's. */
bool shuf__host_permute(const struct shuf__simd_ops *simd, int threads,
                        const struct shuf__computation *computation, void *out);

#ifdef __cplusplus
}
#endif

#endif
