/* SPDX-License-Identifier: MIT
 *
 * The domain [0, 2^B) that `philox24` and `lcg` permute. Both are from Mitchell, Stokes, Frank,
 * Holmes: "Bandwidth-optimal random shuffling for GPUs", ACM TOPC 9(1), 2022 (arXiv 2106.06161),
 * section 4.
 */
#ifndef SHUF_DOMAIN_H
#define SHUF_DOMAIN_H

#include "inline.h"

#include <stdint.h>

/* B: the number of bits of n - 1, but at least 4. 1 <= n <= 2^62. */
SHUF_FUNCTION unsigned shuf_domain_bits(uint64_t n)
{
    unsigned bits = 4;
    while (bits < 64 && (n - 1) >> bits != 0)
        bits++;
    return bits;
}

#endif
