/* SPDX-License-Identifier: MIT
 *
 * A whole computation on the CPU, in any host memory.
 */
#ifndef SHUF__CPU_CPU_H
#define SHUF__CPU_CPU_H

#include "backend.h"
#include "simd/simd_ops.h"

/* Fills `out`. A quick computation uses only the caller's thread. Returns false if the computation
 * was cancelled. */
bool shuf__cpu_compute(const struct shuf__simd_ops *simd, int threads,
                       const struct shuf__computation *computation, void *out);

#endif
