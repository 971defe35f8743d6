/* SPDX-License-Identifier: MIT
 *
 * The loops of streams: 1024 values at a time, as shuf/gauss.h and shuf/uniform.h
 * define them, a lane for each block. Compiled as lanes.c is.
 */
#include "lanes.h"

#include <stdbool.h>
#include <string.h>

#ifdef __AVX2__
#include "stream_vector.h"
#endif

#ifdef __AVX2__

/* ---- Words ---- */

/* Words 4 * index to 4 * index + 3, for an index in each lane that differs in its lower half
 * alone. */
static inline void draw_words(const shuf_stream *s, vector low, uint32_t high, int rounds,
                              vector word[4])
{
    const vector m0 = all(SHUF_PHILOX4X32_M0), m1 = all(SHUF_PHILOX4X32_M1);
    uint32_t key0 = s->key[0], key1 = s->key[1];
    vector c0 = low, c1 = all(high), c2 = all(s->high[0]), c3 = all(s->high[1]);
    for (int round = 0; round < rounds; round++) {
        vector left_hi, right_hi;
        const vector left = product(c0, m0, &left_hi), right = product(c2, m1, &right_hi);
        c0 = VI(xor)(VI(xor)(right_hi, c1), all(key0));
        c1 = right;
        c2 = VI(xor)(VI(xor)(left_hi, c3), all(key1));
        c3 = left;
        key0 += SHUF_PHILOX4X32_WEYL0;
        key1 += SHUF_PHILOX4X32_WEYL1;
    }
    word[0] = c0;
    word[1] = c1;
    word[2] = c2;
    word[3] = c3;
}

/* ---- Gauss ---- */

/* The blocks of LANES neighbouring lanes. */
struct blocks {
    vector word[SHUF_GAUSS_BLOCK], more[SHUF_GAUSS_BLOCK], s[SHUF_GAUSS_BLOCK];
};

static inline void butterfly(vector *a, vector *b)
{
    const vector sum = V(add_epi32)(*a, *b);
    *b = V(sub_epi32)(*a, *b);
    *a = sum;
}

/* Three layers of the transform at once, which fit the registers; then the other two. */
static inline void transform_8(vector *x)
{
    vector y[8];
    for (int i = 0; i < 8; i++)
        y[i] = x[i];
    for (int i = 0; i < 4; i++)
        butterfly(&y[2 * i], &y[2 * i + 1]);
    for (int i = 0; i < 4; i++)
        butterfly(&y[i / 2 * 4 + i % 2], &y[i / 2 * 4 + i % 2 + 2]);
    for (int i = 0; i < 4; i++)
        butterfly(&y[i], &y[i + 4]);
    for (int i = 0; i < 8; i++)
        x[i] = y[i];
}

static inline void transform_4(vector *x)
{
    vector a = x[0], b = x[8], c = x[16], d = x[24];
    butterfly(&a, &b);
    butterfly(&c, &d);
    butterfly(&a, &c);
    butterfly(&b, &d);
    x[0] = a;
    x[8] = b;
    x[16] = c;
    x[24] = d;
}

static inline void transform(vector x[SHUF_GAUSS_BLOCK])
{
    for (int i = 0; i < 4; i++)
        transform_8(x + 8 * i);
    for (int i = 0; i < 8; i++)
        transform_4(x + i);
}

static inline void look_up(struct blocks *b, vector lane)
{
    const int32_t *table = &shuf_gauss_table[0][0];
    for (int p = 0; p < SHUF_GAUSS_BLOCK; p++) {
        const vector w = b->word[p], bits = all(0xff0);
        const vector which = VI(and)(V(add_epi32)(lane, all((uint32_t)p)), all(15));
        const vector other = VI(xor)(which, all(8));
        b->s[p] = V(add_epi32)(gathered(table, VI(or)(VI(and)(V(slli_epi32)(w, 4), bits), which)),
                               gathered(table, VI(or)(VI(and)(V(srli_epi32)(w, 4), bits), other)));
    }
}

/* Words 4 * index to 4 * index + 31 of each lane; neighbouring lanes are 16 indices apart. */
static inline void draw_block(const shuf_gauss *g, vector lane, uint64_t index,
                              vector word[SHUF_GAUSS_BLOCK])
{
    const vector low = V(add_epi32)(V(slli_epi32)(lane, 4), all((uint32_t)index));
    for (uint32_t j = 0; j < SHUF_GAUSS_BLOCK / 4; j++)
        draw_words(&g->words, V(add_epi32)(low, all(j)), (uint32_t)(index >> 32), SHUF_GAUSS_OLD_ROUNDS,
                   word + 4 * j);
}

