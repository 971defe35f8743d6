/* SPDX-License-Identifier: MIT
 *
 * The generators of streams: those of shufd, a good one by another method, and some with faults
 * that the tests must find.
 */
#include "broken_gauss_table.h"
#include "shuf/box_muller.h"
#include "shuf/gauss.h"
#include "shuf/integers.h"
#include "shuf/key.h"
#include "shuf/philox4x32.h"
#include "shuf/philox4x64.h"
#include "shuf/uniform.h"
#include "stream.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

/* ---- The streams of shufd, computed by the inline C ---- */

static double gauss_value_of(const shuf_gauss *g, const shuf_gauss_block *block, unsigned position,
                             shuf_dtype dtype)
{
    switch (dtype) {
    case SHUF_F64:
        return shuf_gauss_block_f64(g, block, position);
    case SHUF_F16:
        return shuf_of_f16(shuf_gauss_block_f16(g, block, position));
    case SHUF_BF16:
        return shuf_of_bf16(shuf_gauss_block_bf16(g, block, position));
    default:
        return shuf_gauss_block_f32(g, block, position);
    }
}

static void fill_gauss(uint64_t seed, uint64_t stream, shuf_dtype dtype, uint64_t first,
                       size_t count, double *value)
{
    const shuf_gauss g = shuf_gauss_make(seed, stream, 0, 1);
    for (size_t i = 0; i < count; i += SHUF_GAUSS_SUPER)
        for (unsigned lane = 0; lane < SHUF_GAUSS_LANES; lane++) {
            const shuf_gauss_block block =
                shuf_gauss_block_make(&g, shuf_gauss_block_of(first + i) + lane);
            for (unsigned p = 0; p < SHUF_GAUSS_BLOCK; p++)
                value[i + 64 * (p / 2) + 2 * lane + p % 2] = gauss_value_of(&g, &block, p, dtype);
        }
}

static void fill_uniform(uint64_t seed, uint64_t stream, shuf_dtype dtype, uint64_t first,
                         size_t count, double *value)
{
    const shuf_stream s = shuf_uniform_make(seed, stream);
    const unsigned words = dtype == SHUF_F64 ? 2 : 1;
    for (size_t i = 0; i < count; i += 4 / words) {
        const shuf_philox4x32 w =
            shuf_stream_words(&s, (first + i) * words / 4, SHUF_UNIFORM_ROUNDS);
        for (unsigned k = 0; k < 4 && words == 1; k++)
            value[i + k] = shuf_uniform_f32_of(w.word[k]);
        for (unsigned k = 0; k < 2 && words == 2; k++)
            value[i + k] = shuf_uniform_f64_of((uint64_t)w.word[2 * k + 1] << 32 | w.word[2 * k]);
    }
}

/* Integers below 3 * 2^30 or 3 * 2^62, for which a quarter of the words do not decide. A third of
 * each is a word of 30 or 62 bits, all equally likely. */
static void fill_integers(uint64_t seed, uint64_t stream, shuf_dtype dtype, uint64_t first,
                          size_t count, double *value)
{
    const bool wide = dtype == SHUF_F64;
    const shuf_integers s = shuf_integers_make(seed, stream, UINT64_C(3) << (wide ? 62 : 30));
    for (size_t i = 0; i < count; i++)
        value[i] = wide ? shuf_uniform_f64_of(shuf_integers_u64(&s, first + i) / 3 << 2)
                        : shuf_uniform_f32_of(shuf_integers_u32(&s, first + i) / 3 << 2);
}

static double narrowed(const shuf_box_muller *b, shuf_dtype dtype, float z)
{
    return dtype == SHUF_F32 ? (double)z
                             : shuf__dtype_round(dtype, shuf_box_muller_scaled_odd(b, z));
}

