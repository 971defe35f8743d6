/* SPDX-License-Identifier: MIT
 *
 * See lookups.h. The code computes the maps of `primefold` without a division, which would take
 * most of the time. With ratio = floor(multiplier * 2^64 / p), the quotient x * ratio >> 64 is too
 * small by at most one (Shoup's method; Harvey: "Faster arithmetic for number-theoretic
 * transforms", 2014).
 */
#include "lookups.h"

#include "shuf/lcg.h"
#include "shuf/philox24.h"
#include "shuf/primefold.h"

#define STATE(type) _Static_assert(sizeof(type) <= SHUF__LOOKUPS_STATE, "it is kept there")

struct primefold {
    shuf_primefold f;
    uint64_t ratio[SHUF_PRIMEFOLD_MAPS];
};

STATE(struct primefold);
STATE(shuf_philox24);
STATE(shuf_lcg);

/* Keeps the prime for the next call, because the search for a prime takes longer than all other
 * parts of a key.
 */
static void make_primefold(void *state, uint64_t n, uint64_t seed, uint64_t epoch)
{
    struct primefold *p = state;
    uint32_t word[SHUF_PRIMEFOLD_WORDS];
    if (p->f.shape.n != n || p->f.shape.maps == 0)
        p->f = shuf_primefold_make(n, seed, epoch);
    if (p->f.shape.maps == 0)
        return;
    const unsigned blocks = shuf_primefold_key_blocks(&p->f.shape);
    for (unsigned block = 0; block < blocks; block++)
        shuf_key_words_for(n, shuf_key_of_seed(seed), epoch, SHUF_PURPOSE_PRIMEFOLD, block,
                           word + 8 * block);
    p->f.addend = shuf_primefold_addend_of(&p->f.shape, word);
    for (unsigned r = 0; r < p->f.shape.maps; r++)
        p->f.map[r] = shuf_primefold_map_of(&p->f.shape, word, r);
    shuf_primefold_strengthen(&p->f.shape, p->f.map + 1, p->f.shape.maps - 1);
    for (unsigned r = 0; r < p->f.shape.maps; r++)
        p->ratio[r] = (uint64_t)(((unsigned __int128)p->f.map[r].multiplier << 64) / p->f.shape.p);
}

/* p < 2^63, so no number overflows a word. */
static inline uint64_t all_maps(const struct primefold *p, uint64_t x)
{
    const uint64_t prime = p->f.shape.p;
    for (unsigned r = 0; r < p->f.shape.maps; r++) {
        x = p->f.map[r].multiplier * x - shuf__mulhi64(p->ratio[r], x) * prime;
        x = x < prime ? x : x - prime;
        if (r == 0) {
            x += p->f.addend;
            x = x < prime ? x : x - prime;
        }
        if (r + 1 < p->f.shape.maps)
            x = shuf_primefold_fold(&p->f, r, x);
    }
    return x;
}

static void primefold_values(const void *state, uint64_t stride, size_t count, uint64_t *value)
{
    const struct primefold *p = state;
    const uint64_t n = p->f.shape.n;
    for (size_t i = 0; i < count; i++)
        if (p->f.shape.maps == 0) {
            value[i] = shuf_primefold_forward(&p->f, i * stride);
        } else {
            value[i] = i * stride;
            do
                value[i] = all_maps(p, value[i]);
            while (value[i] >= n);
        }
}

static void make_philox24(void *state, uint64_t n, uint64_t seed, uint64_t epoch)
{
    *(shuf_philox24 *)state = shuf_philox24_make(n, seed, epoch);
}

static void philox24_values(const void *state, uint64_t stride, size_t count, uint64_t *value)
{
    for (size_t i = 0; i < count; i++)
        value[i] = shuf_philox24_forward(state, i * stride);
}

static void make_lcg(void *state, uint64_t n, uint64_t seed, uint64_t epoch)
{
    *(shuf_lcg *)state = shuf_lcg_make(n, seed, epoch);
}

static void lcg_values(const void *state, uint64_t stride, size_t count, uint64_t *value)
{
    for (size_t i = 0; i < count; i++)
        value[i] = shuf_lcg_forward(state, i * stride);
}

const struct shuf__lookups shuf__lookups[] = {
    {"primefold", false, make_primefold, primefold_values},
    {"philox24", true, make_philox24, philox24_values},
    {"lcg", true, make_lcg, lcg_values},
    {0},
};
