/* SPDX-License-Identifier: MIT
 *
 * The smallest prime from a number on: the modulus of `primefold`.
 *
 * Miller-Rabin with the first twelve primes as bases decides every number below
 * 3.18e23 (Sorenson and Webster: "Strong pseudoprimes to twelve prime bases",
 * Math. Comp. 86, 2017), so this is a proof, not a test.
 */
#ifndef SHUF_PRIME_H
#define SHUF_PRIME_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t shuf__multiply_mod(uint64_t a, uint64_t b, uint64_t p)
{
    return (uint64_t)((unsigned __int128)a * b % p);
}

/* Whether p passes for the base a: p - 1 = odd * 2^twos. */
static inline bool shuf__is_strong_probable_prime(uint64_t p, uint64_t a, uint64_t odd,
                                                  unsigned twos)
{
    uint64_t power = 1;
    for (uint64_t base = a; odd != 0; odd >>= 1) {
        if (odd & 1)
            power = shuf__multiply_mod(power, base, p);
        base = shuf__multiply_mod(base, base, p);
    }
    if (power == 1)
        return true;
    for (; twos > 0; twos--) {
        if (power == p - 1)
            return true;
        power = shuf__multiply_mod(power, power, p);
    }
    return false;
}

/* Exact for every 64-bit number. A few microseconds at most. */
static inline bool shuf_is_prime(uint64_t p)
{
    static const uint8_t first[12] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
    for (int i = 0; i < 12; i++)
        if (p % first[i] == 0)
            return p == first[i];
    if (p < 41 * 41)
        return p > 1;
    unsigned twos = (unsigned)__builtin_ctzll(p - 1);
    uint64_t odd = (p - 1) >> twos;
    for (int i = 0; i < 12; i++)
        if (!shuf__is_strong_probable_prime(p, first[i], odd, twos))
            return false;
    return true;
}

/* The smallest prime of at least n; n <= 2^62. The gaps below 2^64 are less than 1552. */
static inline uint64_t shuf_prime_from(uint64_t n)
{
    uint64_t p = n <= 2 ? 2 : n | 1;
    while (!shuf_is_prime(p))
        p += 2;
    return p;
}

#endif
