/* SPDX-License-Identifier: MIT
 *
 * A 64-bit fingerprint of a sequence. It depends on the order of the values, but its terms can be
 * summed in any grouping, so a GPU, eight cores and a plain loop agree: F = sum over i of
 * mix(value[i] + (i + 1) * golden) mod 2^64. The mixer is the finaliser of Stafford ("Better bit
 * mixing", 2011, variant 13), as in SplitMix64. The fingerprint detects mistakes, not forgery.
 */
#ifndef SHUF_FINGERPRINT_H
#define SHUF_FINGERPRINT_H

#include "inline.h"

#include <stdint.h>

/* The term of `value` at index `index` (row-major over the whole result). */
SHUF_FUNCTION uint64_t shuf_fingerprint_term(uint64_t index, uint64_t value)
{
    uint64_t z = value + (index + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

#endif
