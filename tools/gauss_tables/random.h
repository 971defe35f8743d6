/* SPDX-License-Identifier: MIT
 *
 * Random numbers from a seed, by Philox4x64 of kernels/inline.
 */
#ifndef SHUF__GAUSS_RANDOM_H
#define SHUF__GAUSS_RANDOM_H

#include "shuf/philox4x64.h"

struct shuf__random {
    uint64_t seed, drawn;
};

static inline uint64_t shuf__random_word(struct shuf__random *random)
{
    const shuf_philox4x64 counter = {{random->drawn++, 0, 0, 0}};
    return shuf_philox4x64_10(counter, random->seed, 0).word[0];
}

#endif
