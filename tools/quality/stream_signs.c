/* SPDX-License-Identifier: MIT
 *
 * Walsh-Hadamard transforms of 4 and 8 values of a block, with all choices of signs. A faulty
 * generator may mix values by such a transform and then give them signs. One choice of signs then
 * undoes a part of the mixing. For a good generator each choice gives normal numbers. Two choices
 * that differ by a row of the matrix give the same sums, so only one of them is tested.
 *
 * A second test transforms the squares of the values, minus 1, in the same way. It also judges
 * products of fourth powers.
 */
#include "stream.h"

#include <math.h>

enum { CELLS = SHUF__CELLS / 4, LEAST = 1000 };

/* ---- Signs ----------------------------------------------------------------------- */

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

static void transform(double *x, unsigned values)
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
            transform(x, values);
            for (unsigned v = 0; v < values; v++)
                count[CELLS * i + shuf__cell(&law->transformed, x[v])]++;
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
            to += CELLS * cubes[cube].signs;
        }
    }
    count[CELLS * GROUPS] += chunk->blocks;
}

static void judge_signs(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                        const double *sum, struct shuf__findings *findings)
{
    const struct shuf__cells *cells = &law->transformed;
    const uint64_t blocks = count[CELLS * GROUPS];
    (void)n;
    (void)sum;
    for (int cube = 0; cube < CUBES && blocks >= LEAST; cube++)
        for (unsigned i = 0; i < cubes[cube].signs; i++, count += CELLS)
            shuf__find_chi_squared(
                findings, 0,
                shuf__pearson_least(count, cells->p, cells->count, SHUF__LEAST_EXPECTED),
                "bits %02x, signs %02x", cubes[cube].mask, signs_of(cubes[cube].values, i));
}

const struct shuf__stream_test shuf__stream_signs = {
    .name = "signs",
    .what = "transforms of 4 and 8 values of a block, with all signs",
    .of = SHUF__OF_NORMAL,
    .counts = (size_t)CELLS * GROUPS + 1,
    .add = add_signs,
    .judge = judge_signs,
};

/* ---- Norms ----------------------------------------------------------------------- */

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
            transform(x, SHUF__BLOCK);
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
    if (count[0] < LEAST)
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
    if (count[0] < 100 * LEAST) /* the mean of such a high power is not yet nearly normal */
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