static void fill_box_muller(uint64_t seed, uint64_t stream, shuf_dtype dtype, uint64_t first,
                            size_t count, double *value)
{
    const shuf_box_muller b = shuf_box_muller_make(seed, stream, 0, 1);
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    const unsigned each = dtype == SHUF_F64 ? 2 : 4;
    for (size_t i = 0; i < count; i += each) {
        const shuf_stream_draw draw = shuf_stream_draw_make(&b.words, (first + i) / each);
        if (dtype == SHUF_F64) {
            const shuf_box_muller_wide words = shuf_box_muller_wide_of(&draw);
            shuf_box_muller_pair_f64(&terms, &words, value + i);
            continue;
        }
        for (unsigned k = 0; k < each; k += 2) {
            const shuf_box_muller_words words = shuf_box_muller_words_of(&draw, (int)k / 2);
            float z[2];
            shuf_box_muller_pair_f32(&words, z);
            value[i + k] = narrowed(&b, dtype, z[0]);
            value[i + k + 1] = narrowed(&b, dtype, z[1]);
        }
    }
}

const struct shuf__stream_generator shuf__stream_gauss = {
    "gauss", "normal: the Gaussian stream of shufd", false, fill_gauss};
const struct shuf__stream_generator shuf__stream_box_muller = {
    "box-muller", "normal: shufd's stream by Box and Muller's method", false, fill_box_muller};
const struct shuf__stream_generator shuf__stream_uniform = {
    "uniform", "uniform: the uniform stream of shufd", true, fill_uniform};
const struct shuf__stream_generator shuf__stream_integers = {
    "integers", "uniform: shufd's integers below 3 * 2^30 or 3 * 2^62, divided by 3", true,
    fill_integers};

/* ---- A faulty table ---- */

/* `broken-gauss`: an old Gaussian stream whose blocks are not random enough. Each of 32 random
 * words selects two table numbers. Their 32 sums go through a Walsh-Hadamard transform. Each result
 * then gets a uniform part that is finer than the distance of two results. This stream is kept to
 * show that the tests detect its fault. */

enum { PURPOSE = 4, ROUNDS = 7 };

struct key {
    uint32_t key[2], high[2];
};

struct block {
    int32_t s[SHUF__BLOCK];
    uint32_t word[SHUF__BLOCK], more[SHUF__BLOCK];
};

static void draw(const struct key *key, uint64_t index, uint32_t word[SHUF__BLOCK])
{
    for (unsigned j = 0; j < SHUF__BLOCK / 4; j++, index++) {
        const shuf_philox4x32 counter = {
            {(uint32_t)index, (uint32_t)(index >> 32), key->high[0], key->high[1]}};
        const shuf_philox4x32 four =
            shuf_philox4x32_rounds(counter, key->key[0], key->key[1], ROUNDS);
        for (unsigned k = 0; k < 4; k++)
            word[4 * j + k] = four.word[k];
    }
}

static int32_t table_number(unsigned index, unsigned table)
{
    const int32_t size = shuf__broken_table[index % 128][table % 16];
    return index & 128 ? -size : size;
}

static void transform(int32_t x[SHUF__BLOCK])
{
    for (unsigned step = 1; step < SHUF__BLOCK; step *= 2)
        for (unsigned p = 0; p < SHUF__BLOCK; p++)
            if (!(p & step)) {
                const int32_t sum = x[p] + x[p + step], difference = x[p] - x[p + step];
                x[p] = sum;
                x[p + step] = difference;
            }
}

static struct block make_block(const struct key *key, uint64_t number)
{
    struct block b;
    const unsigned lane = (unsigned)(number % SHUF__BLOCK);
    draw(key, SHUF__BLOCK / 2 * number, b.word);
    draw(key, SHUF__BLOCK / 2 * number + SHUF__BLOCK / 4, b.more);
    for (unsigned p = 0; p < SHUF__BLOCK; p++)
        b.s[p] = table_number(b.word[p] & 255, p + lane) +
                 table_number(b.word[p] >> 8 & 255, p + lane + 8);
    transform(b.s);
    for (unsigned p = 0; p < SHUF__BLOCK; p++)
        b.s[p] = b.word[p] >> 31 ? -b.s[p] : b.s[p];
    return b;
}

