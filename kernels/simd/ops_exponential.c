/* SPDX-License-Identifier: MIT
 *
 * Exponential numbers, for the keys of weighted samples (docs/spec.md). Like simd_ops.c, this file
 * is compiled once for each instruction set, so that fma() is an instruction.
 */
#include "simd/simd_ops.h"

void SHUF__SIMD_NAME(shuf__exponential)(const uint64_t *words, double *out, size_t count)
{
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    for (size_t i = 0; i < count; i++)
        out[i] = shuf_box_muller_log_f64(&terms, words + 2 * i);
}
