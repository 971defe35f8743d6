/* SPDX-License-Identifier: MIT
 *
 * Tests of two values at a time: two values of a stream at several distances (lags), two values of
 * one block of the Gaussian stream, and values at the same place of neighbouring streams and seeds.
 * The tests correlate the values, their squares and their magnitudes.
 */
#include "stream.h"

#include <math.h>

enum { LAGS = 11, PAIRS = SHUF__BLOCK * (SHUF__BLOCK - 1) / 2, LANES = 8, LEAST = 1000 };

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

/* ---- Lags ------------------------------------------------------------------------ */

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
            if (count[l] >= LEAST)
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

/* ---- Blocks ---------------------------------------------------------------------- */

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
    for (int k = 0; k < SHUF__FUNCTIONS && count[0] >= LEAST; k++) {
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
        if (count[0] >= 10 * LEAST)
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

/* ---- Streams --------------------------------------------------------------------- */

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
            if (count[other] >= LEAST)
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
