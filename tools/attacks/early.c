/* SPDX-License-Identifier: MIT
 *
 * A relation of early words (six rounds of Philox) and final words (nine rounds) of one draw, for
 * both Gaussian methods. With e and w, M0 and M1 of kernels/inline/shuf/philox4x32.h, and the key
 * words k and k' of rounds seven and eight:
 *
 *     (w_1 / M1) xor lo(M0 e_0) = hi(M0 (hi(M1 e_2) xor e_1 xor k)) xor k'
 *
 * The program counts in how many draws this holds with one k'. Then it compares four bits of the
 * left side with four of hi(M1 e_2) xor e_1, without the key.
 *
 * Early words alone, of neighbouring draws m and m + 1 with hi(M0 m) = hi(M0 (m + 1)): bit 0 of
 * e_2 xor hi(M0 (e_3 / M0)) differs always. The program counts these pairs among the first million.
 *
 *     attack-early [DRAWS]        by default 1000; at once
 */
#include "shuf/stream.h"
#include "words.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 16, SEEDS = 4, NEIGHBOURS = 1000000, DEGREES = (CELLS - 1) * (CELLS - 1) };

/* The chi-squared statistic of independence. */
static double chi_squared(double count[CELLS][CELLS], double draws)
{
    double chi = 0, row[CELLS] = {0}, column[CELLS] = {0};
    for (int i = 0; i < CELLS * CELLS; i++) {
        row[i / CELLS] += count[i / CELLS][i % CELLS];
        column[i % CELLS] += count[i / CELLS][i % CELLS];
    }
    for (int i = 0; i < CELLS * CELLS; i++) {
        const double mean = row[i / CELLS] * column[i % CELLS] / draws,
                     more = count[i / CELLS][i % CELLS] - mean;
        chi += mean > 0 ? more * more / mean : 0;
    }
    return chi;
}

static void attack(uint64_t seed, uint32_t block, uint64_t draws)
{
    const uint32_t m0 = SHUF_PHILOX4X32_M0, m1 = SHUF_PHILOX4X32_M1, divisor = inverse(m1);
    const shuf_stream stream = shuf_stream_make(shuf_key_of_seed(seed), 0, block);
    const uint32_t key = stream.key[0] + 6 * SHUF_PHILOX4X32_WEYL0;
    double count[CELLS][CELLS] = {{0}};
    uint64_t equal = 0;
    uint32_t next_key = 0;
    for (uint64_t m = 0; m < draws; m++) {
        const shuf_stream_draw draw = shuf_stream_draw_make(&stream, m);
        const uint32_t right = high(m1, draw.early[2]) ^ draw.early[1],
                       left = draw.word[1] * divisor ^ m0 * draw.early[0],
                       found = left ^ high(m0, right ^ key);
        next_key = m == 0 ? found : next_key;
        equal += found == next_key;
        count[right >> 28][left >> 28]++;
    }
    const double chi = chi_squared(count, (double)draws);
    printf("seed %" PRIu64 ", %s: one k' in %" PRIu64 " of %" PRIu64
           " draws; without the key chi^2 "
           "%.0f of %d degrees, %.0f standard deviations\n",
           seed, block == SHUF_STREAM_GAUSS ? "table" : "box-muller", equal, draws, chi, DEGREES,
           (chi - DEGREES) / sqrt(2.0 * DEGREES));
}

static void attack_neighbours(uint64_t seed)
{
    const uint32_t m0 = SHUF_PHILOX4X32_M0, divisor = inverse(m0);
    const shuf_stream stream = shuf_stream_make(shuf_key_of_seed(seed), 0, SHUF_STREAM_GAUSS);
    unsigned pairs = 0, different = 0;
    for (uint32_t m = 0; m < NEIGHBOURS; m++) {
        if (high(m0, m) != high(m0, m + 1))
            continue;
        const shuf_stream_draw one = shuf_stream_draw_make(&stream, m),
                               two = shuf_stream_draw_make(&stream, m + 1);
        pairs++;
        different += (one.early[2] ^ high(m0, one.early[3] * divisor) ^ two.early[2] ^
                      high(m0, two.early[3] * divisor)) &
                     1;
    }
    printf("seed %" PRIu64 ", neighbours: the bit differs in %u of %u pairs\n", seed, different,
           pairs);
}

int main(int argc, char **argv)
{
    const uint64_t draws = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    for (uint64_t seed = 0; draws > 0 && seed < SEEDS; seed++) {
        attack(seed, SHUF_STREAM_GAUSS, draws);
        attack(seed, SHUF_STREAM_BOX_MULLER, draws);
        attack_neighbours(seed);
    }
    return draws > 0 ? 0 : 64;
}
