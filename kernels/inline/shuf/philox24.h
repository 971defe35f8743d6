/* SPDX-License-Identifier: MIT
 *
 * `philox24`: a bijection of [0, 2^B), the algorithm VariablePhilox with 24 rounds. Mitchell et
 * al., "Bandwidth-optimal random shuffling for GPUs", ACM TOPC 9(1), 2022 (arXiv 2106.06161),
 * Listing 1. It is a Feistel network: a round replaces one half of the number by a function of both
 * halves, and can be undone.
 *
 * For n = 2^k and k >= 4, `philox24` gives only even permutations: docs/spec.md, "philox24".
 */
#ifndef SHUF_PHILOX24_H
#define SHUF_PHILOX24_H

#include "domain.h"
#include "key.h"

enum { SHUF_PHILOX24_ROUNDS = 24 };

#define SHUF_PHILOX24_MULTIPLIER UINT64_C(0xD2B74407B1CE6E93)
#define SHUF_PHILOX24_MULTIPLIER_INVERSE UINT32_C(0x212BDF9B) /* modulo 2^32 */

typedef struct shuf_philox24 {
    unsigned left_bits, right_bits; /* B = left + right; right = left or left + 1 */
    uint32_t key[SHUF_PHILOX24_ROUNDS];
} shuf_philox24;

/* The bijection of [0, 2^B), B = shuf_domain_bits(n), for (key, epoch). */
SHUF_FUNCTION shuf_philox24 shuf_philox24_make_keyed(uint64_t n, shuf_key key, uint64_t epoch)
{
    shuf_philox24 p;
    unsigned bits = shuf_domain_bits(n);
    p.right_bits = (bits + 1) / 2;
    p.left_bits = bits / 2;
    for (unsigned block = 0; block < SHUF_PHILOX24_ROUNDS / 8; block++)
        shuf_key_words(key, epoch, SHUF_PURPOSE_PHILOX24, block, p.key + 8 * block);
    return p;
}

SHUF_FUNCTION shuf_philox24 shuf_philox24_make(uint64_t n, uint64_t seed, uint64_t epoch)
{
    return shuf_philox24_make_keyed(n, shuf_key_of_seed(seed), epoch);
}

/* x < 2^B; the result is below 2^B too. */
SHUF_FUNCTION uint64_t shuf_philox24_forward(const shuf_philox24 *p, uint64_t x)
{
    const unsigned pad = p->right_bits - p->left_bits; /* 0 or 1 */
    const uint32_t left_mask = (UINT32_C(1) << p->left_bits) - 1;
    const uint32_t right_mask = (UINT32_C(1) << p->right_bits) - 1;
    uint32_t left = (uint32_t)(x >> p->right_bits), right = (uint32_t)x & right_mask;
    for (int round = 0; round < SHUF_PHILOX24_ROUNDS; round++) {
        uint64_t product = SHUF_PHILOX24_MULTIPLIER * left;
        uint32_t hi = (uint32_t)(product >> 32), lo = (uint32_t)product;
        lo = lo << pad | right >> p->left_bits;
        left = (hi ^ p->key[round] ^ right) & left_mask;
        right = lo & right_mask;
    }
    return (uint64_t)left << p->right_bits | right;
}

/* The x with f(x) = y, for y < 2^B. A round multiplies the left half by an odd number m. The low
 * bits of the product, times the inverse of m modulo 2^32, give the left half back. */
SHUF_FUNCTION uint64_t shuf_philox24_inverse(const shuf_philox24 *p, uint64_t y)
{
    const unsigned pad = p->right_bits - p->left_bits;
    const uint32_t left_mask = (UINT32_C(1) << p->left_bits) - 1;
    const uint32_t right_mask = (UINT32_C(1) << p->right_bits) - 1;
    uint32_t left = (uint32_t)(y >> p->right_bits), right = (uint32_t)y & right_mask;
    for (int round = SHUF_PHILOX24_ROUNDS; round-- > 0;) {
        const uint32_t before = (right >> pad) * SHUF_PHILOX24_MULTIPLIER_INVERSE & left_mask;
        const uint32_t hi = (uint32_t)(SHUF_PHILOX24_MULTIPLIER * before >> 32);
        const uint32_t top = pad ? (right & 1) << p->left_bits : 0;
        right = top | ((left ^ hi ^ p->key[round]) & left_mask);
        left = before;
    }
    return (uint64_t)left << p->right_bits | right;
}

#endif
