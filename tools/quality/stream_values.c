/* SPDX-License-Identifier: MIT
 *
 * Tests of the law of values, one or two at a time: moments, cells, tails, lattices, quotients.
 */
#include "device.h"
#include "stream.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Moments ---- */

/* Moments, and means of orthogonal polynomials: Hermite's, or Legendre's for the uniform law. The
 * mean of a high power is nearly normal only for very many values, because of rare large values. So
 * the code sums powers of the values below several limits. A moment uses the highest limit with
 * which its law is nearly normal. The test `tails` covers the values beyond this limit. */

enum { POWERS = 16, SHELLS = 9, LANES = 8 };

static const double moments_limits[SHELLS] = {2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 8};

/* sum[(POWERS + 1) * shell + power] is a sum over the values between two limits, a shell.
 */
static void add_outer(double z, double *sum)
{
    unsigned shell = 1;
    double power = 1;
    while (shell < SHELLS && fabs(z) > moments_limits[shell])
        shell++;
    for (unsigned k = 0; k <= POWERS && shell < SHELLS; k++) {
        sum[(POWERS + 1) * shell + k] += power;
        power *= z;
    }
}

static void add_inner(const double *z, size_t count, double *sum)
{
    double lane[POWERS][LANES] = {{0}};
    for (size_t i = 0; i < count; i += LANES) {
        double power[LANES];
        for (unsigned l = 0; l < LANES; l++)
            power[l] = z[i + l];
        for (unsigned k = 0; k < POWERS; k++)
            for (unsigned l = 0; l < LANES; l++) {
                lane[k][l] += power[l];
                power[l] *= z[i + l];
            }
    }
    for (unsigned k = 0; k < POWERS; k++)
        for (unsigned l = 0; l < LANES; l++)
            sum[k + 1] += lane[k][l];
}

static void add_moments(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    double *inner = chunk->scratch;
    size_t i, within = 0;
    (void)count;
    for (i = 0; i < chunk->count; i++) {
        const bool is_inner = fabs(chunk->z[i]) <= moments_limits[0];
        inner[i] = is_inner ? chunk->z[i] : 0;
        within += is_inner;
        if (!is_inner)
            add_outer(chunk->z[i], sum);
    }
    while (i % LANES != 0)
        inner[i++] = 0;
    sum[0] += (double)within;
    add_inner(inner, i, sum);
}

/* ---- Polynomials ---- */

struct polynomial {
    unsigned degree;
    double coefficient[POWERS + 1];
};

static double value_at(const struct polynomial *f, double z)
{
    double value = 0;
    for (unsigned k = f->degree + 1; k-- > 0;)
        value = value * z + f->coefficient[k];
    return value;
}

static struct polynomial power(unsigned degree)
{
    struct polynomial f = {.degree = degree};
    f.coefficient[degree] = 1;
    return f;
}

/* The recurrence of the polynomials: f(k + 1) = a z f(k) - b f(k - 1). */
static struct polynomial step(const struct polynomial *f, const struct polynomial *before, double a,
                              double b)
{
    struct polynomial next = {.degree = f->degree + 1};
    for (unsigned k = 0; k <= f->degree; k++)
        next.coefficient[k + 1] = a * f->coefficient[k];
    for (unsigned k = 0; k < f->degree; k++)
        next.coefficient[k] -= b * before->coefficient[k];
    return next;
}

/* Legendre polynomials are defined on -1 to 1, so their argument is z / sqrt(3). */
static struct polynomial orthogonal(bool uniform, unsigned degree)
{
    struct polynomial before = power(0), f = power(1);
    if (uniform)
        f.coefficient[1] = 1 / sqrt(3);
    for (unsigned k = 1; k < degree; k++) {
        const double a = uniform ? (2 * k + 1) / (k + 1.0) / sqrt(3) : 1;
        const struct polynomial next = step(&f, &before, a, uniform ? k / (k + 1.0) : k);
        before = f;
        f = next;
    }
    return f;
}

/* ---- The law of a mean ---- */

