/* SPDX-License-Identifier: MIT
 *
 * The key and the counter of Philox4x32 with 9 rounds, from draws whose words are known, and with
 * them some bits of the words after 6 rounds. Each half of the key predicts one of these early
 * words. The program searches each half with 2^32 guesses. With the two halves it undoes all 9
 * rounds, and checks that this gives the numbers of the draws.
 */
#ifndef ATTACKS_STATE_H
#define ATTACKS_STATE_H

#include "shuf/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORDS = 4, /* the most candidates of a draw */
    DRAWS = 256,
};

/* The known bits of the words of a draw. */
struct candidate {
    uint32_t word[4];
    uint32_t early[2]; /* of early word 2, which k0 predicts, and of early word 0, with k1 */
};

struct draw {
    uint64_t index;
    unsigned candidates;
    struct candidate candidate[WORDS];
    uint32_t mask[2]; /* the known bits of the early words */
};

/* Of a round, for the words that the two halves of the key are added to. */
static const uint32_t factor[] = {SHUF_PHILOX4X32_M1, SHUF_PHILOX4X32_M0};
static const uint32_t inverse[] = {0x6d7cae67, 0x991a7cdb}; /* of the factors, modulo 2^32 */
static const uint32_t weyl[] = {SHUF_PHILOX4X32_WEYL0, SHUF_PHILOX4X32_WEYL1};

static uint32_t high(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

/* Adds a candidate to d, once. d->candidates may become more than WORDS. */
static void add(struct draw *d, const struct candidate *c)
{
    unsigned k = 0;
    while (k < d->candidates && memcmp(&d->candidate[k % WORDS], c, sizeof *c) != 0)
        k++;
    if (k == d->candidates)
        d->candidate[d->candidates++ % WORDS] = *c;
}

/* An early word. half: 0 for early word 2, with k0; 1 for early word 0, with k1. */
static uint32_t early_word(const uint32_t w[4], int half, uint32_t key)
{
    const uint32_t a = w[2 * half] ^ high(factor[half], inverse[half] * w[1 + 2 * half]) ^ key;
    const uint32_t b = inverse[!half] * w[3 - 2 * half] ^ high(factor[half], inverse[half] * a);
    return inverse[half] * (b ^ (key - weyl[half]));
}

static int fits(const struct draw *d, int half, uint32_t key)
{
    for (unsigned i = 0; i < d->candidates; i++) {
        const struct candidate *c = &d->candidate[i];
        if (((early_word(c->word, half, key) ^ c->early[half]) & d->mask[half]) == 0)
            return 1;
    }
    return 0;
}

/* The key of the last round that fits all draws. Sets `found` to the number of such keys. */
static uint32_t search(const struct draw *draw, unsigned draws, int half, unsigned *found)
{
    uint32_t key = 0;
    unsigned count = 0;
#pragma omp parallel for schedule(static) reduction(+ : count)
    for (uint64_t guess = 0; guess <= UINT32_MAX; guess++) {
        unsigned i = 0;
        while (i < draws && fits(&draw[i], half, (uint32_t)guess))
            i++;
        if (i < draws)
            continue;
        count++;
#pragma omp critical
        key = (uint32_t)guess;
    }
    *found = count;
    return key;
}

/* Undoes all rounds. `key` has the keys of the last round. Returns the counter. */
static shuf_philox4x32 undo(const uint32_t word[4], const uint32_t key[2])
{
    shuf_philox4x32 c = {{word[0], word[1], word[2], word[3]}};
    for (uint32_t i = 0; i < SHUF_GAUSS_ROUNDS; i++) {
        const uint32_t c2 = inverse[0] * c.word[1], c0 = inverse[1] * c.word[3];
        c = (shuf_philox4x32){{c0, c.word[0] ^ high(factor[0], c2) ^ (key[0] - i * weyl[0]), c2,
                               c.word[2] ^ high(factor[1], c0) ^ (key[1] - i * weyl[1])}};
    }
    return c;
}

/* The draws that refuse most keys come first. */
static int by_use(const void *a, const void *b)
{
    const struct draw *x = (const struct draw *)a, *y = (const struct draw *)b;
    const int of_x = __builtin_popcount(x->mask[0]) + __builtin_popcount(x->mask[1]);
    const int of_y = __builtin_popcount(y->mask[0]) + __builtin_popcount(y->mask[1]);
    return x->candidates != y->candidates ? (int)x->candidates - (int)y->candidates : of_y - of_x;
}

/* Finds the key of the draws, and prints it. Returns the exit status. */
static int find_state(struct draw *draw, unsigned draws)
{
    unsigned found[2], right = 0;
    qsort(draw, draws, sizeof *draw, by_use);
    printf("2^30 values, %u draws\n", draws);
    const uint32_t key[2] = {search(draw, draws, 0, &found[0]), search(draw, draws, 1, &found[1])};
    shuf_philox4x32 counter = {{0}};
    for (unsigned i = 0; i < draws; i++)
        for (unsigned k = 0; k < draw[i].candidates; k++) {
            const shuf_philox4x32 c = undo(draw[i].candidate[k].word, key);
            if ((c.word[0] | (uint64_t)c.word[2] << 32) != draw[i].index)
                continue;
            counter = c;
            right++;
            break;
        }
    printf("keys found: %u and %u\nnumbers of draws that the undone rounds give: %u of %u\n"
           "key %08" PRIx32 " %08" PRIx32 ", counter * %08" PRIx32 " * %08" PRIx32 "\n",
           found[0], found[1], right, draws, key[0] - (SHUF_GAUSS_ROUNDS - 1) * weyl[0],
           key[1] - (SHUF_GAUSS_ROUNDS - 1) * weyl[1], counter.word[1], counter.word[3]);
    return right != draws;
}

#endif
