/* SPDX-License-Identifier: MIT
 *
 * `lcg`: the linear congruential bijection of the paper that domain.h names (section 4.1). It is
 * kept for comparison. It is fast, but not random enough: it fails chi-squared tests.
 */
#ifndef SHUF_LCG_H
#define SHUF_LCG_H

#include "domain.h"
#include "key.h"

typedef struct shuf_lcg {
    uint64_t multiplier, increment, mask;
} shuf_lcg;

/* The bijection of [0, 2^B), B = shuf_domain_bits(n), for (key, epoch). */
SHUF_FUNCTION shuf_lcg shuf_lcg_make_keyed(uint64_t n, shuf_key key, uint64_t epoch)
{
    uint32_t word[8];
    shuf_lcg l;
    shuf_key_words(key, epoch, SHUF_PURPOSE_LCG, 0, word);
    l.multiplier = ((uint64_t)word[1] << 32 | word[0]) | 1; /* odd: invertible mod 2^B */
    l.increment = (uint64_t)word[3] << 32 | word[2];
    l.mask = (UINT64_C(1) << shuf_domain_bits(n)) - 1;
    return l;
}

SHUF_FUNCTION shuf_lcg shuf_lcg_make(uint64_t n, uint64_t seed, uint64_t epoch)
{
    return shuf_lcg_make_keyed(n, shuf_key_of_seed(seed), epoch);
}

SHUF_FUNCTION uint64_t shuf_lcg_forward(const shuf_lcg *l, uint64_t x)
{
    return (l->multiplier * x + l->increment) & l->mask;
}

/* The x with f(x) = y. Newton's method computes the inverse of the multiplier modulo 2^64. The
 * first guess has 3 correct bits, and each step doubles them: 6, 12, 24, 48, 96. */
SHUF_FUNCTION uint64_t shuf_lcg_inverse(const shuf_lcg *l, uint64_t y)
{
    uint64_t inverse = l->multiplier;
    for (int step = 0; step < 5; step++)
        inverse *= 2 - l->multiplier * inverse;
    return (y - l->increment) * inverse & l->mask;
}

#endif
