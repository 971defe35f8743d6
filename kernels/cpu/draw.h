/* SPDX-License-Identifier: MIT
 *
 * Computes a part of a stream on the CPU. Threads share its superblocks of 1024 values.
 */
#ifndef SHUF__CPU_DRAW_H
#define SHUF__CPU_DRAW_H

#include "backend.h"
#include "simd/simd_ops.h"

/* Writes the computation's values to `out`. Returns false if the computation was cancelled. With
 * `threads` = 1 only the caller's thread works. */
bool shuf__cpu_draw(const struct shuf__simd_ops *simd, int threads,
                    const struct shuf__computation *computation, void *out);

#endif
