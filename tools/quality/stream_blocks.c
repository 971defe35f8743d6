/* SPDX-License-Identifier: MIT
 *
 * Tests of 32 values at a time: the values of a block of the Gaussian stream, and 32 consecutive
 * values. For a good stream their Walsh-Hadamard transforms are normal too, and the sums of their
 * squares are chi-squared. A generator that mixes 32 roughly normal numbers by such a transform has
 * nearly normal single values, but fails here.
 */
#include "stream.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

enum { WAYS = 2, CELLS = SHUF__CELLS / 4, LEAST = 1000 };

static const char *const ways[WAYS] = {"block", "in order"};

static const double *values_of(const struct shuf__chunk *chunk, int way)
{
    return way == 0 ? chunk->by_block : chunk->spread;
}

/* ---- Transforms ------------------------------------------------------------------ */

enum { WALSH_SUMS = SHUF__BLOCK + 1 }; /* of each coefficient's squares, and of all fourth powers */

static void transform(double x[SHUF__BLOCK])
{
    for (unsigned step = SHUF__BLOCK / 2; step > 0; step /= 2)
        for (unsigned p = 0; p < SHUF__BLOCK; p += 2 * step)
            for (unsigned i = p; i < p + step; i++) {
                const double sum = x[i] + x[i + step], difference = x[i] - x[i + step];
                x[i] = sum;
                x[i + step] = difference;
            }
}

static void add_transforms(const struct shuf__chunk *chunk, const double *z, uint64_t *count,
                           double *sum)
{
    const double scale = 1 / sqrt(SHUF__BLOCK * chunk->law->spread_variance);
    for (size_t b = 0; b < chunk->blocks; b++) {
        double x[SHUF__BLOCK];
        for (unsigned p = 0; p < SHUF__BLOCK; p++)
            x[p] = scale * z[SHUF__BLOCK * b + p];
        transform(x);
        for (unsigned p = 0; p < SHUF__BLOCK; p++) {
            const double square = x[p] * x[p];
            count[shuf__cell(&chunk->law->transformed, x[p])]++;
            sum[p] += square;
            sum[SHUF__BLOCK] += square * square;
        }
    }
}

static void add_walsh(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    for (int way = 0; way < WAYS; way++)
        add_transforms(chunk, values_of(chunk, way), count + CELLS * way, sum + WALSH_SUMS * way);
    count[CELLS * WAYS] += chunk->blocks;
}

static void judge_transforms(const struct shuf__stream_law *law, double blocks,
                             const uint64_t *count, const double *sum, const char *way,
                             struct shuf__findings *findings)
{
    const struct shuf__cells *cells = &law->transformed;
    const double excess = law->spread_kurtosis / SHUF__BLOCK, all = blocks * SHUF__BLOCK;
    const double fourth = sum[SHUF__BLOCK] / all;
    struct shuf__chi_squared x = {0, SHUF__BLOCK};
    for (unsigned p = 0; p < SHUF__BLOCK; p++) {
        const double off = sum[p] / blocks - 1;
        x.sum += off * off * blocks / (2 + excess);
    }
    shuf__find_chi_squared(findings, 0, x, "variances, %s", way);
    shuf__find(findings, 0, fourth, 3 + excess,
               shuf__normal_p((fourth - 3 - excess) / sqrt(96 / all)), "kurtosis, %s", way);
    x = shuf__pearson_least(count, cells->p, cells->count, SHUF__LEAST_EXPECTED);
    shuf__find_chi_squared(findings, 0, x, "%.0f cells, %s", x.dof + 1, way);
}

static void judge_walsh(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                        const double *sum, struct shuf__findings *findings)
{
    const uint64_t blocks = count[CELLS * WAYS];
    (void)n;
    for (int way = 0; way < WAYS && blocks >= LEAST; way++)
        judge_transforms(law, (double)blocks, count + CELLS * way, sum + WALSH_SUMS * way,
                         ways[way], findings);
}

const struct shuf__stream_test shuf__stream_walsh = {
    .name = "walsh",
    .what = "Walsh-Hadamard transforms of 32 values",
    .of = SHUF__OF_NORMAL,
    .counts = CELLS * WAYS + 1,
    .sums = WALSH_SUMS * WAYS,
    .add = add_walsh,
    .judge = judge_walsh,
};

