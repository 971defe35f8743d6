/* SPDX-License-Identifier: MIT
 *
 * A whole computation of a permutation on the CPU. Threads share its tiles.
 */
#ifndef SHUF__HOST_PERMUTE_H
#define SHUF__HOST_PERMUTE_H

#include "backend.h"
#include "simd/simd_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes rows * count values to `out`. For a shuffle by an algorithm with compaction and n < 2^B,
 * it writes the moved records instead; shuffle.h does the other shuffles. Returns false if the
 * computation was cancelled. With `threads` = 1 only the caller's thread works. */
bool shuf__host_permute(const struct shuf__simd_ops *simd, int threads,
                        const struct shuf__computation *computation, void *out);

/* The fingerprint of the values, which are not stored; `index` is that of the first value in the
 * result. For one row of an algorithm with random access, without windows. Returns false if it was
 * cancelled. */
bool shuf__host_permute_sum(const struct shuf__simd_ops *simd, int threads,
                            const struct shuf__computation *computation, uint64_t index,
                            uint64_t *fingerprint);

#ifdef __cplusplus
}
#endif

#endif
