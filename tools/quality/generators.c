/* SPDX-License-Identifier: MIT
 *
 * See generator.h.
 */
#include "generator.h"

#include "shuf/key.h"
#include "shuf/lcg.h"
#include "shuf/philox24.h"
#include "shuf/prime.h"
#include "shuf/primefold.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* ---- philox24 ---- */

/* `philox24` with any number of rounds. With 24 rounds it is the daemon's algorithm. With fewer it
 * shows why so many rounds are needed. The code evaluates several values together, so the compiler
 * can use vectors. */

enum { MOST_ROUNDS = 64, LANES = 64 };

struct philox {
    unsigned bits, left_bits, right_bits, rounds;
    uint32_t key[MOST_ROUNDS];
};

static void philox24_make(void *state, uint32_t n, uint64_t seed, uint64_t epoch, unsigned rounds)
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

static void philox24_fill(const void *state, uint32_t n, uint32_t *row)
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

const struct shuf__generator shuf__generator_philox24 = {"philox24",
                                                         "VariablePhilox with compaction",
                                                         SHUF_PHILOX24_ROUNDS,
                                                         MOST_ROUNDS,
                                                         philox24_make,
                                                         philox24_fill,
                                                         NULL};

/* ---- primefold ---- */

/* `primefold`, or only its first rounds. A round is a map and the fold after it. For a small n,
 * primefold has exchanges instead of rounds, and the code always does all of them. */

struct primefold_row {
    shuf_primefold_shape shape; /* the shape with all maps */
    shuf_primefold f;
    uint64_t reciprocal; /* 2^64 / p, rounded down */
};

/* `state` has zeros, or the shape that an earlier call with the same n and `rounds` has made. */
static void primefold_make(void *state, uint32_t n, uint64_t seed, uint64_t epoch, unsigned rounds)
{
    struct primefold_row *p = state;
    if (p->shape.n != n) {
        p->shape = shuf_primefold_shape_of(n);
        if (p->shape.maps > 0)
            p->reciprocal = UINT64_MAX / p->shape.p; /* equals floor(2^64 / p), because p is odd */
    }
    p->f = shuf_primefold_make_of(&p->shape, shuf_key_of_seed(seed), epoch);
    if (p->f.shape.maps > rounds)
        p->f.shape.maps = rounds;
}

/* Makes all values. Exchange k puts value k to the position of its partner. */
static void exchange(const shuf_primefold *f, uint32_t n, uint32_t *row)
{
    uint8_t position[SHUF_PRIMEFOLD_EXACT];
    for (unsigned value = 0; value < n; value++)
        position[value] = (uint8_t)value;
    for (unsigned k = 1; k < n; k++) {
        const uint8_t mine = position[k];
        position[k] = position[f->exchange[k]];
        position[f->exchange[k]] = mine;
    }
    for (unsigned value = 0; value < n; value++)
        row[position[value]] = value;
}

/* The maps of shuf_primefold_forward() without a division. All numbers are below 2^29, so their
 * products are below 2^58. The estimated quotient is then too small by at most one. */
static uint64_t primefold_all_maps(const struct primefold_row *p, uint64_t x)
{
    const uint64_t prime = p->f.shape.p;
    for (unsigned r = 0; r < p->f.shape.maps; r++) {
        const uint64_t sum = p->f.map[r].multiplier * x + (r == 0 ? p->f.addend : 0);
        const uint64_t rest = sum - shuf__mulhi64(sum, p->reciprocal) * prime;
        x = rest < prime ? rest : rest - prime;
        if (r + 1 < p->f.shape.maps)
            x = shuf_primefold_fold(&p->f, r, x);
    }
    return x;
}

static void primefold_fill(const void *state, uint32_t n, uint32_t *row)
{
    const struct primefold_row *p = state;
    if (p->f.shape.maps == 0) {
        exchange(&p->f, n, row);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t x = i;
        do
            x = primefold_all_maps(p, x);
        while (x >= n);
        row[i] = (uint32_t)x;
    }
}

/* Returns the prime p, or 0 for an exact shuffle. */
static uint64_t primefold_modulus(uint32_t n)
{
    return shuf_primefold_shape_of(n).p;
}

_Static_assert(sizeof(struct primefold_row) <= SHUF__GENERATOR_STATE, "it is kept there");

const struct shuf__generator shuf__generator_primefold = {
    "primefold",         "multiplications modulo a prime, with folds; exchanges for small n",
    SHUF_PRIMEFOLD_MAPS, SHUF_PRIMEFOLD_MAPS,
    primefold_make,      primefold_fill,
    primefold_modulus};

/* ---- primefold with faults ---- */

/* `broken-primefold`: an old `primefold` whose folds keep too many differences. It has only 4 or 5
 * maps, a x + b modulo a prime, with a fold between each two. It is kept to show that the tests
 * detect this fault. Up to 96 values it is an exact shuffle, as the old algorithm was, but with
 * other random words. */

enum { EXACT = 96, SMALL_BITS = 16, MAPS = 5, WORDS = 24, BROKEN_PURPOSE = 3 };

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
static uint64_t broken_modulus(uint32_t n)
{
    return n <= EXACT ? 0 : shuf_prime_from(n);
}

static void shape(struct broken *b)
{
    b->p = broken_modulus((uint32_t)b->n);
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

static void broken_make(void *state, uint32_t n, uint64_t seed, uint64_t epoch, unsigned rounds)
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
        shuf_key_words_for(n, shuf_key_of_seed(seed), epoch, (enum shuf_purpose)BROKEN_PURPOSE,
                           block, word + 8 * block);
    for (unsigned r = 0; r < b->maps; r++)
        b->map[r] = map_of(b, word, r);
}

