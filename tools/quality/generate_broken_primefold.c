/* SPDX-License-Identifier: MIT
 *
 * `broken-primefold`: an old `primefold` whose folds keep too many differences. It has only 4 or 5
 * maps, a x + b modulo a prime, with a fold between each two. It is kept to show that the tests
 * detect this fault. Up to 96 values it is an exact shuffle, as the old algorithm was, but with
 * other random words.
 */
#include "generator.h"

#include "shuf/key.h"
#include "shuf/prime.h"

enum { EXACT = 96, SMALL_BITS = 16, MAPS = 5, WORDS = 24, PURPOSE = 3 };

struct map {
    uint64_t multiplier, addend, fold;
};

struct broken {
    uint64_t n, seed, epoch;
    uint64_t p, reciprocal, whole; /* `reciprocal` is 2^64 / p, rounded down */
    unsigned bits, shift, maps;
    struct map map[MAPS];
};

static unsigned bits_of(uint64_t x)
{
    return 64 - (unsigned)__builtin_clzll(x);
}

/* For n up to 2^28. For a larger n the folds had other shifts, which this file does not have. */
static uint64_t modulus(uint32_t n)
{
    return n <= EXACT ? 0 : shuf_prime_from(n);
}

static void shape(struct broken *b)
{
    b->p = modulus((uint32_t)b->n);
    b->reciprocal = UINT64_MAX / b->p;
    b->bits = bits_of(b->p - 1);
    b->shift = (b->bits + 1) / 4;
    b->whole = b->p >> (b->bits - b->shift) << (b->bits - b->shift);
    b->maps = b->p >> SMALL_BITS ? 4 : 5;
}

static struct map map_of(const struct broken *b, const uint32_t *word, unsigned r)
{
    const uint64_t fold = (UINT64_C(1) << (b->bits - b->shift)) - 1;
    if (b->maps == 5) {
        const uint32_t *w = word + 3 * r;
        return (struct map){1 + (w[0] * (b->p - 1) >> 32), w[1] * b->p >> 32, w[2] & fold};
    }
    const uint32_t *w = word + 6 * r;
    return (struct map){1 + shuf__mulhi64((uint64_t)w[1] << 32 | w[0], b->p - 1),
                        shuf__mulhi64((uint64_t)w[3] << 32 | w[2], b->p),
                        ((uint64_t)w[5] << 32 | w[4]) & fold};
}

static void make(void *state, uint32_t n, uint64_t seed, uint64_t epoch, unsigned rounds)
{
    struct broken *b = state;
    uint32_t word[WORDS];
    b->seed = seed;
    b->epoch = epoch;
    if (n <= EXACT) {
        shuf__generator_fisher_yates.make(state, n, seed, epoch, rounds);
        return;
    }
    if (b->n != n) {
        b->n = n;
        shape(b);
    }
    for (unsigned block = 0; block < WORDS / 8; block++)
        shuf_key_words_for(n, shuf_key_of_seed(seed), epoch, (enum shuf_purpose)PURPOSE, block,
                           word + 8 * block);
    for (unsigned r = 0; r < b->maps; r++)
        b->map[r] = map_of(b, word, r);
}

/* All numbers are below 2^29, so their products are below 2^58. The estimated quotient is then too
 * small by at most one. */
static uint64_t all_maps(const struct broken *b, uint64_t x)
{
    for (unsigned r = 0; r < b->maps; r++) {
        const uint64_t sum = b->map[r].multiplier * x + b->map[r].addend;
        const uint64_t rest = sum - shuf__mulhi64(sum, b->reciprocal) * b->p;
        x = rest < b->p ? rest : rest - b->p;
        if (r + 1 < b->maps && x < b->whole)
            x = x ^ x >> b->shift ^ b->map[r].fold;
    }
    return x;
}

static void fill(const void *state, uint32_t n, uint32_t *row)
{
    const struct broken *b = state;
    if (n <= EXACT) {
        shuf__generator_fisher_yates.fill(state, n, row);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t x = i;
        do
            x = all_maps(b, x);
        while (x >= n);
        row[i] = (uint32_t)x;
    }
}

_Static_assert(sizeof(struct broken) <= SHUF__GENERATOR_STATE, "it is kept there");

const struct shuf__generator shuf__generator_broken_primefold = {
    .name = "broken-primefold",
    .what = "not random: primefold as it was, with four or five maps; n up to 2^28",
    .make = make,
    .fill = fill,
    .modulus = modulus,
};
