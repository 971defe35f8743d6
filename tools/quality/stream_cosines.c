/* SPDX-License-Identifier: MIT
 *
 * Products of cosines cos(t x) of values of a block, for many frequencies t. Such a product is the
 * mean of the cosines of t * (x1 +- x2 +- ...) over all signs. So it shows a fault of such sums
 * even if the fault needs certain signs that nobody knows. The sets of values are all subcubes of
 * positions (which differ only in some of the five bits), and all four positions that cancel (p ^ q
 * ^ r ^ s = 0).
 *
 * Products are centred or plain. A centred cosine is a cosine minus its mean, divided by its
 * standard deviation. No two products of centred cosines are correlated. In each group the best
 * product is judged as the best of many. With few blocks, the mean of some products is not nearly
 * normal; these are left out.
 */
#include "stream.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIMENSIONS = 5, CUBES = 1 << DIMENSIONS, WAYS = 2, LEAST = 1000 };

static const char *const ways[WAYS] = {"centred", "plain"};

/* ---- Subcubes ---- */

/* Adds to the sums of all subcubes, by recursion over the bits of a position. `in` has `cosets`
 * neighbouring products for each of 2^left settings of the bits that are left. The uppermost of
 * these bits is next. `room` has twice the size of half of `in`. */
static void multiply(const double *in, size_t cosets, unsigned left, unsigned cube, double *room,
                     double *sum)
{
    if (left == 0) {
        double all = 0;
        for (size_t i = 0; i < cosets * SHUF__BLOCK; i++)
            all += in[i];
        sum[cube] += all;
        return;
    }
    const size_t half = (size_t)SHUF__BLOCK << (left - 1);
    multiply(in, 2 * cosets, left - 1, cube, room, sum);
    for (size_t c = 0; c < cosets; c++)
        for (size_t i = 0; i < half; i++)
            room[c * half + i] = in[2 * c * half + i] * in[(2 * c + 1) * half + i];
    multiply(room, cosets, left - 1, cube | 1U << (left - 1), room + cosets * half, sum);
}

/* Computes cos(k a) from cos((k - 1) a) and cos((k - 2) a). */
static void next_cosines(const double *first, double *before, double *now)
{
    for (unsigned i = 0; i < SHUF__SUPERBLOCK; i++) {
        const double next = 2 * first[i] * now[i] - before[i];
        before[i] = now[i];
        now[i] = next;
    }
}

static void centre(const struct shuf__cosine *law, const double *from, double *to)
{
    const double scale = 1 / sqrt(law->variance);
    for (unsigned i = 0; i < SHUF__SUPERBLOCK; i++)
        to[i] = (from[i] - law->mean) * scale;
}

static void add_superblock(const struct shuf__stream_law *law, const double *z, double *room,
                           double *sum)
{
    double first[SHUF__SUPERBLOCK], now[SHUF__SUPERBLOCK], before[SHUF__SUPERBLOCK];
    double centred[SHUF__SUPERBLOCK];
    for (unsigned i = 0; i < SHUF__SUPERBLOCK; i++) {
        first[i] = now[i] = cos(SHUF__FREQUENCY * z[i]);
        before[i] = 1;
    }
    for (unsigned k = 0; k < SHUF__FREQUENCIES; k++) {
        centre(&law->cosine[k], now, centred);
        multiply(centred, 1, DIMENSIONS, 0, room, sum + CUBES * WAYS * k);
        multiply(now, 1, DIMENSIONS, 0, room, sum + CUBES * (WAYS * k + 1));
        next_cosines(first, before, now);
    }
}

/* Limits a sum to a value that chance never reaches, because additions must not overflow. */
static void cut(double *sum, size_t count)
{
    const double most = 0x1p60;
    for (size_t i = 0; i < count; i++)
        sum[i] = fmin(fmax(sum[i], -most), most);
}

static void add_cosines(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    for (size_t i = 0; i < chunk->blocks * SHUF__BLOCK; i += SHUF__SUPERBLOCK)
        add_superblock(chunk->law, chunk->by_place + i, chunk->scratch, sum);
    cut(sum, CUBES * WAYS * SHUF__FREQUENCIES);
    count[0] += chunk->blocks;
}

/* The mean, the variance and the kurtosis (minus 3) of a product of cosines. */
struct product {
    double mean, variance, kurtosis;
};

static struct product product_of(const struct shuf__cosine *law, unsigned values, bool plain)
{
    if (!plain)
        return (struct product){0, 1, pow(law->fourth, values) - 3};
    double power[5];
    for (unsigned k = 1; k <= 4; k++)
        power[k] = pow(law->power[k], values);
    const double mean = power[1], variance = power[2] - mean * mean;
    const double fourth =
        power[4] - 4 * mean * power[3] + 6 * mean * mean * power[2] - 3 * pow(mean, 4);
    return (struct product){mean, variance, fourth / (variance * variance) - 3};
}

/* The best of many standard normal statistics. */
struct best {
    double z, frequency;
    unsigned cube, count;
};

static void take(struct best *best, double z, double frequency, unsigned cube)
{
    best->count++;
    if (fabs(z) <= fabs(best->z))
        return;
    best->z = z;
    best->frequency = frequency;
    best->cube = cube;
}

