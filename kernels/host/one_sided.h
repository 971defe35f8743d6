/* SPDX-License-Identifier: MIT
 *
 * One-sided plans of exchanges (docs/cluster.md), on the host. exchange.h calls these functions.
 */
#ifndef SHUF__HOST_ONE_SIDED_H
#define SHUF__HOST_ONE_SIDED_H

#include "backend.h"
#include "simd/simd_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The workspace of a one-sided plan: counters. */
uint64_t shuf__one_sided_bytes(int threads, const struct shuf__plan *plan);

/* Fills `out`. The computation has its workspace. False if cancelled. */
bool shuf__host_one_sided(const struct shuf__simd_ops *simd, int threads,
                          const struct shuf__computation *computation, void *out);

#ifdef __cplusplus
}
#endif

#endif
