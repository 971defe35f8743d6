/* SPDX-License-Identifier: MIT
 *
 * The loops of streams (shuf/gauss.h, shuf/uniform.h). A loop makes 1024 values at a time. For a
 * Gaussian stream, each lane of a vector has one block. Like simd_ops.c, this file is compiled once
 * for each instruction set.
 */
#include "simd/simd_ops.h"

#include <stdbool.h>
#include <string.h>

#ifdef SHUF__SIMD_VECTORS

#include "stream_vector.h"

/* ---- Gauss ---- */

/* Two constants that the transform handles for all values of a block. A term of its first input is
 * a term of all sums; a term of all inputs is 32 times a term of the first sum.
 *
 *     LESS      number_32() expects sums that are less by this than those of
 *               shuf_gauss_block_make()
 *     SPREAD    each entry is too large by this until the transform subtracts it */
enum { LESS = 48, SPREAD = 0x4000 };

/* LANES neighbouring blocks, from block number `number` on. */
struct blocks {
    uint64_t number;
    vector word[SHUF_GAUSS_BLOCK], s[SHUF_GAUSS_BLOCK];
    vector second[SHUF_GAUSS_BLOCK], early[SHUF_GAUSS_BLOCK]; /* only for doubles */
};

static inline void butterfly(vector *a, vector *b)
{
    const vector sum = V(add_epi32)(*a, *b);
    *b = V(sub_epi32)(*a, *b);
    *a = sum;
}

/* Does three of the five steps of the transform, on eight vectors, which fit the registers.
 * transform_4() does the other two. */
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

/* Does the same as shuf__gauss_entry(), for position p of each lane's block, but subtracts no
 * SPREAD. */
static inline vector entry(vector w, vector lane, int p)
{
    const int32_t *table = &shuf_gauss_table[0][0];
    const vector row = all(0xff0), which = VI(and)(V(add_epi32)(lane, all((uint32_t)p)), all(15));
    const vector first = selected(row, V(srli_epi32)(w, 20), which);
    const vector second = selected(row, V(slli_epi32)(w, 4), VI(xor)(which, all(8)));
    const vector spread = VI(and)(V(srli_epi32)(w, 8), all(0x7fff));
    return V(add_epi32)(V(add_epi32)(gathered(table, first), gathered(table, second)), spread);
}

/* Draw number j of the blocks. */
static inline struct state draw_of(const shuf_stream *words, uint64_t block, uint32_t j)
{
    const uint64_t index = block * SHUF_GAUSS_DRAWS;
    const vector low = V(add_epi32)(V(slli_epi32)(lane_numbers(), 4), all((uint32_t)index + j));
    return normal_of(words, low, (uint32_t)(index >> 32));
}

static inline void make_blocks(const shuf_gauss *g, uint64_t super, unsigned first, bool wide,
                               struct blocks *b)
{
    const vector lane = V(add_epi32)(lane_numbers(), all(first));
    const shuf_stream words = g->words; /* a copy, which writes to `b` cannot change */
    b->number = super * SHUF_GAUSS_LANES + first;
    for (int p = 0; p < SHUF_GAUSS_BLOCK; p += 4) {
        struct state s = draw_of(&words, b->number, (uint32_t)p / 4);
        rounds(&s, SHUF_GAUSS_EARLY_ROUNDS);
        for (int k = 0; k < 4; k++)
            b->s[p + k] = entry(s.c[k], lane, p + k);
        rounds(&s, SHUF_GAUSS_ROUNDS - SHUF_GAUSS_EARLY_ROUNDS);
        memcpy(b->word + p, s.c, sizeof s.c);
    }
    for (int p = 0; wide && p < SHUF_GAUSS_BLOCK; p += 4) {
        struct state s = draw_of(&words, b->number, (uint32_t)(SHUF_GAUSS_BLOCK + p) / 4);
        rounds(&s, SHUF_GAUSS_EARLY_ROUNDS);
        memcpy(b->early + p, s.c, sizeof s.c);
        rounds(&s, SHUF_GAUSS_ROUNDS - SHUF_GAUSS_EARLY_ROUNDS);
        memcpy(b->second + p, s.c, sizeof s.c);
    }
    b->s[0] = V(sub_epi32)(b->s[0], all(LESS));
    transform(b->s);
    b->s[0] = V(sub_epi32)(b->s[0], all(SHUF_GAUSS_BLOCK * SPREAD - SHUF_GAUSS_BLOCK / 2));
}

