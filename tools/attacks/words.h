/* SPDX-License-Identifier: MIT
 *
 * The arithmetic of a round of Philox4x32, and its inverse.
 */
#ifndef ATTACKS_WORDS_H
#define ATTACKS_WORDS_H

#include <stdint.h>

/* The high word of the product. */
static inline uint32_t high(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

/* The number whose product with the odd factor is 1 modulo 2^32. */
static inline uint32_t inverse(uint32_t factor)
{
    uint32_t x = factor;
    for (int i = 0; i < 5; i++)
        x *= 2 - factor * x;
    return x;
}

#endif