/* ---- Sums of squares ------------------------------------------------------------- */

/* MOST is a limit that no sum of a good stream reaches. Larger sums count as MOST, because
 * additions must not overflow. */
enum { DEGREES = 6, SHAPE = SHUF__BLOCK / 2 - 1, MOST = 512 };

/* The Laguerre polynomials of half a sum of squares, by degree. Each is divided by its standard
 * deviation. Under the chi-squared law no two of them are correlated. */
static void laguerre(double square, double f[DEGREES + 1])
{
    const double x = square / 2;
    double norm = 1;
    f[0] = 1;
    f[1] = 1 + SHAPE - x;
    for (int k = 1; k < DEGREES; k++)
        f[k + 1] = ((2 * k + 1 + SHAPE - x) * f[k] - (k + SHAPE) * f[k - 1]) / (k + 1);
    for (int k = 1; k <= DEGREES; k++) {
        norm *= (double)(k + SHAPE) / k;
        f[k] /= sqrt(norm);
    }
}

static void add_sums(const struct shuf__chunk *chunk, const double *z, uint64_t *count, double *sum)
{
    for (size_t b = 0; b < chunk->blocks; b++) {
        double square = 0, f[DEGREES + 1];
        for (unsigned p = 0; p < SHUF__BLOCK; p++)
            square += z[SHUF__BLOCK * b + p] * z[SHUF__BLOCK * b + p];
        square /= chunk->law->spread_variance;
        count[shuf__cell(&chunk->law->squares, square)]++;
        laguerre(fmin(square, MOST), f);
        for (int k = 1; k <= DEGREES; k++)
            sum[k - 1] += f[k];
    }
}

static void add_squares(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    for (int way = 0; way < WAYS; way++)
        add_sums(chunk, values_of(chunk, way), count + CELLS * way, sum + DEGREES * way);
    count[CELLS * WAYS] += chunk->blocks;
}

/* Whether the mean over so many blocks is nearly normal. High degrees need many blocks. */
static bool is_normal(int degree, double blocks)
{
    double third = 0, fourth = 0;
    const double step = 1.0 / 16;
    for (double square = step / 2; square < 300; square += step) {
        double f[DEGREES + 1];
        laguerre(square, f);
        const double weight = step * gsl_ran_chisq_pdf(square, SHUF__BLOCK);
        third += weight * f[degree] * f[degree] * f[degree];
        fourth += weight * f[degree] * f[degree] * f[degree] * f[degree];
    }
    return fabs(third) <= 0.03 * sqrt(blocks) && fourth - 3 <= 0.01 * blocks;
}

static void judge_sums(const struct shuf__stream_law *law, double blocks, const uint64_t *count,
                       const double *sum, int way, struct shuf__findings *findings)
{
    const struct shuf__cells *cells = &law->squares;
    for (int k = 1 + way; k <= DEGREES; k++) /* degree 1 is the same in both ways of grouping */
        if (is_normal(k, blocks))
            shuf__find(findings, 0, sum[k - 1] / blocks, 0,
                       shuf__normal_p(sum[k - 1] / sqrt(blocks)), "Laguerre %d, %s", k, ways[way]);
    const struct shuf__chi_squared x =
        shuf__pearson_least(count, cells->p, cells->count, SHUF__LEAST_EXPECTED);
    shuf__find_chi_squared(findings, 0, x, "%.0f cells, %s", x.dof + 1, ways[way]);
}

static void judge_squares(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                          const double *sum, struct shuf__findings *findings)
{
    const uint64_t blocks = count[CELLS * WAYS];
    (void)n;
    for (int way = 0; way < WAYS && blocks >= LEAST; way++)
        judge_sums(law, (double)blocks, count + CELLS * way, sum + DEGREES * way, way, findings);
}

const struct shuf__stream_test shuf__stream_squares = {
    .name = "squares",
    .what = "sums of 32 squares",
    .of = SHUF__OF_NORMAL,
    .counts = CELLS * WAYS + 1,
    .sums = DEGREES * WAYS,
    .add = add_squares,
    .judge = judge_squares,
};