/* Does the same as shuf_gauss_block_f64(), for half of the lanes. */
static inline doubles value_64(const shuf_gauss *g, const struct blocks *b, int p, int half)
{
    const vector dither = VI(and)(b->word[p], all((1u << SHUF_GAUSS_DITHER) - 1));
    const doubles s = V(fmadd_pd)(doubles_of(b->s[p], half), V(set1_pd)(0x1p-19),
                                  V(set1_pd)((LESS - 16) * 0x1p-19));
    const doubles high = V(fmadd_pd)(doubles_of(dither, half), V(set1_pd)(0x1p-37), s);
    const doubles early = V(add_pd)(doubles_of_unsigned(b->early[p], half), V(set1_pd)(0.5));
    const doubles low = V(fmadd_pd)(doubles_of_unsigned(b->second[p], half), V(set1_pd)(0x1p-69),
                                    V(mul_pd)(early, V(set1_pd)(0x1p-101)));
    const doubles z = negated_64(V(add_pd)(high, low), b->word[p], half);
    return V(fmadd_pd)(z, V(set1_pd)(g->std), V(set1_pd)(g->mean));
}

/* Calls shuf__gauss_double() for one lane. The block that it passes has only the fields that this
 * function reads. */
static __attribute__((noinline)) double small_double(const shuf_gauss *g, const struct blocks *b,
                                                     int p, int lane)
{
    shuf_gauss_block one = {.number = b->number + (unsigned)lane};
    one.s[p] = ((const int32_t *)&b->s[p])[lane] + LESS;
    one.word[p] = ((const uint32_t *)&b->word[p])[lane];
    return shuf__gauss_double(g, &one, (unsigned)p);
}

/* Does the same as shuf__float_sticky(). No rest may be 0. */
static inline floats sticky_32(floats x, floats rest)
{
    const vector differ = V(srai_epi32)(VI(xor)(bits_of_floats(x), bits_of_floats(rest)), 31);
    return floats_of_bits(VI(or)(V(add_epi32)(bits_of_floats(x), differ), all(1)));
}

/* Does the same as shuf__gauss_float(). With `sticky` it does the same as shuf__gauss_sticky(). */
static inline floats number_32(const shuf_gauss *g, const struct blocks *b, int p, bool sticky)
{
    const floats unit = V(set1_ps)(0x1p-37f);
    const floats dither =
        floats_of_bits(VI(or)(VI(and)(b->word[p], all(0x7ffffe)), all(0x4b000001)));
    const floats s = in_units(b->s[p]);
    floats z = V(fmadd_ps)(dither, unit, s);
    lane_bits small = small_lanes(z, (float)SHUF_GAUSS_SMALL);
    if (sticky)
        z = sticky_32(z, V(fmadd_ps)(dither, unit, V(sub_ps)(s, z)));
    z = negated_32(z, b->word[p]);
    if (__builtin_expect(small != 0, 0)) {
        float each[LANES];
        memcpy(each, &z, sizeof each);
        for (; small != 0; small &= small - 1) {
            const int lane = first_lane(small);
            const double exact = small_double(g, b, p, lane);
            each[lane] = sticky ? shuf__float_sticky_of(exact) : (float)exact;
        }
        memcpy(&z, each, sizeof each);
    }
    return z;
}

static inline floats scaled(const shuf_gauss *g, floats z)
{
    return V(fmadd_ps)(z, V(set1_ps)(g->std_f32), V(set1_ps)(g->mean_f32));
}

static inline floats value_f32(const shuf_gauss *g, const struct blocks *b, int p)
{
    return scaled(g, number_32(g, b, p, false));
}

/* The scaled float that put_f16() and put_bf16() round to 16 bits. */
static inline floats value_16(const shuf_gauss *g, const struct blocks *b, int p)
{
    return scaled(g, number_32(g, b, p, true));
}

static inline void put_f64(const shuf_gauss *g, const struct blocks *b, int p, double *out)
{
    for (int half = 0; half < 2; half++)
        store_pairs_64(out + half * LANES, value_64(g, b, p, half), value_64(g, b, p + 1, half));
}

static inline void put_f32(const shuf_gauss *g, const struct blocks *b, int p, float *out)
{
    store_pairs_32(out, value_f32(g, b, p), value_f32(g, b, p + 1));
}

static inline void put_f16(const shuf_gauss *g, const struct blocks *b, int p, uint16_t *out)
{
    const vector low = halves_of(value_16(g, b, p)), high = halves_of(value_16(g, b, p + 1));
    VI(storeu)((void *)out, VI(or)(low, V(slli_epi32)(high, 16)));
}

/* Rounds as shuf_bf16() does, into the upper half of each lane. The lower half is undefined. */
static inline vector rounded_bf16(floats x)
{
    const vector bits = bits_of_floats(x);
    const vector odd = VI(and)(V(srli_epi32)(bits, 16), all(1));
    return V(add_epi32)(V(add_epi32)(bits, all(0x7fff)), odd);
}