struct mean_law {
    double mean, variance, skewness, kurtosis; /* of one value */
};

static struct mean_law law_of(const struct shuf__stream_law *law, const struct polynomial *f,
                              double limit)
{
    double moment[5] = {0};
    for (size_t i = 0; i < law->nodes; i++) {
        const double y = fabs(law->node[i]) <= limit ? value_at(f, law->node[i]) : 0;
        const double w = law->weight[i];
        moment[1] += w * y;
        moment[2] += w * y * y;
        moment[3] += w * y * y * y;
        moment[4] += w * y * y * y * y;
    }
    const double around = sqrt(moment[2]); /* a mean that is 0 up to rounding counts as 0 */
    const double m = fabs(moment[1]) > 1e-12 * around ? moment[1] : 0, v = moment[2] - m * m;
    const double third = moment[3] - 3 * m * moment[2] + 2 * m * m * m;
    const double fourth = moment[4] - 4 * m * moment[3] + 6 * m * m * moment[2] - 3 * m * m * m * m;
    return (struct mean_law){m, v, third / (v * sqrt(v)), fourth / (v * v) - 3};
}

/* Whether the law is nearly normal: p-values down to 1e-6 must be right within a factor of two. */
static bool is_normal(const struct mean_law *of, double n)
{
    return fabs(of->skewness) <= 0.03 * sqrt(n) && fabs(of->kurtosis) <= 0.01 * n;
}

static double mean_up_to(const struct polynomial *f, unsigned shell, const double *sum, double n)
{
    double total = 0;
    for (unsigned s = 0; s <= shell; s++)
        for (unsigned k = 0; k <= f->degree; k++)
            total += f->coefficient[k] * sum[(POWERS + 1) * s + k];
    return total / n;
}

static void judge(const struct shuf__stream_law *law, const struct polynomial *f, double n,
                  const double *sum, const char *name, struct shuf__findings *findings)
{
    for (unsigned shell = SHELLS; shell-- > 0;) {
        const struct mean_law of = law_of(law, f, moments_limits[shell]);
        if (!is_normal(&of, n))
            continue;
        const double mean = mean_up_to(f, shell, sum, n);
        const double p = shuf__normal_p((mean - of.mean) / sqrt(of.variance / n));
        if (law->uniform)
            shuf__find(findings, 0, mean, of.mean, p, "%s %u", name, f->degree);
        else
            shuf__find(findings, 0, mean, of.mean, p, "%s %u, to %g", name, f->degree,
                       moments_limits[shell]);
        return;
    }
}

static void judge_moments(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                          const double *sum, struct shuf__findings *findings)
{
    (void)count;
    for (unsigned degree = 1; degree <= 12; degree++) {
        const struct polynomial f = power(degree);
        judge(law, &f, (double)n, sum, "power", findings);
    }
    /* Degrees 1 and 2 have been judged as powers. */
    for (unsigned degree = 3; degree <= (law->uniform ? 8 : POWERS); degree++) {
        const struct polynomial f = orthogonal(law->uniform, degree);
        judge(law, &f, (double)n, sum, law->uniform ? "Legendre" : "Hermite", findings);
    }
}

const struct shuf__stream_test shuf__stream_moments = {
    .name = "moments",
    .what = "moments up to 12, Hermite's up to 16",
    .of = SHUF__OF_NORMAL | SHUF__OF_UNIFORM,
    .sums = (POWERS + 1) * SHELLS,
    .add = add_moments,
    .judge = judge_moments,
};

/* ---- Cells ---- */

/* The law of single values: their counts in 1024 cells of equal probability, and the
 * Anderson-Darling test on batches. */

enum { BATCH = 4096, P_CELLS = 32 };

static void add_bins(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    (void)sum;
    for (size_t i = 0; i < chunk->count; i++)
        count[shuf__cell(&chunk->law->cells, chunk->z[i])]++;
}

