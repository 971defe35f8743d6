/* SPDX-License-Identifier: MIT
 *
 * Looks up single values and positions. With random access, each place is computed alone. With
 * compaction, each tile with a requested place is evaluated once.
 */
#ifndef SHUF__HOST_LOOK_UP_H
#define SHUF__HOST_LOOK_UP_H

#include "backend.h"
#include "simd/simd_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The function look_up of struct shuf__backend_ops. */
shuf_status shuf__host_look_up(const struct shuf__simd_ops *simd, int threads,
                               const struct shuf__computation *computation, uint64_t *place,
                               size_t count, struct shuf__error *error);

#ifdef __cplusplus
}
#endif

#endif