static double broken_gauss_value_of(const struct block *b, unsigned p, shuf_dtype dtype)
{
    if (dtype == SHUF_F64)
        return fma((int32_t)b->more[p] + 0.5, SHUF__BROKEN_C, fma(b->s[p], SHUF__BROKEN_A, 0));
    const int32_t h = (int32_t)((b->word[p] & 0xffff0000) | b->word[p ^ 1] >> 16);
    const float a = (float)SHUF__BROKEN_A, c = (float)SHUF__BROKEN_C;
    return shuf__dtype_round(dtype, fmaf((float)h, c, fmaf((float)b->s[p], a, 0)));
}

static void broken_gauss_fill(uint64_t seed, uint64_t stream, shuf_dtype dtype, uint64_t first,
                              size_t count, double *value)
{
    uint32_t word[8];
    shuf_key_words(shuf_key_of_seed(seed), stream, (enum shuf_purpose)PURPOSE, 0, word);
    const struct key key = {{word[0], word[1]}, {word[2], word[3]}};
    for (size_t i = 0; i < count; i += SHUF__SUPERBLOCK)
        for (unsigned lane = 0; lane < SHUF__BLOCK; lane++) {
            const struct block block = make_block(&key, (first + i) / SHUF__BLOCK + lane);
            for (unsigned p = 0; p < SHUF__BLOCK; p++)
                value[i + 64 * (p / 2) + 2 * lane + p % 2] =
                    broken_gauss_value_of(&block, p, dtype);
        }
}

const struct shuf__stream_generator shuf__stream_broken_gauss = {
    "broken-gauss", "not normal: the Gaussian stream of shufd as it was", false, broken_gauss_fill};

/* ---- Streams for comparison ---- */

/* A good one by another method, and some with faults that the tests must find. */

/* Words of a superblock, one after the other. */
struct words {
    uint64_t seed, stream, superblock, used;
    shuf_philox4x64 made;
};

static uint64_t next(struct words *w)
{
    if (w->used % 4 == 0) {
        const shuf_philox4x64 counter = {{w->used / 4, w->superblock, w->stream, 0}};
        w->made = shuf_philox4x64_10(counter, w->seed, 0);
    }
    return w->made.word[w->used++ % 4];
}

/* Uniform numbers between 0 and 1, of 53 and of 32 bits; never 0 or 1. */
static double next_53(struct words *w)
{
    return ((double)(next(w) >> 11) + 0.5) * 0x1p-53;
}

static void next_two_32(struct words *w, double u[2])
{
    const uint64_t word = next(w);
    u[0] = ((double)(word >> 32) + 0.5) * 0x1p-32;
    u[1] = ((double)(uint32_t)word + 0.5) * 0x1p-32;
}

/* Marsaglia and Bray: "A convenient method for generating normal variables", SIAM Review 6, 1964.
 */
static void polar(struct words *w, double *value)
{
    for (size_t i = 0; i < SHUF__SUPERBLOCK; i += 2) {
        double u, v, s;
        do {
            u = 2 * next_53(w) - 1;
            v = 2 * next_53(w) - 1;
            s = u * u + v * v;
        } while (s >= 1);
        const double factor = sqrt(-2 * log(s) / s);
        value[i] = u * factor;
        value[i + 1] = v * factor;
    }
}

/* A poor version of Box and Muller's method: its largest value is sqrt(66 ln 2) = 6.76, and it has
 * only 2^32 radii. */
static void box_muller_32(struct words *w, double *value)
{
    for (size_t i = 0; i < SHUF__SUPERBLOCK; i += 2) {
        double u[2];
        next_two_32(w, u);
        const double radius = sqrt(-2 * log(u[0]));
        value[i] = radius * cos(2 * M_PI * u[1]);
        value[i + 1] = radius * sin(2 * M_PI * u[1]);
    }
}

static void irwin_hall(struct words *w, double *value)
{
    for (size_t i = 0; i < SHUF__SUPERBLOCK; i++) {
        value[i] = -6;
        for (int k = 0; k < 12; k++)
            value[i] += next_53(w);
    }
}

