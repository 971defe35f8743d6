/* SPDX-License-Identifier: MIT
 *
 * Single places of the algorithms that leave values out: only the tiles that have
 * them are evaluated, each once.
 */
#ifndef SHUF__CPU_LOOK_UP_H
#define SHUF__CPU_LOOK_UP_H

#include "backend.h"
#include "simd/simd_ops.h"

/* shuf__backend_look_up(). */
shuf_status shuf__host_look_up(const struct shuf__simd_ops *simd, int threads,
                               const struct shuf__job *job, uint64_t *place, size_t count,
                               struct shuf__error *error);

#endif
