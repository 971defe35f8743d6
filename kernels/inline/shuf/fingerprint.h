/* SPDX-License-Identifier: MIT
 *
 * A 64-bit check of a sequence and its order. It finds mistakes, not forgery. docs/spec.md,
 * "Fingerprint".
 *
 *     fingerprint = the sum over i of term(value[i] + (i + 1) * golden)        modulo 2^64
 *
 * `golden` is a constant. A term takes two products of 32-bit halves, as in wyhash, because these
 * are cheap on a GPU and in vectors. It also adds its argument, because for some of these the
 * products hide a half. Each term depends on its index, so a wrong order changes the
 * sum. The terms may be added in any order, so a GPU, many cores and a plain loop get the same sum.
 */
#ifndef SHUF_FINGERPRINT_H
#define SHUF_FINGERPRINT_H

#include "inline.h"

#include <stdint.h>

#define SHUF_FINGERPRINT_STEP UINT64_C(0x9E3779B97F4A7C15)

/* The term of value[i], for z = value[i] + (i + 1) * SHUF_FINGERPRINT_STEP. */
SHUF_FUNCTION uint64_t shuf_fingerprint_mix(uint64_t z)
{
    const uint64_t w = (uint64_t)(uint32_t)z * (uint32_t)(z >> 32), x = w ^ z;
    return (uint64_t)(uint32_t)(x ^ w >> 32) * (uint32_t)(x >> 32 | 1) + z;
}

/* The term of one value. `index` counts all values of the result, row by row. */
SHUF_FUNCTION uint64_t shuf_fingerprint_term(uint64_t index, uint64_t value)
{
    return shuf_fingerprint_mix(value + (index + 1) * SHUF_FINGERPRINT_STEP);
}

#endif
