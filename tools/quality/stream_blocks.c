/* SPDX-License-Identifier: MIT
 *
 * Tests of several values at a time: of two values, of neighbouring streams, and of blocks of 32
 * values.
 */
#include "stream.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

/* ---- Two values ---- */

/* Tests of two values at a time: two values of a stream at several distances (lags), two values of
 * one block of the Gaussian stream, and values at the same place of neighbouring streams and seeds.
 * The tests correlate the values, their squares and their magnitudes. */

enum { LAGS = 11, PAIRS = SHUF__BLOCK * (SHUF__BLOCK - 1) / 2, LANES = 8, PAIRS_LEAST = 1000 };

static const size_t lags[LAGS] = {1, 2, 3, 4, 8, 32, 64, 128, 256, 512, 1024};

/* Function k of z, minus its mean. */
static void evaluate(const struct shuf__stream_law *law, int k, const double *z, size_t count,
                     double *f)
{
    const double mean = law->mean[k];
    if (k == 0)
        for (size_t i = 0; i < count; i++)
            f[i] = z[i] - mean;
    else if (k == 1)
        for (size_t i = 0; i < count; i++)
            f[i] = z[i] * z[i] - mean;
    else
        for (size_t i = 0; i < count; i++)
            f[i] = fabs(z[i]) - mean;
}

