/* SPDX-License-Identifier: MIT
 *
 * The state of a stream of the table method in f64. The bits of a value below 2^-37 are a word of a
 * second draw, with the sign of the value. A small value shows most of them. The program looks for
 * the draw whose four values leave the fewest bits open, and counts the completions to four whole
 * words. With the right key it undoes the rounds of each completion: only the true one may give the
 * number of the draw. A search does the same for each of 2^64 keys.
 *
 *     attack-open [L]             2^L values, by default 32, which takes minutes; a second for 24,
 * which counts only, because more than 2^36 completions are too many
 */
#include "shuf/gauss.h"
#include "words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOW_BITS = 37, WORD = 32, MOST_COMPLETIONS = 36, ROUNDS = 9 };

/* A draw whose numbers are the words of four values. */
struct draw {
    uint64_t number;
    double z[4];
    int open; /* bits */
};

/* The words that fit a value of each sign. */
struct range {
    int64_t first, last;
};

/* The bits of the word that a value leaves open: its last significant bit is 2^(e - 52). */
static int open_bits(double z)
{
    const int open = ilogb(z) - 52 + LOW_BITS + WORD;
    return open > 0 ? open : 0;
}

static struct draw find_draw(const shuf_gauss *gauss, uint64_t values)
{
    struct draw best = {.open = 4 * WORD + 1};
    for (uint64_t b = 0; b < values / SHUF_GAUSS_BLOCK; b++) {
        const shuf_gauss_block block = shuf_gauss_block_make(gauss, b);
        for (unsigned p = 0; p < SHUF_GAUSS_BLOCK; p += 4) {
            struct draw draw = {.number = 16 * b + 8 + p / 4};
            for (unsigned q = 0; q < 4; q++) {
                draw.z[q] = shuf_gauss_block_f64(gauss, &block, p + q);
                draw.open += open_bits(draw.z[q]);
            }
            if (draw.open < best.open)
                best = draw;
        }
    }
    return best;
}

static struct range words_of(double z, bool negative)
{
    const long double low = ldexpl(negative ? -z : z, LOW_BITS), fraction = low - floorl(low),
                      half = ldexpl(1, ilogb(z) - 53 + LOW_BITS);
    return (struct range){(int64_t)floorl(ldexpl(fraction - half, WORD)),
                          (int64_t)floorl(ldexpl(fraction + half, WORD))};
}

/* Undoes all rounds, from the key words of the last one on. */
static void undo(uint32_t w[4], uint32_t key0, uint32_t key1, uint32_t inverse0, uint32_t inverse1)
{
    for (int i = 0; i < ROUNDS; i++) {
        const uint32_t c2 = inverse1 * w[1], c0 = inverse0 * w[3],
                       c1 = w[0] ^ high(SHUF_PHILOX4X32_M1, c2) ^ key0,
                       c3 = w[2] ^ high(SHUF_PHILOX4X32_M0, c0) ^ key1;
        w[0] = c0;
        w[1] = c1;
        w[2] = c2;
        w[3] = c3;
        key0 -= SHUF_PHILOX4X32_WEYL0;
        key1 -= SHUF_PHILOX4X32_WEYL1;
    }
}

static uint64_t count_fitting(const shuf_gauss *gauss, const struct draw *draw,
                              const struct range range[4])
{
    const uint32_t key0 = gauss->words.key[0] + (ROUNDS - 1) * SHUF_PHILOX4X32_WEYL0,
                   key1 = gauss->words.key[1] + (ROUNDS - 1) * SHUF_PHILOX4X32_WEYL1,
                   inverse0 = inverse(SHUF_PHILOX4X32_M0), inverse1 = inverse(SHUF_PHILOX4X32_M1);
    uint64_t found = 0;
    for (int64_t a = range[0].first; a <= range[0].last; a++)
        for (int64_t b = range[1].first; b <= range[1].last; b++)
            for (int64_t c = range[2].first; c <= range[2].last; c++)
                for (int64_t d = range[3].first; d <= range[3].last; d++) {
                    uint32_t w[4] = {(uint32_t)a, (uint32_t)b, (uint32_t)c, (uint32_t)d};
                    undo(w, key0, key1, inverse0, inverse1);
                    found +=
                        w[0] == (uint32_t)draw->number && w[2] == (uint32_t)(draw->number >> 32);
                }
    return found;
}

/* Calls count_fitting() for each choice of signs, and counts the completions. */
static void attack(const shuf_gauss *gauss, const struct draw *draw)
{
    struct range range[4];
    double completions = 0;
    uint64_t found = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1 && completions > ldexp(1, MOST_COMPLETIONS))
            return;
        for (int signs = 0; signs < 16; signs++) {
            double product = 1;
            for (int q = 0; q < 4; q++) {
                range[q] = words_of(draw->z[q], signs >> q & 1);
                product *= (double)(range[q].last - range[q].first + 1);
            }
            completions += pass == 0 ? product : 0;
            found += pass == 1 ? count_fitting(gauss, draw, range) : 0;
        }
        if (pass == 0)
            printf("2^%.1f completions\n", log2(completions));
    }
    printf("with the right key, %" PRIu64 " of them give the number of the draw\n", found);
}

int main(int argc, char **argv)
{
    const int bits = argc > 1 ? atoi(argv[1]) : 32;
    if (bits < 5 || bits > 62)
        return 64;
    const shuf_gauss gauss = shuf_gauss_make(7, 0, 0, 1);
    const struct draw draw = find_draw(&gauss, UINT64_C(1) << bits);
    printf("2^%d values: the values %g %g %g %g of draw %" PRIu64
           " leave %d bits and 4 signs open\n",
           bits, draw.z[0], draw.z[1], draw.z[2], draw.z[3], draw.number, draw.open);
    fflush(stdout);
    attack(&gauss, &draw);
    return 0;
}