static void judge_bins(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                       const double *sum, struct shuf__findings *findings)
{
    (void)n;
    (void)sum;
    const struct shuf__chi_squared x =
        shuf__pearson_least(count, law->cells.p, law->cells.count, SHUF__LEAST_EXPECTED);
    shuf__find_chi_squared(findings, 0, x, "%.0f cells", x.dof + 1);
}

const struct shuf__stream_test shuf__stream_bins = {
    .name = "bins",
    .what = "cells of equal probability",
    .of = SHUF__OF_NORMAL | SHUF__OF_UNIFORM,
    .counts = SHUF__CELLS,
    .add = add_bins,
    .judge = judge_bins,
};

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Anderson and Darling's statistic. u is sorted. For a good stream u is uniform. */
static double statistic(const double *u, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)(2 * i + 1) *
               (log(fmax(u[i], 1e-300)) + log(fmax(1 - u[count - 1 - i], 1e-17)));
    return -(double)count - sum / (double)count;
}

/* The sums are the sum of the p-values' logarithms and the number of p-values. The counts are a
 * histogram of the p-values. A chunk has one batch. */
static void add_batches(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    double *u = chunk->scratch;
    if (chunk->count < BATCH)
        return;
    for (size_t i = 0; i < BATCH; i++)
        u[i] = shuf__law_below_spread(chunk->law, chunk->z[i], chunk->first + i);
    qsort(u, BATCH, sizeof *u, by_value);
    const double p = fmax(shuf__law_anderson_darling(statistic(u, BATCH)), 1e-300);
    const unsigned cell = (unsigned)(p * P_CELLS);
    count[cell < P_CELLS ? cell : P_CELLS - 1]++;
    sum[0] += log(p);
    sum[1]++;
}

static void judge_batches(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                          const double *sum, struct shuf__findings *findings)
{
    double even[P_CELLS];
    (void)law;
    (void)n;
    for (unsigned k = 0; k < P_CELLS; k++)
        even[k] = 1.0 / P_CELLS;
    if (sum[1] >= 1) /* Fisher's method to combine p-values */
        shuf__find_chi_squared(findings, 0, (struct shuf__chi_squared){-2 * sum[0], 2 * sum[1]},
                               "Fisher of %.0f", sum[1]);
    shuf__find_chi_squared(findings, 0, shuf__pearson(count, even, P_CELLS), "%.0f p-values",
                           sum[1]);
}

const struct shuf__stream_test shuf__stream_anderson_darling = {
    .name = "anderson-darling",
    .what = "Anderson and Darling's test on batches of 4096",
    .of = SHUF__OF_NORMAL | SHUF__OF_UNIFORM,
    .counts = P_CELLS,
    .sums = 2,
    .add = add_batches,
    .judge = judge_batches,
};

/* ---- Tails ---- */

/* Tests of the tails on both sides: the number of values beyond several limits, and the
 * distribution of the values beyond the first limit. */

enum { LIMITS = 5, PARTS = 64, SIDE = LIMITS + PARTS };

static const double tails_limits[LIMITS] = {4, 4.5, 5, 5.5, 6};

/* The counts of a side begin at count[SIDE * side]: first the values beyond each limit, then the
 * values in parts of equal probability. */
static void add_tails(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    const struct shuf__stream_law *law = chunk->law;
    const double all = shuf__law_above(law, tails_limits[0]);
    (void)sum;
    for (size_t i = 0; i < chunk->count; i++) {
        const double z = fabs(chunk->z[i]);
        if (z < tails_limits[0] - 0.1) /* all numbers that are rounded to z are below the limit */
            continue;
        uint64_t *side = count + (chunk->z[i] > 0 ? SIDE : 0);
        const double above = shuf__law_above_spread(law, z, chunk->first + i);
        for (unsigned k = 0; k < LIMITS; k++)
            side[k] += above < shuf__law_above(law, tails_limits[k]);
        if (above < all)
            side[LIMITS + (unsigned)(above / all * PARTS)]++;
    }
}

