/* SPDX-License-Identifier: MIT
 *
 * Vectors of 32-bit words for the loops of streams, their random words, and a logarithm.
 * ops_stream.c, ops_box_muller.c, ops_exponential.c and ops_bernoulli.c have the loops. Each lane
 * belongs to one block of Gaussian values, or to one draw. In a Gaussian stream the blocks take
 * turns in pairs of values, so a store interleaves the lanes of two vectors.
 *
 * There is a header for each instruction set. It has V(operation) for vectors of numbers and
 * VI(operation) for vectors of bits, by their names on x86, and operations that each set does in
 * its own way.
 */
#ifndef SHUF__SIMD_STREAM_VECTOR_H
#define SHUF__SIMD_STREAM_VECTOR_H

#include "shuf/box_muller.h"
#include "shuf/stream.h"

#if defined(__AVX512BW__)
#include "stream_avx512.h"
#elif defined(__AVX2__)
#include "stream_avx2.h"
#else
#include "stream_neon.h"
#endif

#include <stdint.h>
#include <string.h>

static inline vector all(uint32_t x)
{
    return V(set1_epi32)((int)x);
}

/* Lane i holds i. */
static inline vector lane_numbers(void)
{
    int32_t number[LANES];
    for (int i = 0; i < LANES; i++)
        number[i] = i;
    return VI(loadu)((const void *)number);
}

static inline vector bits_of_floats(floats x)
{
    vector bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline floats floats_of_bits(vector bits)
{
    floats x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- Words ---- */

/* The state of Philox: four words in each lane, and the keys of the next round. */
struct state {
    vector c[4];
    uint32_t key[2];
};

/* The state for words 4 * index to 4 * index + 3, with index = high << 32 | low. Lanes differ only
 * in `low`. */
static inline struct state uniform_of(const shuf_stream *s, vector low, uint32_t high)
{
    return (struct state){{low, all(high), all(s->high[0]), all(s->high[1])},
                          {s->key[0], s->key[1]}};
}

/* The state of shuf_stream_draw_make() before the first round. */
static inline struct state normal_of(const shuf_stream *s, vector low, uint32_t high)
{
    return (struct state){{low, all(s->high[0]), all(high), all(s->high[1])},
                          {s->key[0], s->key[1]}};
}

static inline void rounds(struct state *s, int count)
{
    const vector m0 = all(SHUF_PHILOX4X32_M0), m1 = all(SHUF_PHILOX4X32_M1);
    for (int round = 0; round < count; round++) {
        vector left_hi, right_hi;
        const vector left = product(s->c[0], m0, &left_hi), right = product(s->c[2], m1, &right_hi);
        s->c[0] = VI(xor)(VI(xor)(right_hi, s->c[1]), all(s->key[0]));
        s->c[1] = right;
        s->c[2] = VI(xor)(VI(xor)(left_hi, s->c[3]), all(s->key[1]));
        s->c[3] = left;
        s->key[0] += SHUF_PHILOX4X32_WEYL0;
        s->key[1] += SHUF_PHILOX4X32_WEYL1;
    }
}

/* The words of LANES neighbouring draws (shuf_stream_draw_make()). */
struct draws {
    vector word[4], early[4];
};

/* Makes LANES draws, from draw number `index` on. The upper 32 bits of their numbers must be equal.
 */
static inline void make_draws(const shuf_stream *s, uint64_t index, struct draws *d)
{
    struct state state =
        normal_of(s, V(add_epi32)(lane_numbers(), all((uint32_t)index)), (uint32_t)(index >> 32));
    rounds(&state, SHUF_GAUSS_EARLY_ROUNDS);
    memcpy(d->early, state.c, sizeof state.c);
    rounds(&state, SHUF_GAUSS_ROUNDS - SHUF_GAUSS_EARLY_ROUNDS);
    memcpy(d->word, state.c, sizeof state.c);
}

/* ---- The logarithm of shuf/box_muller.h in doubles, on vectors of 64-bit words ---- */

static inline vector bits_of_doubles(doubles x)
{
    vector bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline doubles doubles_of_bits(vector bits)
{
    doubles x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static const uint64_t sign_64 = UINT64_C(1) << 63;

static inline doubles log_64(doubles a)
{
    static const double c[] = {SHUF_BOX_MULLER_LOG_F64};
    const doubles b = V(mul_pd)(a, a);
    doubles odd = V(set1_pd)(c[21]), even = V(set1_pd)(c[20]);
    for (int i = 19; i > 1; i -= 2) {
        odd = V(fmadd_pd)(b, odd, V(set1_pd)(c[i]));
        even = V(fmadd_pd)(b, even, V(set1_pd)(c[i - 1]));
    }
    odd = V(fmadd_pd)(b, odd, V(set1_pd)(c[1]));
    return V(fmadd_pd)(a, V(fmadd_pd)(a, even, odd), V(set1_pd)(c[0]));
}

/* Does the same as shuf_box_muller_log_f64(): -2 ln u. */
static inline doubles square_64(vector high, vector low)
{
    const vector rest = all_64(~sign_64), two_52 = all_64(0x4330000000000000);
    const doubles h = doubles_of_wide(VI(and)(high, rest));
    const doubles l = doubles_of_wide(VI(or)(VI(and)(low, rest), all_64(1)));
    const doubles x = V(fmadd_pd)(l, V(set1_pd)(0x1p-63), h);
    const vector octaves = V(sub_epi64)(all_64(1086), V(srli_epi64)(bits_of_doubles(x), 52));
    const vector scale = V(slli_epi64)(V(add_epi64)(octaves, all_64(959)), 52);
    const doubles k =
        chosen_64(high, V(set1_pd)(0.0),
                  V(sub_pd)(doubles_of_bits(VI(or)(octaves, two_52)), V(set1_pd)(0x1p52)));
    const doubles near_1 = V(mul_pd)(x, V(set1_pd)(0x1p-64));
    const doubles a =
        chosen_64(high, near_1, V(fnmadd_pd)(x, doubles_of_bits(scale), V(set1_pd)(1.0)));
    return V(fmadd_pd)(a, log_64(a), V(mul_pd)(k, V(set1_pd)(SHUF_BOX_MULLER_OCTAVE_F64)));
}

#endif
