/* SPDX-License-Identifier: MIT
 *
 * Sums over numbers in host memory, for both backends.
 */
#ifndef SHUF__HOST_SUMS_H
#define SHUF__HOST_SUMS_H

#include "backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does the work of ops->sums (backend.h). The number of threads does not change the bits of the
 * sums. count >= 1. */
void shuf__host_sums(int threads, const void *values, shuf_dtype dtype, uint64_t count,
                     double centre, double scale, struct shuf__sums *sums);

#ifdef __cplusplus
}
#endif

#endif
