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

/* Writes rows * count values to `out`. For a shuffle it writes the moved records; call it only for
 * an algorithm with compaction and n < 2^B (shuffle.h does the others). False if cancelled.
 * `threads` = 1 uses the caller's thread only. */
bool shuf__host_permute(const struct shuf__simd_ops *simd, int threads,
                        const struct shuf__computation *computation, void *out);

#ifdef __cplusplus
}
#endif

#endif
