/* SPDX-License-Identifier: MIT
 *
 * The table of the generators, and the two that need only some lines: `fisher-yates` and `lcg`.
 */
#include "generator.h"

#include "shuf/key.h"
#include "shuf/lcg.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* ---- `fisher-yates`, for comparison ---------------------------------------------- */

/* A perfect source. It is Durstenfeld's shuffle ("Algorithm 235", CACM 7, 1964) with words of
 * Philox4x64-10. It has no bias, because it rejects words that would favour some choices (Lemire:
 * "Fast random integer generation in an interval", ACM TOMACS 29, 2019). */

#define PURPOSE ((enum shuf_purpose)0x66697368) /* no algorithm of shufd has it */

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
        shuf_key_words(shuf_key_of_seed(w->seed), w->epoch, PURPOSE, w->block++, w->word);
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

/* ---- `lcg`, as the daemon has it ------------------------------------------------- */

static void make_lcg(void *state, uint32_t n, uint64_t seed, uint64_t epoch, unsigned rounds)
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
    "lcg", "linear congruential bijection with compaction", 0, 0, make_lcg, fill_lcg, NULL};

/* ---- The table ------------------------------------------------------------------- */

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