static inline void put_bf16(const shuf_gauss *g, const struct blocks *b, int p, uint16_t *out)
{
    const vector low = V(srli_epi32)(rounded_bf16(value_16(g, b, p)), 16);
    const vector high = VI(and)(rounded_bf16(value_16(g, b, p + 1)), all(0xffff0000));
    VI(storeu)((void *)out, VI(or)(low, high));
}

#define GAUSS(name, type)                                                                 \
    static void gauss_##name(const union shuf__source *source, uint64_t super, void *out) \
    {                                                                                     \
        const shuf_gauss g = source->gauss; /* as in make_blocks() */                     \
        struct blocks b;                                                                  \
        for (unsigned first = 0; first < SHUF_GAUSS_LANES; first += LANES) {              \
            make_blocks(&g, super, first, sizeof(type) == 8, &b);                         \
            for (int p = 0; p < SHUF_GAUSS_BLOCK; p += 2)                                 \
                put_##name(&g, &b, p, (type *)out + p * 32 + 2 * first);                  \
        }                                                                                 \
    }

/* ---- Uniform ---- */

void SHUF__SIMD_NAME(shuf__uniform_words)(const shuf_stream *s, uint64_t index, uint32_t *out,
                                          size_t count)
{
    const shuf_stream stream = *s; /* a copy, which writes to `out` cannot change */
    for (size_t i = 0; i < count; i += 4 * LANES) {
        const uint64_t at = index + i / 4;
        struct state words = uniform_of(&stream, V(add_epi32)(lane_numbers(), all((uint32_t)at)),
                                        (uint32_t)(at >> 32));
        rounds(&words, SHUF_UNIFORM_ROUNDS);
        store_fours(out + i, words.c);
    }
}

#else

#define GAUSS(name, type)                                                                   \
    static void gauss_##name(const union shuf__source *source, uint64_t super, void *out)   \
    {                                                                                       \
        for (unsigned lane = 0; lane < SHUF_GAUSS_LANES; lane++) {                          \
            const shuf_gauss_block b =                                                      \
                shuf_gauss_block_make(&source->gauss, super * SHUF_GAUSS_LANES + lane);     \
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
    return shuf_gauss_block_f16(&source->gauss, b, p);
}

static inline uint16_t value_bf16(const union shuf__source *source, const shuf_gauss_block *b,
                                  unsigned p)
{
    return shuf_gauss_block_bf16(&source->gauss, b, p);
}

void SHUF__SIMD_NAME(shuf__uniform_words)(const shuf_stream *s, uint64_t index, uint32_t *out,
                                          size_t count)
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

/* Stores the words in the order in which Philox gives them. A 64-bit value has its lower word
 * first, so the same function serves 32 and 64 bits. */
static void uniform_u32(const union shuf__source *source, uint64_t super, void *out)
{
    SHUF__SIMD_NAME(shuf__uniform_words)
    (&source->uniform, super * (SHUF__SUPER / 4), out, SHUF__SUPER);
}

static void uniform_u64(const union shuf__source *source, uint64_t super, void *out)
{
    SHUF__SIMD_NAME(shuf__uniform_words)
    (&source->uniform, super * (SHUF__SUPER / 2), out, 2 * SHUF__SUPER);
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

shuf__draw *SHUF__SIMD_NAME(shuf__gauss)(shuf_dtype dtype)
{
    static shuf__draw *const table[SHUF__DTYPES] = {[SHUF_F64] = gauss_f64,
                                                    [SHUF_F32] = gauss_f32,
                                                    [SHUF_F16] = gauss_f16,
                                                    [SHUF_BF16] = gauss_bf16};
    return table[dtype];
}

shuf__draw *SHUF__SIMD_NAME(shuf__uniform)(shuf_dtype dtype)
{
    static shuf__draw *const table[SHUF__DTYPES] = {[SHUF_U32] = uniform_u32,
                                                    [SHUF_U64] = uniform_u64,
                                                    [SHUF_F32] = uniform_f32,
                                                    [SHUF_F64] = uniform_f64};
    return table[dtype];
}

shuf__draw *SHUF__SIMD_NAME(shuf__stream)(enum shuf__distribution distribution, shuf_dtype dtype)
{
    static shuf__draw *(*const table[SHUF_DISTRIBUTION_COUNT])(shuf_dtype dtype) = {
#define X(NAME, name, type, value) [SHUF_DISTRIBUTION_##NAME] = SHUF__SIMD_NAME(shuf__##name),
        SHUF__SOURCES(X)
#undef X
    };
    return table[distribution](dtype);
}