/* 12 bits choose one of 4096 values, the medians of 4096 parts of equal probability. */
static void icdf_table(struct words *w, double *value)
{
    for (size_t i = 0; i < SHUF__SUPERBLOCK; i += 4) {
        const uint64_t word = next(w);
        for (unsigned k = 0; k < 4; k++)
            value[i + k] = gsl_cdf_ugaussian_Pinv(((double)(word >> 16 * k & 4095) + 0.5) / 4096);
    }
}

static void streams_fill(void (*make)(struct words *w, double *value), uint64_t seed,
                         uint64_t stream, shuf_dtype dtype, uint64_t first, size_t count,
                         double *value)
{
    for (size_t i = 0; i < count; i += SHUF__SUPERBLOCK) {
        struct words w = {seed, stream, (first + i) / SHUF__SUPERBLOCK, 0, {{0}}};
        make(&w, value + i);
    }
    for (size_t i = 0; i < count && dtype != SHUF_F64; i++)
        value[i] = shuf__dtype_round(dtype, value[i]);
}

#define GENERATOR(name, text, what)                                                           \
    static void fill_##name(uint64_t seed, uint64_t stream, shuf_dtype dtype, uint64_t first, \
                            size_t count, double *value)                                      \
    {                                                                                         \
        streams_fill(name, seed, stream, dtype, first, count, value);                         \
    }                                                                                         \
    static const struct shuf__stream_generator generator_##name = {text, what, false, fill_##name}

GENERATOR(polar, "polar", "normal: Marsaglia's polar method, 53 bits");
GENERATOR(box_muller_32, "box-muller-32", "not normal: Box and Muller's method, 32 bits");
GENERATOR(irwin_hall, "irwin-hall", "not normal: 12 uniforms less 6");
GENERATOR(icdf_table, "icdf-table", "not normal: one of 4096 quantiles");

/* Half of the values of a superblock are doubles, and the others floats, as from a program that
 * counts values and not random words when it changes the type. */
static void fill_mixed_uniform(uint64_t seed, uint64_t stream, shuf_dtype dtype, uint64_t first,
                               size_t count, double *value)
{
    const shuf_stream s = shuf_uniform_make(seed, stream);
    (void)dtype;
    for (size_t i = 0; i < count; i++) {
        const uint64_t from = first + i - i % SHUF__SUPERBLOCK, k = i % SHUF__SUPERBLOCK;
        value[i] = k < SHUF__SUPERBLOCK / 2 ? shuf_uniform_f64(&s, from / 2 + k)
                                            : shuf_uniform_f32(&s, from + k);
    }
}

static void fill_mixed_box_muller(uint64_t seed, uint64_t stream, shuf_dtype dtype, uint64_t first,
                                  size_t count, double *value)
{
    const shuf_box_muller b = shuf_box_muller_make(seed, stream, 0, 1);
    (void)dtype;
    for (size_t i = 0; i < count; i++) {
        const uint64_t from = first + i - i % SHUF__SUPERBLOCK, k = i % SHUF__SUPERBLOCK;
        value[i] = k < SHUF__SUPERBLOCK / 2 ? shuf_box_muller_f64(&b, from / 2 + k)
                                            : shuf_box_muller_f32(&b, from + k);
    }
}

static const struct shuf__stream_generator mixed_uniform = {
    "mixed-uniform", "not random: f64 and f32 share words", true, fill_mixed_uniform};
static const struct shuf__stream_generator mixed_box_muller = {
    "mixed-box-muller", "not random: f64 and f32 share words", false, fill_mixed_box_muller};

const struct shuf__stream_generator *const shuf__stream_generators[] = {
    &shuf__stream_gauss,    &shuf__stream_box_muller, &shuf__stream_uniform,
    &shuf__stream_integers, &generator_polar,         &shuf__stream_broken_gauss,
    &generator_icdf_table,  &generator_box_muller_32, &generator_irwin_hall,
    &mixed_uniform,         &mixed_box_muller,        NULL,
};

const struct shuf__stream_generator *shuf__stream_generator_find(const char *name)
{
    const struct shuf__stream_generator *const *row = shuf__stream_generators;
    while (*row && strcmp((*row)->name, name) != 0)
        row++;
    return *row;
}
