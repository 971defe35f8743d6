/* SPDX-License-Identifier: MIT
 *
 * Streams for comparison with those of shufd: a good one by another method, and some with faults
 * that the tests must find.
 */
#include "stream.h"

#include "shuf/box_muller.h"
#include "shuf/philox4x64.h"
#include "shuf/uniform.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

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

static void fill(void (*make)(struct words *w, double *value), uint64_t seed, uint64_t stream,
                 shuf_dtype dtype, uint64_t first, size_t count, double *value)
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
        fill(name, seed, stream, dtype, first, count, value);                                 \
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