static void find_best(const struct best *best, const char *way, const char *what,
                      struct shuf__findings *findings)
{
    const double p = -expm1(best->count * log1p(-fmin(shuf__normal_p(best->z), 1 - 1e-15)));
    if (best->count > 0)
        shuf__find(findings, 0, best->z, 0, p, "%s %s, t %.3g, %02x", what, way, best->frequency,
                   best->cube);
}

static void judge_cubes(const struct shuf__stream_law *law, double blocks, const double *sum,
                        int way, unsigned dimensions, struct shuf__findings *findings)
{
    struct best best = {0};
    char what[32];
    const unsigned values = 1U << dimensions;
    for (unsigned k = 0; k < SHUF__FREQUENCIES; k++) {
        const struct product product = product_of(&law->cosine[k], values, way == 1);
        const double all = blocks * SHUF__BLOCK / values;
        if (!(product.kurtosis <= 0.01 * all) || !(product.variance > 1e-13))
            continue;
        for (unsigned cube = 0; cube < CUBES; cube++)
            if ((unsigned)__builtin_popcount(cube) == dimensions)
                take(&best,
                     (sum[CUBES * (WAYS * k + (unsigned)way) + cube] - all * product.mean) /
                         sqrt(all * product.variance),
                     (k + 1) * SHUF__FREQUENCY, cube);
    }
    snprintf(what, sizeof what, "%u", values);
    find_best(&best, ways[way], what, findings);
}

static void judge_cosines(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                          const double *sum, struct shuf__findings *findings)
{
    (void)n;
    for (int way = 0; way < WAYS && count[0] >= LEAST; way++)
        for (unsigned dimensions = (unsigned)way; dimensions <= DIMENSIONS; dimensions++)
            judge_cubes(law, (double)count[0], sum, way, dimensions, findings);
}

const struct shuf__stream_test shuf__stream_cosines = {
    .name = "cosines",
    .what = "products of cosines of the values of a subcube of a block",
    .of = SHUF__OF_NORMAL,
    .counts = 1,
    .sums = (size_t)CUBES * WAYS * SHUF__FREQUENCIES,
    .add = add_cosines,
    .judge = judge_cosines,
};

/* ---- Four positions that cancel ---- */

enum { QUADS = 1240, QUAD_FREQUENCIES = 4 };

/* The numbers of the frequencies 1.5, 2.5, 3.5 and 4.5. */
static const unsigned quad_frequency[QUAD_FREQUENCIES] = {2, 4, 6, 8};

static double dot_four(const double *c, unsigned p, unsigned q, unsigned r, unsigned s)
{
    double lane[4] = {0};
    for (unsigned b = 0; b < SHUF__BLOCK; b += 4)
        for (unsigned l = 0; l < 4; l++)
            lane[l] += c[SHUF__BLOCK * p + b + l] * c[SHUF__BLOCK * q + b + l] *
                       c[SHUF__BLOCK * r + b + l] * c[SHUF__BLOCK * s + b + l];
    return lane[0] + lane[1] + lane[2] + lane[3];
}

static void add_quads_of(const double *c, double *sum)
{
    for (unsigned p = 0; p < SHUF__BLOCK; p++)
        for (unsigned q = p + 1; q < SHUF__BLOCK; q++)
            for (unsigned r = q + 1; r < SHUF__BLOCK; r++)
                if ((p ^ q ^ r) > r)
                    *sum++ += dot_four(c, p, q, r, p ^ q ^ r);
}

static void add_quads(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    for (size_t i = 0; i < chunk->blocks * SHUF__BLOCK; i += SHUF__SUPERBLOCK)
        for (unsigned k = 0; k < QUAD_FREQUENCIES; k++) {
            const double t = (quad_frequency[k] + 1) * SHUF__FREQUENCY;
            double *c = chunk->scratch;
            for (unsigned j = 0; j < SHUF__SUPERBLOCK; j++)
                c[j] = cos(t * chunk->by_place[i + j]);
            centre(&chunk->law->cosine[quad_frequency[k]], c, c);
            add_quads_of(c, sum + (size_t)QUADS * k);
        }
    count[0] += chunk->blocks;
}

static void judge_quads(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                        const double *sum, struct shuf__findings *findings)
{
    const double blocks = (double)count[0];
    struct best best = {0};
    (void)n;
    (void)law;
    for (unsigned k = 0; k < QUAD_FREQUENCIES && count[0] >= LEAST; k++) {
        const double t = (quad_frequency[k] + 1) * SHUF__FREQUENCY;
        double all = 0;
        for (unsigned quad = 0; quad < QUADS; quad++) {
            all += sum[(size_t)QUADS * k + quad];
            take(&best, sum[(size_t)QUADS * k + quad] / sqrt(blocks), t, quad);
        }
        shuf__find(findings, 0, all / (blocks * QUADS), 0,
                   shuf__normal_p(all / sqrt(blocks * QUADS)), "all that cancel, t %.3g", t);
    }
    find_best(&best, "that cancel", "4", findings);
}

const struct shuf__stream_test shuf__stream_quads = {
    .name = "quads",
    .what = "products of cosines of four values of a block whose positions cancel",
    .of = SHUF__OF_NORMAL,
    .counts = 1,
    .sums = (size_t)QUADS * QUAD_FREQUENCIES,
    .add = add_quads,
    .judge = judge_quads,
};