static double dot(const double *a, const double *b, size_t count)
{
    double lane[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (unsigned l = 0; l < LANES; l++)
            lane[l] += a[i + l] * b[i + l];
    for (; i < count; i++)
        sum += a[i] * b[i];
    for (unsigned l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

static double normalised(const struct shuf__stream_law *law, int k, double sum, double pairs)
{
    return sum / (law->variance[k] * sqrt(pairs));
}

static void find(const struct shuf__stream_law *law, int k, double sum, double pairs,
                 const char *what, size_t number, struct shuf__findings *findings)
{
    shuf__find(findings, 0, sum / (law->variance[k] * pairs), 0,
               shuf__normal_p(normalised(law, k, sum, pairs)), "%s %zu, %s", what, number,
               shuf__function_names[k]);
}

/* ---- Lags ---- */

static void add_lags(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    double *f = chunk->scratch;
    for (int k = 0; k < SHUF__FUNCTIONS; k++) {
        evaluate(chunk->law, k, chunk->z, chunk->count, f);
        for (int l = 0; l < LAGS; l++)
            if (chunk->count > lags[l])
                sum[LAGS * k + l] += dot(f, f + lags[l], chunk->count - lags[l]);
    }
    for (int l = 0; l < LAGS; l++)
        count[l] += chunk->count > lags[l] ? chunk->count - lags[l] : 0;
}

static void judge_lags(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                       const double *sum, struct shuf__findings *findings)
{
    (void)n;
    for (int k = 0; k < SHUF__FUNCTIONS; k++)
        for (int l = 0; l < LAGS; l++)
            if (count[l] >= PAIRS_LEAST)
                find(law, k, sum[LAGS * k + l], (double)count[l], "lag", lags[l], findings);
}

const struct shuf__stream_test shuf__stream_lags = {
    .name = "lags",
    .what = "a value and one some places later",
    .of = SHUF__OF_NORMAL | SHUF__OF_UNIFORM,
    .counts = LAGS,
    .sums = SHUF__FUNCTIONS * LAGS,
    .add = add_lags,
    .judge = judge_lags,
};

/* ---- Pairs of a block ---- */

static void add_pairs(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    double *f = chunk->scratch;
    for (int k = 0; k < SHUF__FUNCTIONS; k++) {
        evaluate(chunk->law, k, chunk->by_place, chunk->blocks * SHUF__BLOCK, f);
        for (size_t i = 0; i < chunk->blocks * SHUF__BLOCK; i += SHUF__SUPERBLOCK) {
            double *to = sum + PAIRS * k;
            for (unsigned p = 0; p < SHUF__BLOCK; p++)
                for (unsigned q = 0; q < p; q++)
                    *to++ += dot(f + i + SHUF__BLOCK * p, f + i + SHUF__BLOCK * q, SHUF__BLOCK);
        }
    }
    count[0] += chunk->blocks;
}

/* Judges the correlations of all pairs of positions. Also judges, for each of 31 masks, those of
 * the positions p and p ^ mask. A Hadamard transform could cause correlations of both kinds. */
static void judge_pairs(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                        const double *sum, struct shuf__findings *findings)
{
    const double blocks = (double)count[0];
    (void)n;
    for (int k = 0; k < SHUF__FUNCTIONS && count[0] >= PAIRS_LEAST; k++) {
        struct shuf__chi_squared all = {0, PAIRS}, masks = {0, SHUF__BLOCK - 1};
        double by_mask[SHUF__BLOCK] = {0};
        const double *from = sum + PAIRS * k;
        for (unsigned p = 0; p < SHUF__BLOCK; p++)
            for (unsigned q = 0; q < p; q++) {
                const double one = normalised(law, k, *from, blocks);
                by_mask[p ^ q] += *from++;
                all.sum += one * one;
            }
        for (unsigned mask = 1; mask < SHUF__BLOCK; mask++) {
            const double one = normalised(law, k, by_mask[mask], blocks * SHUF__BLOCK / 2);
            masks.sum += one * one;
        }
        shuf__find_chi_squared(findings, 0, masks, "31 masks, %s", shuf__function_names[k]);
        if (count[0] >= 10 * PAIRS_LEAST)
            shuf__find_chi_squared(findings, 0, all, "%d pairs, %s", PAIRS,
                                   shuf__function_names[k]);
    }
}

const struct shuf__stream_test shuf__stream_pairs = {
    .name = "pairs",
    .what = "two values of a block of the Gaussian stream",
    .of = SHUF__OF_NORMAL | SHUF__OF_UNIFORM,
    .counts = 1,
    .sums = SHUF__FUNCTIONS * PAIRS,
    .add = add_pairs,
    .judge = judge_pairs,
};

/* ---- Streams ---- */

static void add_streams(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    double *f = chunk->scratch, *g = f + SHUF__CHUNK;
    const int other = chunk->relation == SHUF__NEXT_SEED;
    if (chunk->relation == SHUF__ALONE)
        return;
    for (int k = 0; k < SHUF__FUNCTIONS; k++) {
        evaluate(chunk->law, k, chunk->z, chunk->count, f);
        evaluate(chunk->law, k, chunk->relative, chunk->count, g);
        sum[SHUF__FUNCTIONS * other + k] += dot(f, g, chunk->count);
    }
    count[other] += chunk->count;
}

static void judge_streams(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                          const double *sum, struct shuf__findings *findings)
{
    static const char *const names[] = {"stream +", "seed +"};
    (void)n;
    for (int other = 0; other < 2; other++)
        for (int k = 0; k < SHUF__FUNCTIONS; k++)
            if (count[other] >= PAIRS_LEAST)
                find(law, k, sum[SHUF__FUNCTIONS * other + k], (double)count[other], names[other],
                     1, findings);
}

const struct shuf__stream_test shuf__stream_streams = {
    .name = "streams",
    .what = "a value and that of the next stream, and of the next seed",
    .of = SHUF__OF_NORMAL | SHUF__OF_UNIFORM,
    .relatives = true,
    .counts = 2,
    .sums = 2 * SHUF__FUNCTIONS,
    .add = add_streams,
    .judge = judge_streams,
};

/* ---- Blocks ---- */

/* Tests of 32 values at a time: the values of a block of the Gaussian stream, and 32 consecutive
 * values. For a good stream their Walsh-Hadamard transforms are normal too, and the sums of their
 * squares are chi-squared. A generator that mixes 32 roughly normal numbers by such a transform has
 * nearly normal single values, but fails here. */

enum { WAYS = 2, BLOCKS_CELLS = SHUF__CELLS / 4, BLOCKS_LEAST = 1000 };

static const char *const ways[WAYS] = {"block", "in order"};

static const double *values_of(const struct shuf__chunk *chunk, int way)
{
    return way == 0 ? chunk->by_block : chunk->spread;
}

/* ---- Transforms ---- */

enum { WALSH_SUMS = SHUF__BLOCK + 1 }; /* of each coefficient's squares, and of all fourth powers */

static void blocks_transform(double x[SHUF__BLOCK])
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
        blocks_transform(x);
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
        add_transforms(chunk, values_of(chunk, way), count + BLOCKS_CELLS * way,
                       sum + WALSH_SUMS * way);
    count[BLOCKS_CELLS * WAYS] += chunk->blocks;
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
    const uint64_t blocks = count[BLOCKS_CELLS * WAYS];
    (void)n;
    for (int way = 0; way < WAYS && blocks >= BLOCKS_LEAST; way++)
        judge_transforms(law, (double)blocks, count + BLOCKS_CELLS * way, sum + WALSH_SUMS * way,
                         ways[way], findings);
}

const struct shuf__stream_test shuf__stream_walsh = {
    .name = "walsh",
    .what = "Walsh-Hadamard transforms of 32 values",
    .of = SHUF__OF_NORMAL,
    .counts = BLOCKS_CELLS * WAYS + 1,
    .sums = WALSH_SUMS * WAYS,
    .add = add_walsh,
    .judge = judge_walsh,
};

/* ---- Sums of squares ---- */

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
        add_sums(chunk, values_of(chunk, way), count + BLOCKS_CELLS * way, sum + DEGREES * way);
    count[BLOCKS_CELLS * WAYS] += chunk->blocks;
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
    const uint64_t blocks = count[BLOCKS_CELLS * WAYS];
    (void)n;
    for (int way = 0; way < WAYS && blocks >= BLOCKS_LEAST; way++)
        judge_sums(law, (double)blocks, count + BLOCKS_CELLS * way, sum + DEGREES * way, way,
                   findings);
}

const struct shuf__stream_test shuf__stream_squares = {
    .name = "squares",
    .what = "sums of 32 squares",
    .of = SHUF__OF_NORMAL,
    .counts = BLOCKS_CELLS * WAYS + 1,
    .sums = DEGREES * WAYS,
    .add = add_squares,
    .judge = judge_squares,
};

/* ---- Signs ---- */

/* Walsh-Hadamard transforms of 4 and 8 values of a block, with all choices of signs. A faulty
 * generator may mix values by such a transform and then give them signs. One choice of signs then
 * undoes a part of the mixing. For a good generator each choice gives normal numbers. Two choices
 * that differ by a row of the matrix give the same sums, so only one of them is tested.
 *
 * A second test transforms the squares of the values, minus 1, in the same way. It also judges
 * products of fourth powers. */

enum { SIGNS_CELLS = SHUF__CELLS / 4, SIGNS_LEAST = 1000 };

/* The bits in which the positions of a set differ, and the number of choices of signs. The choices
 * are such that no two differ by a row of the matrix. */
enum { CUBES = 4, MOST_SIGNS = 16 };

static const struct {
    unsigned mask, values, signs;
} cubes[CUBES] = {{3, 4, 2}, {12, 4, 2}, {24, 4, 2}, {7, 8, MOST_SIGNS}};

enum { GROUPS = 2 + 2 + 2 + MOST_SIGNS };

/* Moves bit i of `number` to the place of the i-th bit of `mask`. */
static unsigned deposit(unsigned number, unsigned mask)
{
    unsigned result = 0;
    for (unsigned bit = 1; mask != 0; bit <<= 1, mask &= mask - 1)
        result |= number & bit ? mask & -mask : 0;
    return result;
}

/* Choice number i of signs: it gives a sign to value 3 of 4, or to values 3, 5, 6 and 7 of 8. */
static unsigned signs_of(unsigned values, unsigned i)
{
    return values == 4 ? i << 3 : (i & 1) << 3 | i >> 1 << 5;
}

static void signs_transform(double *x, unsigned values)
{
    for (unsigned step = 1; step < values; step *= 2)
        for (unsigned p = 0; p < values; p++)
            if (!(p & step)) {
                const double sum = x[p] + x[p + step], difference = x[p] - x[p + step];
                x[p] = sum;
                x[p + step] = difference;
            }
}

static void add_cube(const struct shuf__stream_law *law, const double *block, int cube,
                     uint64_t *count)
{
    const unsigned values = cubes[cube].values, mask = cubes[cube].mask;
    const double scale = 1 / sqrt(values * law->spread_variance);
    for (unsigned coset = 0; coset < SHUF__BLOCK / values; coset++) {
        const unsigned base = deposit(coset, ~mask & (SHUF__BLOCK - 1));
        for (unsigned i = 0; i < cubes[cube].signs; i++) {
            const unsigned signs = signs_of(values, i);
            double x[8] = {0};
            for (unsigned v = 0; v < values; v++) {
                const double value = scale * block[base | deposit(v, mask)];
                x[v] = signs >> v & 1 ? -value : value;
            }
            signs_transform(x, values);
            for (unsigned v = 0; v < values; v++)
                count[SIGNS_CELLS * i + shuf__cell(&law->transformed, x[v])]++;
        }
    }
}

static void add_signs(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    (void)sum;
    for (size_t b = 0; b < chunk->blocks; b++) {
        uint64_t *to = count;
        for (int cube = 0; cube < CUBES; cube++) {
            add_cube(chunk->law, chunk->by_block + SHUF__BLOCK * b, cube, to);
            to += SIGNS_CELLS * cubes[cube].signs;
        }
    }
    count[SIGNS_CELLS * GROUPS] += chunk->blocks;
}

static void judge_signs(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                        const double *sum, struct shuf__findings *findings)
{
    const struct shuf__cells *cells = &law->transformed;
    const uint64_t blocks = count[SIGNS_CELLS * GROUPS];
    (void)n;
    (void)sum;
    for (int cube = 0; cube < CUBES && blocks >= SIGNS_LEAST; cube++)
        for (unsigned i = 0; i < cubes[cube].signs; i++, count += SIGNS_CELLS)
            shuf__find_chi_squared(
                findings, 0,
                shuf__pearson_least(count, cells->p, cells->count, SHUF__LEAST_EXPECTED),
                "bits %02x, signs %02x", cubes[cube].mask, signs_of(cubes[cube].values, i));
}

const struct shuf__stream_test shuf__stream_signs = {
    .name = "signs",
    .what = "transforms of 4 and 8 values of a block, with all signs",
    .of = SHUF__OF_NORMAL,
    .counts = (size_t)SIGNS_CELLS * GROUPS + 1,
    .add = add_signs,
    .judge = judge_signs,
};

/* ---- Norms ---- */

enum { NORM_SUMS = SHUF__BLOCK + 1 };

static void add_norms(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    const struct shuf__stream_law *law = chunk->law;
    const double scale = 1 / sqrt(SHUF__BLOCK * law->variance[1]);
    for (size_t i = 0; i < chunk->blocks * SHUF__BLOCK; i += SHUF__SUPERBLOCK)
        for (unsigned b = 0; b < SHUF__BLOCK; b++) {
            double x[SHUF__BLOCK], fourths = 0, squares = 0;
            for (unsigned p = 0; p < SHUF__BLOCK; p++) {
                const double z = chunk->by_place[i + SHUF__BLOCK * p + b];
                const double f = z * z * z * z - law->fourth_mean;
                x[p] = scale * (z * z - law->mean[1]);
                fourths += f;
                squares += f * f;
            }
            signs_transform(x, SHUF__BLOCK);
            for (unsigned p = 0; p < SHUF__BLOCK; p++)
                sum[p] += x[p] * x[p];
            sum[SHUF__BLOCK] += (fourths * fourths - squares) / law->fourth_variance;
        }
    count[0] += chunk->blocks;
}

/* Judges the sums of squares with the 32 patterns of weights, 1 and -1, by the best of their
 * variances. Pattern 0 is the plain sum. */
static void judge_norms(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                        const double *sum, struct shuf__findings *findings)
{
    const double blocks = (double)count[0], pairs = SHUF__BLOCK * (SHUF__BLOCK - 1);
    const double deviation = sqrt((2 + law->square_kurtosis / SHUF__BLOCK) / blocks);
    double most = 0;
    unsigned mask = 0;
    (void)n;
    if (count[0] < SIGNS_LEAST)
        return;
    for (unsigned p = 0; p < SHUF__BLOCK; p++) {
        const double off = (sum[p] / blocks - 1) / deviation;
        if (fabs(off) > fabs(most)) {
            most = off;
            mask = p;
        }
    }
    shuf__find(findings, 0, sum[mask] / blocks, 1,
               -expm1(SHUF__BLOCK * log1p(-fmin(shuf__normal_p(most), 1 - 1e-15))),
               "best variance, weights %02x", mask);
    if (count[0] < 100 * SIGNS_LEAST) /* the mean of such a high power is not yet nearly normal */
        return;
    shuf__find(findings, 0, sum[SHUF__BLOCK] / (blocks * pairs), 0,
               shuf__normal_p(sum[SHUF__BLOCK] / sqrt(2 * pairs * blocks)), "fourth powers");
}

const struct shuf__stream_test shuf__stream_norms = {
    .name = "norms",
    .what = "weighted sums of the squares of a block, and of fourth powers",
    .of = SHUF__OF_NORMAL,
    .counts = 1,
    .sums = NORM_SUMS,
    .add = add_norms,
    .judge = judge_norms,
};
