/* SPDX-License-Identifier: MIT
 *
 * `fisher-yates`: a perfect source, for comparison. It is Durstenfeld's shuffle ("Algorithm 235",
 * CACM 7, 1964) with words of Philox4x64-10. It has no bias, because it rejects words that would
 * favour some choices (Lemire: "Fast random integer generation in an interval", ACM TOMACS 29,
 * 2019).
 */
#include "generator.h"

#include "shuf/key.h"

#define PURPOSE ((enum shuf_purpose)0x66697368) /* no algorithm of shufd has it */

struct words {
    uint64_t seed, epoch, block;
    unsigned used;
    uint32_t word[8];
};

static void make(void *state, uint32_t n, uint64_t seed, uint64_t epoch, unsigned rounds)
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

static void fill(const void *state, uint32_t n, uint32_t *row)
{
    struct words words = *(const struct words *)state;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t j = below(&words, i + 1);
        row[i] = row[j];
        row[j] = i;
    }
}

const struct shuf__generator shuf__generator_fisher_yates = {
    "fisher-yates", "the exact shuffle, with words of Philox4x64-10", 0, 0, make, fill, NULL};