/* All numbers are below 2^29, so their products are below 2^58. The estimated quotient is then too
 * small by at most one. */
static uint64_t broken_all_maps(const struct broken *b, uint64_t x)
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

static void broken_fill(const void *state, uint32_t n, uint32_t *row)
{
    const struct broken *b = state;
    if (n <= EXACT) {
        shuf__generator_fisher_yates.fill(state, n, row);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t x = i;
        do
            x = broken_all_maps(b, x);
        while (x >= n);
        row[i] = (uint32_t)x;
    }
}

_Static_assert(sizeof(struct broken) <= SHUF__GENERATOR_STATE, "it is kept there");

const struct shuf__generator shuf__generator_broken_primefold = {
    .name = "broken-primefold",
    .what = "not random: primefold as it was, with four or five maps; n up to 2^28",
    .make = broken_make,
    .fill = broken_fill,
    .modulus = broken_modulus,
};

/* ---- Look-ups ---- */

/* The code computes the maps of `primefold` without a division, which would take most of the time.
 * With ratio = floor(multiplier * 2^64 / p), the quotient x * ratio >> 64 is too small by at most
 * one (Shoup's method; Harvey: "Faster arithmetic for number-theoretic transforms", 2014). */

#define STATE(type) _Static_assert(sizeof(type) <= SHUF__LOOKUPS_STATE, "it is kept there")

struct primefold_lookup {
    shuf_primefold f;
    uint64_t ratio[SHUF_PRIMEFOLD_MAPS];
};

STATE(struct primefold_lookup);
STATE(shuf_philox24);
STATE(shuf_lcg);

/* Keeps the prime for the next call, because the search for a prime takes longer than all other
 * parts of a key.
 */
static void make_primefold(void *state, uint64_t n, uint64_t seed, uint64_t epoch)
{
    struct primefold_lookup *p = state;
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
static inline uint64_t lookups_all_maps(const struct primefold_lookup *p, uint64_t x)
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
    const struct primefold_lookup *p = state;
    const uint64_t n = p->f.shape.n;
    for (size_t i = 0; i < count; i++)
        if (p->f.shape.maps == 0) {
            value[i] = shuf_primefold_forward(&p->f, i * stride);
        } else {
            value[i] = i * stride;
            do
                value[i] = lookups_all_maps(p, value[i]);
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

static void lookups_make_lcg(void *state, uint64_t n, uint64_t seed, uint64_t epoch)
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
    {"lcg", true, lookups_make_lcg, lcg_values},
    {0},
};

/* ---- `fisher-yates`, for comparison ---- */

/* A perfect source. It is Durstenfeld's shuffle ("Algorithm 235", CACM 7, 1964) with words of
 * Philox4x64-10. It has no bias, because it rejects words that would favour some choices (Lemire:
 * "Fast random integer generation in an interval", ACM TOMACS 29, 2019). */

#define GENERATORS_PURPOSE ((enum shuf_purpose)0x66697368) /* no algorithm of shufd has it */

struct words {
    uint64_t seed, epoch, block;
    unsigned used;
    uint32_t word[8];
};

static void make_shuffle(void *state, uint32_t n, uint64_t seed, uint64_t epoch, unsigned rounds)
{
    (void)n, (void)rounds;
    *(struct words *)state = (struct words){.seed = seed, .epoch = epoch, .used = 8};
}

static inline uint32_t next(struct words *w)
{
    if (w->used == 8) {
        shuf_key_words(shuf_key_of_seed(w->seed), w->epoch, GENERATORS_PURPOSE, w->block++,
                       w->word);
        w->used = 0;
    }
    return w->word[w->used++];
}

/* A uniform number of 0 .. range - 1. It rejects 2^32 mod range of the 2^32 words. */
static inline uint32_t below(struct words *w, uint32_t range)
{
    uint64_t product = (uint64_t)next(w) * range;
    if ((uint32_t)product < range)
        for (const uint32_t excess = -range % range; (uint32_t)product < excess;)
            product = (uint64_t)next(w) * range;
    return (uint32_t)(product >> 32);
}

static void fill_shuffle(const void *state, uint32_t n, uint32_t *row)
{
    struct words words = *(const struct words *)state;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t j = below(&words, i + 1);
        row[i] = row[j];
        row[j] = i;
    }
}

const struct shuf__generator shuf__generator_fisher_yates = {
    "fisher-yates",
    "the exact shuffle, with words of Philox4x64-10",
    0,
    0,
    make_shuffle,
    fill_shuffle,
    NULL};

/* ---- `lcg`, as the daemon has it ---- */

static void generators_make_lcg(void *state, uint32_t n, uint64_t seed, uint64_t epoch,
                                unsigned rounds)
{
    (void)rounds;
    *(shuf_lcg *)state = shuf_lcg_make(n, seed, epoch);
}

static void fill_lcg(const void *state, uint32_t n, uint32_t *row)
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
    "lcg", "linear congruential bijection with compaction", 0, 0, generators_make_lcg, fill_lcg,
    NULL};

/* ---- The table ---- */

const struct shuf__generator *const shuf__generators[] = {
    &shuf__generator_primefold, &shuf__generator_philox24,     &shuf__generator_broken_primefold,
    &shuf__generator_lcg,       &shuf__generator_fisher_yates, NULL,
};

const struct shuf__generator *shuf__generator_find(const char *name)
{
    const struct shuf__generator *const *row = shuf__generators;
    while (*row && strcmp((*row)->name, name) != 0)
        row++;
    return *row;
}
