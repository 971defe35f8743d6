/* SPDX-License-Identifier: MIT
 *
 * Philox4x64-10, the counter-based generator of all keys. Salmon, Moraes, Dror, Shaw: "Parallel
 * random numbers: as easy as 1, 2, 3", SC'11, section 3.3. NumPy and Random123 have the same
 * numbers.
 */
#ifndef SHUF_PHILOX4X64_H
#define SHUF_PHILOX4X64_H

#include "inline.h"

#include <stdint.h>

typedef struct shuf_philox4x64 {
    uint64_t word[4];
} shuf_philox4x64;

SHUF_FUNCTION uint64_t shuf__mulhi64(uint64_t a, uint64_t b)
{
#ifdef __CUDA_ARCH__
    return __umul64hi(a, b);
#else
    return (uint64_t)((shuf__u128)a * b >> 64);
#endif
}

/* Applies ten rounds to the counter, with the key. A pure function. */
SHUF_FUNCTION shuf_philox4x64 shuf_philox4x64_10(shuf_philox4x64 counter, uint64_t key0,
                                                 uint64_t key1)
{
    const uint64_t m0 = UINT64_C(0xD2E7470EE14C6C93), m1 = UINT64_C(0xCA5A826395121157);
    const uint64_t weyl0 = UINT64_C(0x9E3779B97F4A7C15), weyl1 = UINT64_C(0xBB67AE8584CAA73B);
    shuf_philox4x64 c = counter;
    for (int round = 0; round < 10; round++) {
        uint64_t hi0 = shuf__mulhi64(m0, c.word[0]), lo0 = m0 * c.word[0];
        uint64_t hi1 = shuf__mulhi64(m1, c.word[2]), lo1 = m1 * c.word[2];
        c.word[0] = hi1 ^ c.word[1] ^ key0;
        c.word[1] = lo1;
        c.word[2] = hi0 ^ c.word[3] ^ key1;
        c.word[3] = lo0;
        key0 += weyl0;
        key1 += weyl1;
    }
    return c;
}

#endif
