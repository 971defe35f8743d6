/* SPDX-License-Identifier: MIT
 *
 * The plan by which a rank exchanges its records with others (docs/cluster.md), on the host.
 */
#ifndef SHUF__HOST_EXCHANGE_H
#define SHUF__HOST_EXCHANGE_H

#include "backend.h"
#include "simd/simd_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The workspace that an EXCHANGE needs: 8 bytes for each record of the rank's input, and counters.
 * No smaller workspace is possible. */
uint64_t shuf__exchange_bytes(int threads, const struct shuf__plan *plan);

/* Fills `out`. The computation has its workspace. False if cancelled. */
bool shuf__host_exchange(const struct shuf__simd_ops *simd, int threads,
                         const struct shuf__computation *computation, void *out);

/* one_sided.c: the two functions above for one-sided plans. The workspace has only counters. */
uint64_t shuf__one_sided_bytes(int threads, const struct shuf__plan *plan);
bool shuf__host_one_sided(const struct shuf__simd_ops *simd, int threads,
                          const struct shuf__computation *computation, void *out);

#ifdef __cplusplus
}
#endif

#endif