static void judge_side(const struct shuf__stream_law *law, double n, const uint64_t *side,
                       const char *name, struct shuf__findings *findings)
{
    double even[PARTS];
    for (unsigned k = 0; k < LIMITS; k++) {
        const double mean = n * shuf__law_above(law, tails_limits[k]);
        shuf__find(findings, 0, (double)side[k], mean, shuf__poisson_p(side[k], mean), "%s%g", name,
                   tails_limits[k]);
    }
    for (unsigned k = 0; k < PARTS; k++)
        even[k] = 1.0 / PARTS;
    shuf__find_chi_squared(findings, 0, shuf__pearson(side + LIMITS, even, PARTS), "spread, %s4",
                           name);
}

static void judge_tails(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                        const double *sum, struct shuf__findings *findings)
{
    (void)sum;
    judge_side(law, (double)n, count, "below -", findings);
    judge_side(law, (double)n, count + SIDE, "above ", findings);
}

const struct shuf__stream_test shuf__stream_tails = {
    .name = "tails",
    .what = "values beyond 4, 4.5, 5, 5.5 and 6",
    .of = SHUF__OF_NORMAL,
    .counts = 2 * SIDE,
    .add = add_tails,
    .judge = judge_tails,
};

/* ---- Lattices ---- */

/* Lattices. A Hadamard transform of integers gives sums that are all even or all odd, so the sums
 * lie on a lattice. The test rounds the values of a block to multiples of a step, for many steps.
 * Whether a multiple is odd is like a coin toss, and in a good stream the 32 tosses of a block are
 * independent. With a lattice of this step, the tosses of a block are too equal or too unequal. For
 * a rounded law, the probability of odd multiples is computed from the law. */

enum { LEAST_STEP = 2, MOST_STEP = 30, STEPS = MOST_STEP - LEAST_STEP + 1 };
enum { ODDS = SHUF__BLOCK + 1, LATTICE_LEAST = 1000 };

/* The largest k of steps 2^-k. A step must be at least twice the distance of neighbouring numbers
 * of the type below 8. For types with few digits it must be four times this distance, because fewer
 * values are rounded to a power of two than to its neighbours. */
static unsigned most_step(shuf_dtype dtype)
{
    static const unsigned most[SHUF__DTYPES] = {
        [SHUF_F64] = MOST_STEP, [SHUF_F32] = 20, [SHUF_F16] = 6, [SHUF_BF16] = 3};
    return most[dtype];
}

static unsigned least_step(shuf_dtype dtype)
{
    return dtype == SHUF_F64 || dtype == SHUF_F32 ? 10 : LEAST_STEP;
}

void shuf__stream_lattice_steps(shuf_dtype dtype, unsigned *least, unsigned *most)
{
    *least = least_step(dtype);
    *most = most_step(dtype);
}

/* Adds 1.5 * 2^52. The lowest bits are then the nearest integer. Numbers half-way are rounded up,
 * because the test would notice rounding to even. */
static inline unsigned is_odd(double scaled)
{
    const double moved = scaled + SHUF__HALF_WAY_UP + 0x1.8p52;
    uint64_t bits;
    memcpy(&bits, &moved, sizeof bits);
    return (unsigned)(bits & 1);
}

static void take_odd(const double *z, double scale, unsigned odd[SHUF__BLOCK])
{
    for (unsigned p = 0; p < SHUF__BLOCK; p++)
        for (unsigned b = 0; b < SHUF__BLOCK; b++)
            odd[b] += is_odd(z[SHUF__BLOCK * p + b] * scale);
}

static double chance_of_odd(const struct shuf__stream_law *law, double scale)
{
    double chance = 0;
    for (size_t i = 0; i < law->nodes && law->rounded; i++)
        chance += is_odd(law->node[i] * scale) * law->weight[i];
    return law->rounded ? chance : 0.5;
}

static void add_lattice(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    (void)sum;
    const unsigned least = least_step(chunk->law->dtype), most = most_step(chunk->law->dtype);
    for (size_t i = 0; i < chunk->blocks * SHUF__BLOCK; i += SHUF__SUPERBLOCK)
        for (unsigned k = least; k <= most; k++) {
            unsigned odd[SHUF__BLOCK] = {0};
            take_odd(chunk->by_place + i, ldexp(1, (int)k), odd);
            for (unsigned b = 0; b < SHUF__BLOCK; b++)
                count[ODDS * (k - LEAST_STEP) + odd[b]]++;
        }
    count[ODDS * STEPS] += chunk->blocks;
}

