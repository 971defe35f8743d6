/* SPDX-License-Identifier: MIT
 *
 * `lcg`, as the daemon has it.
 */
#include "generator.h"

#include "shuf/lcg.h"

#include <assert.h>

static void make(void *state, uint32_t n, uint64_t seed, uint64_t epoch, unsigned rounds)
{
    (void)rounds;
    *(shuf_lcg *)state = shuf_lcg_make(n, seed, epoch);
}

static void fill(const void *state, uint32_t n, uint32_t *row)
{
    const shuf_lcg *lcg = state;
    uint32_t count = 0;
    for (uint64_t x = 0; x <= lcg->mask; x++) {
        const uint64_t value = shuf_lcg_forward(lcg, x);
        if (value < n)
            row[count++] = (uint32_t)value;
    }
    assert(count == n);
}

const struct shuf__generator shuf__generator_lcg = {
    "lcg", "linear congruential bijection with compaction", 0, 0, make, fill, NULL};
