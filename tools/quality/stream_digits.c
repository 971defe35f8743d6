/* SPDX-License-Identifier: MIT
 *
 * Tests of the last digits. Are the lowest bits of values uniform at each exponent? Do values
 * repeat more often than the type implies? Do the radii of pairs repeat? A generator repeats radii
 * if it makes two values from a uniform number of too few bits.
 */
#include "stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lowest bits ----------------------------------------------------------------- */

enum { BITS = 256, LEAST_EXPONENT = -24, MOST_EXPONENT = 2 };
enum { EXPONENTS = MOST_EXPONENT - LEAST_EXPONENT + 1 };

static unsigned low_bits(shuf_dtype dtype, double z)
{
    uint64_t bits;
    uint32_t narrow;
    const float single = (float)z;
    memcpy(&bits, &z, sizeof bits);
    memcpy(&narrow, &single, sizeof narrow);
    return (dtype == SHUF_F64 ? (unsigned)bits : narrow) % BITS;
}

/* The exponent with 2^exponent <= |z|. Smaller numbers have the least exponent. */
static int exponent_of(double z)
{
    uint64_t bits;
    memcpy(&bits, &z, sizeof bits);
    const int exponent = (int)(bits >> 52 & 2047) - 1023;
    return exponent < LEAST_EXPONENT  ? LEAST_EXPONENT
           : exponent > MOST_EXPONENT ? MOST_EXPONENT
                                      : exponent;
}

/* A uniform number is a fixed-point number. So its digits have the same places at every exponent.
 */
static unsigned uniform_bits(shuf_dtype dtype, double u)
{
    return (unsigned)(uint64_t)ldexp(u, shuf__dtype_digits(dtype)) % BITS;
}

static void add_low_bits(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    const struct shuf__stream_law *law = chunk->law;
    (void)sum;
    for (size_t i = 0; i < chunk->count; i++) {
        const double x = chunk->value[i];
        if (law->uniform)
            count[uniform_bits(law->dtype, x)]++;
        else
            count[BITS * (exponent_of(x) - LEAST_EXPONENT) + low_bits(law->dtype, x)]++;
    }
}

static void judge_low_bits(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                           const double *sum, struct shuf__findings *findings)
{
    double even[BITS];
    (void)n;
    (void)sum;
    for (unsigned k = 0; k < BITS; k++)
        even[k] = 1.0 / BITS;
    for (int e = 0; e < (law->uniform ? 1 : EXPONENTS); e++) {
        const struct shuf__chi_squared x =
            shuf__pearson_least(count + BITS * e, even, BITS, SHUF__LEAST_EXPECTED);
        if (law->uniform)
            shuf__find_chi_squared(findings, 0, x, "8 bits");
        else
            shuf__find_chi_squared(findings, 0, x, "8 bits, from 2^%d", LEAST_EXPONENT + e);
    }
}

const struct shuf__stream_test shuf__stream_low_bits = {
    .name = "low-bits",
    .what = "the lowest bits, by exponent",
    .of = SHUF__OF_NORMAL | SHUF__OF_UNIFORM | SHUF__OF_FINE,
    .counts = BITS * EXPONENTS,
    .add = add_low_bits,
    .judge = judge_low_bits,
};

/* ---- Repeats --------------------------------------------------------------------- */

enum { KEPT = 1 << 20, RADIUS_BITS = 38 };

/* Keeps a key for each value: its bits, or for a radius the number of its part among 2^38 parts of
 * equal probability. A radius from a number of 32 bits or fewer lies in the middle of a part. A key
 * is stored at the place of its value, so the words of two threads can be added. */
static void add_repeats(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    (void)sum;
    for (size_t i = 0; i < chunk->count && chunk->first + i < KEPT; i++)
        memcpy(&count[chunk->first + i], &chunk->value[i], sizeof *count);
    for (size_t i = 0; i + 1 < chunk->count && (chunk->first + i) / 2 < KEPT; i += 2) {
        const double x = chunk->z[i], y = chunk->z[i + 1], above = exp(-(x * x + y * y) / 2);
        count[KEPT + (chunk->first + i) / 2] = (uint64_t)ldexp(above, RADIUS_BITS + 1) + 1;
    }
}

static int by_size(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* The number of equal pairs. */
static uint64_t equal_pairs(const uint64_t *key, size_t count, unsigned drop)
{
    uint64_t *sorted = malloc((count + 1) * sizeof *sorted), pairs = 0, run = 0;
    if (!sorted)
        return 0;
    for (size_t i = 0; i < count; i++)
        sorted[i] = key[i] >> drop;
    qsort(sorted, count, sizeof *sorted, by_size);
    for (size_t i = 1; i < count; i++) {
        run = sorted[i] == sorted[i - 1] ? run + 1 : 0;
        pairs += run;
    }
    free(sorted);
    return pairs;
}

static void judge_repeats(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                          const double *sum, struct shuf__findings *findings)
{
    const size_t values = n < KEPT ? (size_t)n : KEPT;
    const size_t radii = n / 2 < KEPT ? (size_t)(n / 2) : KEPT;
    const double most = 0.5 * (double)values * (double)values * shuf__law_likeness(law);
    const double even = 0.5 * (double)radii * (double)radii / ldexp(1, RADIUS_BITS);
    (void)sum;
    const uint64_t same = equal_pairs(count, values, 0);
    shuf__find(findings, 0, (double)same, most, shuf__poisson_p(same, most), "%zu values", values);
    const uint64_t alike = equal_pairs(count + KEPT, radii, 1);
    shuf__find(findings, 0, (double)alike, even, shuf__poisson_p(alike, even), "%zu radii", radii);
}

const struct shuf__stream_test shuf__stream_repeats = {
    .name = "repeats",
    .what = "equal values among the first, and equal radii of pairs",
    .of = SHUF__OF_NORMAL | SHUF__OF_FINE,
    .counts = 2 * KEPT,
    .add = add_repeats,
    .judge = judge_repeats,
};
