/* SPDX-License-Identifier: MIT
 *
 * `philox24` with any number of rounds. With 24 rounds it is the daemon's algorithm. With fewer it
 * shows why so many rounds are needed. The code evaluates several values together, so the compiler
 * can use vectors.
 */
#include "generator.h"

#include "shuf/philox24.h"

#include <assert.h>
#include <stddef.h>

enum { MOST_ROUNDS = 64, LANES = 64 };

struct philox {
    unsigned bits, left_bits, right_bits, rounds;
    uint32_t key[MOST_ROUNDS];
};

static void make(void *state, uint32_t n, uint64_t seed, uint64_t epoch, unsigned rounds)
{
    struct philox *p = state;
    assert(rounds >= 1 && rounds <= MOST_ROUNDS);
    p->bits = shuf_domain_bits(n);
    p->right_bits = (p->bits + 1) / 2;
    p->left_bits = p->bits / 2;
    p->rounds = rounds;
    for (unsigned block = 0; 8 * block < rounds; block++)
        shuf_key_words(shuf_key_of_seed(seed), epoch, SHUF_PURPOSE_PHILOX24, block,
                       p->key + 8 * block);
}

/* The rounds of shuf_philox24_forward(), for LANES values from x0 on. */
static void evaluate(const struct philox *p, uint32_t x0, uint32_t out[LANES])
{
    const unsigned pad = p->right_bits - p->left_bits;
    const uint32_t left_mask = (UINT32_C(1) << p->left_bits) - 1;
    const uint32_t right_mask = (UINT32_C(1) << p->right_bits) - 1;
    uint32_t left[LANES], right[LANES];
    for (unsigned i = 0; i < LANES; i++) {
        left[i] = (x0 + i) >> p->right_bits & left_mask;
        right[i] = (x0 + i) & right_mask;
    }
    for (unsigned round = 0; round < p->rounds; round++)
        for (unsigned i = 0; i < LANES; i++) {
            const uint64_t product = SHUF_PHILOX24_MULTIPLIER * left[i];
            const uint32_t hi = (uint32_t)(product >> 32), lo = (uint32_t)product;
            const uint32_t low = lo << pad | right[i] >> p->left_bits;
            left[i] = (hi ^ p->key[round] ^ right[i]) & left_mask;
            right[i] = low & right_mask;
        }
    for (unsigned i = 0; i < LANES; i++)
        out[i] = left[i] << p->right_bits | right[i];
}

static void fill(const void *state, uint32_t n, uint32_t *row)
{
    const struct philox *p = state;
    const uint32_t domain = UINT32_C(1) << p->bits;
    uint32_t value[LANES], count = 0;
    for (uint32_t x0 = 0; x0 < domain; x0 += LANES) {
        const uint32_t lanes = domain - x0 < LANES ? domain - x0 : LANES;
        evaluate(p, x0, value);
        for (uint32_t i = 0; i < lanes; i++)
            if (value[i] < n)
                row[count++] = value[i];
    }
    assert(count == n);
}

_Static_assert(sizeof(struct philox) <= SHUF__GENERATOR_STATE, "it is kept there");

const struct shuf__generator shuf__generator_philox24 = {
    "philox24", "VariablePhilox with compaction", SHUF_PHILOX24_ROUNDS, MOST_ROUNDS, make, fill,
    NULL};
