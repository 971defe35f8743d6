/* SPDX-License-Identifier: MIT
 *
 * A stream on the CPU: superblocks of 1024 values over threads.
 */
#ifndef SHUF__CPU_DRAW_H
#define SHUF__CPU_DRAW_H

#include "backend.h"
#include "simd/simd_ops.h"

/* Writes the computation's values to `out`. False if cancelled. `threads` = 1 uses the caller's
 * thread only. */
bool shuf__cpu_draw(const struct shuf__simd_ops *simd, int threads,
                    const struct shuf__computation *computation, void *out);

#endif