/* Signs included. */
static inline void make_blocks(const shuf_gauss *g, uint64_t super, unsigned first, bool more,
                               struct blocks *b)
{
    const vector lane = V(add_epi32)(lane_numbers(), all(first));
    const uint64_t index = super * (SHUF_GAUSS_LANES * SHUF_GAUSS_BLOCK / 2);
    draw_block(g, lane, index, b->word);
    if (more)
        draw_block(g, lane, index + SHUF_GAUSS_BLOCK / 4, b->more);
    look_up(b, lane);
    transform(b->s);
    for (int p = 0; p < SHUF_GAUSS_BLOCK; p++)
        b->s[p] = negated(b->s[p], b->word[p]);
}

static inline doubles value_64(const shuf_gauss *g, const struct blocks *b, int p, int half)
{
    const doubles h = V(add_pd)(doubles_of(b->more[p], half), V(set1_pd)(0.5));
    const doubles y = V(fmadd_pd)(doubles_of(b->s[p], half), V(set1_pd)(g->a), V(set1_pd)(g->mean));
    return V(fmadd_pd)(h, V(set1_pd)(g->c), y);
}

static inline floats value_32(const shuf_gauss *g, const struct blocks *b, int p)
{
    const vector h =
        VI(or)(VI(and)(b->word[p], all(0xffff0000)), V(srli_epi32)(b->word[p ^ 1], 16));
    const floats y =
        V(fmadd_ps)(V(cvtepi32_ps)(b->s[p]), V(set1_ps)(g->a_f32), V(set1_ps)(g->mean_f32));
    return V(fmadd_ps)(V(cvtepi32_ps)(h), V(set1_ps)(g->c_f32), y);
}

static inline void put_f64(const shuf_gauss *g, const struct blocks *b, int p, double *out)
{
    for (int half = 0; half < 2; half++)
        store_pairs_64(out + half * LANES, value_64(g, b, p, half), value_64(g, b, p + 1, half));
}

static inline void put_f32(const shuf_gauss *g, const struct blocks *b, int p, float *out)
{
    store_pairs_32(out, value_32(g, b, p), value_32(g, b, p + 1));
}

static inline void put_f16(const shuf_gauss *g, const struct blocks *b, int p, uint16_t *out)
{
    const vector low = halves_of(value_32(g, b, p)), high = halves_of(value_32(g, b, p + 1));
    VI(storeu)((void *)out, VI(or)(low, V(slli_epi32)(high, 16)));
}

/* shuf_bf16(), still in the upper half of each lane, with something below it. */
static inline vector rounded_bf16(floats x)
{
    vector bits;
    memcpy(&bits, &x, sizeof bits);
    const vector odd = VI(and)(V(srli_epi32)(bits, 16), all(1));
    return V(add_epi32)(V(add_epi32)(bits, all(0x7fff)), odd);
}

static inline void put_bf16(const shuf_gauss *g, const struct blocks *b, int p, uint16_t *out)
{
    const vector low = V(srli_epi32)(rounded_bf16(value_32(g, b, p)), 16);
    const vector high = VI(and)(rounded_bf16(value_32(g, b, p + 1)), all(0xffff0000));
    VI(storeu)((void *)out, VI(or)(low, high));
}

#define GAUSS(name, type)                                                                 \
    static void gauss_##name(const union shuf__source *source, uint64_t super, void *out) \
    {                                                                                     \
        struct blocks b;                                                                  \
        for (unsigned first = 0; first < SHUF_GAUSS_LANES; first += LANES) {              \
            make_blocks(&source->gauss, super, first, sizeof(type) == 8, &b);             \
            for (int p = 0; p < SHUF_GAUSS_BLOCK; p += 2)                                 \
                put_##name(&source->gauss, &b, p, (type *)out + p * 32 + 2 * first);      \
        }                                                                                 \
    }

/* ---- Uniform ---- */

static inline void draw(const shuf_stream *s, uint64_t index, uint32_t *out, size_t count)
{
    for (size_t i = 0; i < count; i += 4 * LANES) {
        vector word[4];
        const uint64_t at = index + i / 4;
        draw_words(s, V(add_epi32)(lane_numbers(), all((uint32_t)at)), (uint32_t)(at >> 32),
                   SHUF_UNIFORM_ROUNDS, word);
        store_fours(out + i, word);
    }
}

