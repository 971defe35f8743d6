/* SPDX-License-Identifier: MIT
 *
 * The Philox key and counter of a stream box-muller f64, from its values alone. Where the radius
 * and the angle of a pair are small fractions, the two values determine nearly all bits of the
 * draw's words after 9 rounds. Then each half of the key predicts one bit of the words after 6
 * rounds: the first half the sign of the sine, and the second half whether sine and cosine are
 * exchanged. The program searches each half with 2^32 guesses. With the two halves it undoes all 9
 * rounds, and checks that this gives the numbers of the draws.
 */
#include "shuf/box_muller.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double SMALL = 0x1p53; /* a fraction of 2^63 below this is small */

enum {
    UNITS = 16, /* candidates on each side of the inverse, in units of the last place */
    WORDS = 4,  /* the most candidates of a draw */
    DRAWS = 256,
};

struct draw {
    uint64_t index;
    unsigned candidates;
    uint32_t word[WORDS][4];
    uint32_t sine_sign, is_swapped;
};

/* Of a round, for the words that the two halves of the key are added to. */
static const uint32_t factor[] = {SHUF_PHILOX4X32_M1, SHUF_PHILOX4X32_M0};
static const uint32_t inverse[] = {0x6d7cae67, 0x991a7cdb}; /* of the factors, modulo 2^32 */
static const uint32_t weyl[] = {SHUF_PHILOX4X32_WEYL0, SHUF_PHILOX4X32_WEYL1};
static shuf_box_muller_terms terms;

/* The words of a fraction that is x after rounding: the high word, and the low one behind it. */
static void set_words(double x, int high_bit, int low_bit, uint64_t word[2])
{
    word[0] = (uint64_t)x | (uint64_t)high_bit << 63;
    word[1] = (uint64_t)ldexp(x - floor(x), 63) | (uint64_t)low_bit << 63;
}

static double unit_of(double x)
{
    return ldexp(1, ilogb(x) - 52);
}

/* The fraction before rounding was up to half a unit less. So its high word may be less too. */
static void add_candidates(struct draw *d, double radius, double angle,
                           const shuf_box_muller_wide *w)
{
    for (int i = 0; i < 4; i++) {
        const uint64_t r = (uint64_t)(i % 2 ? nextafter(radius, 0) : radius);
        const uint64_t t = (uint64_t)(i / 2 ? nextafter(angle, 0) : angle);
        const uint64_t high = r | w->radius[0] >> 63 << 63, low = t | w->angle[0] >> 63 << 63;
        const uint32_t word[] = {(uint32_t)(high >> 32), (uint32_t)high, (uint32_t)(low >> 32),
                                 (uint32_t)low};
        unsigned k = 0;
        while (k < d->candidates && memcmp(d->word[k % WORDS], word, sizeof word) != 0)
            k++;
        if (k < d->candidates)
            continue;
        memcpy(d->word[k % WORDS], word, sizeof word);
        d->candidates++;
    }
}

/* Sets d to the words that can give the pair z. Returns whether there are few. */
static int invert(const double z[2], uint64_t index, struct draw *d)
{
    const int swap = fabs(z[0]) < fabs(z[1]);
    const double cosine = z[swap], sine = z[!swap];
    if (fabs(sine) > fabs(cosine) * 0x1p-9)
        return 0;
    const long double square = (long double)cosine * cosine + (long double)sine * sine;
    const int near_1 = square < logl(4);
    const long double chance = near_1 ? -expm1l(-square / 2) : expl(-square / 2);
    const double t = (double)ldexpl(atan2l(fabsl(sine), fabsl(cosine)) * 4 / acosl(-1), 63);
    const double r = (double)ldexpl(chance, 64);
    if (!(t < SMALL && r < SMALL && t > 1 && r > 1))
        return 0;
    *d = (struct draw){.index = index, .sine_sign = sine < 0, .is_swapped = (uint32_t)swap};
    const int width = near_1 ? UNITS : 16 * UNITS; /* the error grows with `square` */
    for (int i = -width; i <= width; i++)
        for (int j = -UNITS; j <= UNITS; j++) {
            const double radius = r + i * unit_of(r), angle = t + j * unit_of(t);
            shuf_box_muller_wide w;
            double made[2];
            set_words(radius, near_1, swap, w.radius);
            set_words(angle, cosine < 0, sine < 0, w.angle);
            shuf_box_muller_pair_f64(&terms, &w, made);
            if (made[0] == z[0] && made[1] == z[1])
                add_candidates(d, radius, angle, &w);
        }
    return d->candidates >= 1 && d->candidates <= WORDS;
}

static uint32_t high(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

/* The top bit of an early word. half: 0 for early word 2, with k0; 1 for early word 0, with k1. */
static uint32_t early_bit(const uint32_t w[4], int half, uint32_t key)
{
    const uint32_t a = w[2 * half] ^ high(factor[half], inverse[half] * w[1 + 2 * half]) ^ key;
    const uint32_t b = inverse[!half] * w[3 - 2 * half] ^ high(factor[half], inverse[half] * a);
    return inverse[half] * (b ^ (key - weyl[half])) >> 31;
}

static int fits(const struct draw *d, int half, uint32_t key)
{
    for (unsigned i = 0; i < d->candidates; i++)
        if (early_bit(d->word[i], half, key) == (half ? d->is_swapped : d->sine_sign))
            return 1;
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

static int by_candidates(const void *a, const void *b)
{
    return (int)((const struct draw *)a)->candidates - (int)((const struct draw *)b)->candidates;
}

/* Fills draw[] from 2^30 values of seed 7. Returns the number of draws. */
static unsigned read_values(struct draw draw[DRAWS])
{
    const shuf_box_muller b = shuf_box_muller_make(7, 0, 0, 1);
    unsigned draws = 0;
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < UINT64_C(1) << 29; i++) {
        const shuf_stream_draw made = shuf_stream_draw_make(&b.words, i);
        const shuf_box_muller_wide words = shuf_box_muller_wide_of(&made);
        double z[2];
        struct draw d;
        shuf_box_muller_pair_f64(&terms, &words, z);
        if (!invert(z, i, &d))
            continue;
#pragma omp critical
        if (draws < DRAWS)
            draw[draws++] = d;
    }
    qsort(draw, draws, sizeof *draw, by_candidates);
    return draws;
}

int main(void)
{
    static struct draw draw[DRAWS];
    unsigned found[2], right = 0;
    terms = shuf_box_muller_terms_make();
    const unsigned draws = read_values(draw);
    printf("2^30 values, %u draws\n", draws);
    const uint32_t key[2] = {search(draw, draws, 0, &found[0]), search(draw, draws, 1, &found[1])};
    for (unsigned i = 0; i < draws; i++)
        for (unsigned k = 0; k < draw[i].candidates; k++) {
            const shuf_philox4x32 c = undo(draw[i].word[k], key);
            right += (c.word[0] | (uint64_t)c.word[2] << 32) == draw[i].index;
        }
    const shuf_philox4x32 c = undo(draw[0].word[0], key);
    printf("keys found: %u and %u\nnumbers of draws that the undone rounds give: %u of %u\n"
           "key %08" PRIx32 " %08" PRIx32 ", counter * %08" PRIx32 " * %08" PRIx32 "\n",
           found[0], found[1], right, draws, key[0] - (SHUF_GAUSS_ROUNDS - 1) * weyl[0],
           key[1] - (SHUF_GAUSS_ROUNDS - 1) * weyl[1], c.word[1], c.word[3]);
    return right != draws;
}
