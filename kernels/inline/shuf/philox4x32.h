/* SPDX-License-Identifier: MIT
 *
 * Philox4x32, the counter-based generator of the streams. Salmon, Moraes, Dror, Shaw: "Parallel
 * random numbers: as easy as 1, 2, 3", SC'11, section 3.3. Random123 has the same numbers.
 */
#ifndef SHUF_PHILOX4X32_H
#define SHUF_PHILOX4X32_H

#include "inline.h"

#include <stdint.h>

#define SHUF_PHILOX4X32_M0 UINT32_C(0xD2511F53)
#define SHUF_PHILOX4X32_M1 UINT32_C(0xCD9E8D57)
#define SHUF_PHILOX4X32_WEYL0 UINT32_C(0x9E3779B9)
#define SHUF_PHILOX4X32_WEYL1 UINT32_C(0xBB67AE85)

typedef struct shuf_philox4x32 {
    uint32_t word[4];
} shuf_philox4x32;

/* Applies `rounds` rounds to the counter c, with the key. At least 7 rounds are needed to pass the
 * tests of BigCrush (SC'11, table 2); the authors recommend 10. A pure function. */
SHUF_FUNCTION shuf_philox4x32 shuf_philox4x32_rounds(shuf_philox4x32 c, uint32_t key0,
                                                     uint32_t key1, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        const uint64_t left = (uint64_t)SHUF_PHILOX4X32_M0 * c.word[0];
        const uint64_t right = (uint64_t)SHUF_PHILOX4X32_M1 * c.word[2];
        c.word[0] = (uint32_t)(right >> 32) ^ c.word[1] ^ key0;
        c.word[1] = (uint32_t)right;
        c.word[2] = (uint32_t)(left >> 32) ^ c.word[3] ^ key1;
        c.word[3] = (uint32_t)left;
        key0 += SHUF_PHILOX4X32_WEYL0;
        key1 += SHUF_PHILOX4X32_WEYL1;
    }
    return c;
}

#endif
