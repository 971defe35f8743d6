/* SPDX-License-Identifier: MIT
 *
 * Finds the smallest prime that is not below a number, for the modulus of `primefold`. It uses the
 * test of Miller and Rabin, with the first k primes as bases.
 *
 * A few composite numbers pass this test. The smallest of them is known for each k. Below it the
 * test is a proof:
 *
 *     k = 1 .. 4     Pomerance, Selfridge, Wagstaff: "The pseudoprimes to 25 * 10^9" (Math. Comp.
 *                    35, 1980)
 *     k = 5 .. 8     Jaeschke: "On strong pseudoprimes to several bases" (Math. Comp. 61, 1993)
 *     k = 9 .. 11    Jiang, Deng: "Strong pseudoprimes to the first eight prime bases" (Math. Comp.
 *                    83, 2014)
 *     k = 12         3.18e23, above all 64-bit numbers. Sorenson, Webster: "Strong pseudoprimes to
 *                    twelve prime bases" (Math. Comp. 86, 2017)
 */
#ifndef SHUF_PRIME_H
#define SHUF_PRIME_H

#include "inline.h"

#include <stdbool.h>
#include <stdint.h>

/* a * b mod p, for a, b < p */
static inline uint64_t shuf__multiply_mod(uint64_t a, uint64_t b, uint64_t p)
{
    return p >> 32 ? (uint64_t)((shuf__u128)a * b % p) : a * b % p;
}

/* Whether p passes Miller and Rabin's test with base a. p - 1 is odd * 2^twos. */
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
    static const uint64_t passes[11] = {/* the smallest composite that passes, for k = 1, 2, ... */
                                        2047,
                                        1373653,
                                        25326001,
                                        3215031751,
                                        2152302898747,
                                        3474749660383,
                                        341550071728321,
                                        341550071728321,
                                        3825123056546413051,
                                        3825123056546413051,
                                        3825123056546413051};
    for (int i = 0; i < 12; i++)
        if (p % first[i] == 0)
            return p == first[i];
    if (p < 41 * 41)
        return p > 1;
    unsigned twos = (unsigned)__builtin_ctzll(p - 1);
    uint64_t odd = (p - 1) >> twos;
    for (int i = 0; i < 12; i++) {
        if (!shuf__is_strong_probable_prime(p, first[i], odd, twos))
            return false;
        if (i < 11 && p < passes[i])
            return true;
    }
    return true;
}

/* The smallest prime p >= n, for n <= 2^62. Gaps of primes below 2^64 are less than 1552. */
static inline uint64_t shuf_prime_from(uint64_t n)
{
    uint64_t p = n <= 2 ? 2 : n | 1;
    while (!shuf_is_prime(p))
        p += 2;
    return p;
}

#endif
