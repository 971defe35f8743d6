/* SPDX-License-Identifier: MIT
 *
 * A 64-bit check of a sequence and its order. It finds mistakes, not forgery.
 *
 *     fingerprint = the sum over i of mix(value[i] + (i + 1) * golden)        modulo 2^64
 *
 * `golden` is a constant. mix() is the last step of SplitMix64 (Stafford: "Better bit mixing",
 * 2011, variant 13). Each term depends on its index, so a wrong order changes the sum. The terms
 * may be added in any order, so a GPU, many cores and a plain loop get the same sum.
 */
#ifndef SHUF_FINGERPRINT_H
#define SHUF_FINGERPRINT_H

#include "inline.h"

#include <stdint.h>

/* The term of one value. `index` counts all values of the result, row by row. */
SHUF_FUNCTION uint64_t shuf_fingerprint_term(uint64_t index, uint64_t value)
{
    uint64_t z = value + (index + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

#endif