#else

#define GAUSS(name, type)                                                                   \
    static void gauss_##name(const union shuf__source *source, uint64_t super, void *out)   \
    {                                                                                       \
        for (unsigned lane = 0; lane < SHUF_GAUSS_LANES; lane++) {                          \
            const shuf_gauss_block b = shuf_gauss_block_make(                               \
                &source->gauss, super * SHUF_GAUSS_LANES + lane, sizeof(type) == 8);        \
            for (unsigned p = 0; p < SHUF_GAUSS_BLOCK; p++)                                 \
                ((type *)out)[p / 2 * 64 + 2 * lane + p % 2] = value_##name(source, &b, p); \
        }                                                                                   \
    }

static inline double value_f64(const union shuf__source *source, const shuf_gauss_block *b,
                               unsigned p)
{
    return shuf_gauss_block_f64(&source->gauss, b, p);
}

static inline float value_f32(const union shuf__source *source, const shuf_gauss_block *b,
                              unsigned p)
{
    return shuf_gauss_block_f32(&source->gauss, b, p);
}

static inline uint16_t value_f16(const union shuf__source *source, const shuf_gauss_block *b,
                                 unsigned p)
{
    return shuf_f16(value_f32(source, b, p));
}

static inline uint16_t value_bf16(const union shuf__source *source, const shuf_gauss_block *b,
                                  unsigned p)
{
    return shuf_bf16(value_f32(source, b, p));
}

static inline void draw(const shuf_stream *s, uint64_t index, uint32_t *out, size_t count)
{
    for (size_t i = 0; i < count; i += 4) {
        const shuf_philox4x32 words = shuf_stream_words(s, index + i / 4, SHUF_UNIFORM_ROUNDS);
        memcpy(out + i, words.word, sizeof words.word);
    }
}

#endif

GAUSS(f64, double)
GAUSS(f32, float)
GAUSS(f16, uint16_t)
GAUSS(bf16, uint16_t)

/* Words in the order in which they were drawn, the lower half of a wide value first: both widths
 * are the same bytes. */
static void uniform_u32(const union shuf__source *source, uint64_t super, void *out)
{
    draw(&source->uniform, super * (SHUF__SUPER / 4), out, SHUF__SUPER);
}

static void uniform_u64(const union shuf__source *source, uint64_t super, void *out)
{
    draw(&source->uniform, super * (SHUF__SUPER / 2), out, 2 * SHUF__SUPER);
}

static void uniform_f32(const union shuf__source *source, uint64_t super, void *out)
{
    uint32_t word[SHUF__SUPER];
    uniform_u32(source, super, word);
    for (int i = 0; i < SHUF__SUPER; i++)
        ((float *)out)[i] = shuf_uniform_f32_of(word[i]);
}

static void uniform_f64(const union shuf__source *source, uint64_t super, void *out)
{
    uint64_t word[SHUF__SUPER];
    uniform_u64(source, super, word);
    for (int i = 0; i < SHUF__SUPER; i++)
        ((double *)out)[i] = shuf_uniform_f64_of(word[i]);
}

shuf__draw *SHUF__LANES_NAME(shuf__stream)(enum shuf__distribution distribution,
                                           enum shuf_number number)
{
    static shuf__draw *const table[SHUF_DISTRIBUTION_COUNT][SHUF_NUMBER_COUNT] = {
        [SHUF_DISTRIBUTION_GAUSS] = {[SHUF_NUMBER_F64] = gauss_f64,
                                     [SHUF_NUMBER_F32] = gauss_f32,
                                     [SHUF_NUMBER_F16] = gauss_f16,
                                     [SHUF_NUMBER_BF16] = gauss_bf16},
        [SHUF_DISTRIBUTION_UNIFORM] = {[SHUF_NUMBER_U32] = uniform_u32,
                                       [SHUF_NUMBER_U64] = uniform_u64,
                                       [SHUF_NUMBER_F32] = uniform_f32,
                                       [SHUF_NUMBER_F64] = uniform_f64},
    };
    return distribution == SHUF_DISTRIBUTION_BOX_MULLER ? SHUF__LANES_NAME(shuf__box_muller)(number)
                                                        : table[distribution][number];
}
