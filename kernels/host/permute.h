/* SPDX-License-Identifier: MIT
 *
 * Computations of permutations on the CPU: all requested values by tiles that threads share,
 * windowed orders (shuf/windowed.h), and look-ups of single places.
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

/* windowed.c: the work of shuf__host_permute() for a permutation with windows. */
bool shuf__host_windowed(const struct shuf__simd_ops *simd, int threads,
                         const struct shuf__computation *computation, void *out);

/* look_up.c: the function look_up of struct shuf__backend_ops. With random access, each place is
 * computed alone. With compaction, each tile with a requested place is evaluated once. */
shuf_status shuf__host_look_up(const struct shuf__simd_ops *simd, int threads,
                               const struct shuf__computation *computation, uint64_t *place,
                               size_t count, struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