static void judge_lattice(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                          const double *sum, struct shuf__findings *findings)
{
    double coins[ODDS];
    (void)n;
    (void)sum;
    for (unsigned k = least_step(law->dtype);
         k <= most_step(law->dtype) && count[ODDS * STEPS] >= LATTICE_LEAST; k++) {
        const double chance = chance_of_odd(law, ldexp(1, (int)k));
        for (unsigned odd = 0; odd < ODDS; odd++)
            coins[odd] = gsl_ran_binomial_pdf(odd, chance, SHUF__BLOCK);
        shuf__find_chi_squared(
            findings, 0,
            shuf__pearson_least(count + ODDS * (k - LEAST_STEP), coins, ODDS, SHUF__LEAST_EXPECTED),
            "odd multiples of 2^-%u", k);
    }
}

const struct shuf__stream_test shuf__stream_lattice = {
    .name = "lattice",
    .what = "odd multiples of a step among 32 values of a block",
    .of = SHUF__OF_NORMAL,
    .counts = ODDS * STEPS + 1,
    .add = add_lattice,
    .judge = judge_lattice,
};

/* ---- Quotients ---- */

/* The quotient of the smaller and the larger number of a pair, where it is small. A generator that
 * multiplies a radius by the sine and the cosine of an angle can have sines on a grid, so that the
 * quotients are multiples of a power of two. The test adds the cosine of 2 pi q 2^k for the
 * quotients q of an octave, with k a little smaller than their last bits. */

/* Quotients from 2^-(FIRST + OCTAVES) to 2^-FIRST. The last bit of a float is 23 places below its
 * first one. */
enum { FIRST = 8, OCTAVES = 14, SHIFTS = 3, LEAST_SHIFT = 20, QUOTIENTS_LEAST = 50 };

static void add_quotients(const struct shuf__chunk *chunk, uint64_t *count, double *sum)
{
    for (size_t i = 0; i + 1 < chunk->count; i += 2) {
        const double x = fabs(chunk->value[i]), y = fabs(chunk->value[i + 1]),
                     quotient = fmin(x, y) / fmax(x, y);
        if (!(quotient > 0 && quotient < ldexp(1, -FIRST)))
            continue;
        const int octave = -ilogb(quotient) - 1 - FIRST;
        if (octave >= OCTAVES)
            continue;
        count[octave]++;
        for (int s = 0; s < SHIFTS; s++)
            sum[SHIFTS * octave + s] +=
                cos(2 * M_PI * fmod(ldexp(quotient, FIRST + octave + 1 + LEAST_SHIFT + s), 1));
    }
}

static void judge_quotients(const struct shuf__stream_law *law, uint64_t n, const uint64_t *count,
                            const double *sum, struct shuf__findings *findings)
{
    (void)law;
    (void)n;
    for (int octave = 0; octave < OCTAVES; octave++)
        for (int s = 0; s < SHIFTS && count[octave] >= QUOTIENTS_LEAST; s++)
            shuf__find(findings, 0, sum[SHIFTS * octave + s] / (double)count[octave], 0,
                       shuf__normal_p(sum[SHIFTS * octave + s] / sqrt((double)count[octave] / 2)),
                       "below 2^-%d, multiples of 2^-%d", FIRST + octave,
                       FIRST + octave + 1 + LEAST_SHIFT + s);
}

const struct shuf__stream_test shuf__stream_quotients = {
    .name = "quotients",
    .what = "small quotients of a pair, which may lie on a grid",
    .of = SHUF__OF_NORMAL | SHUF__OF_FINE,
    .counts = OCTAVES,
    .sums = SHIFTS * OCTAVES,
    .add = add_quotients,
    .judge = judge_quotients,
};
