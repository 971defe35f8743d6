/* SPDX-License-Identifier: MIT
 *
 * Moments, and means of orthogonal polynomials: Hermite's, or Legendre's for the uniform law. The
 * mean of a high power is nearly normal only for very many values, because of rare large values. So
 * the code sums powers of the values below several limits. A moment uses the highest limit with
 * which its law is nearly normal. The test `tails` covers the values beyond this limit.
 */
#include "stream.h"

#include <math.h>

enum { POWERS = 16, SHELLS = 9, LANES = 8 };

static const double limits[SHELLS] = {2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 8};

/* sum[(POWERS + 1) * shell + power] is a sum over the values between two limits, a shell. */
static void add_outer(double z, double *sum)
{
    unsigned shell = 1;
    double power = 1;
    while (shell < SHELLS && fabs(z) > limits[shell])
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
        const bool is_inner = fabs(chunk->z[i]) <= limits[0];
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

/* ---- Polynomials ----------------------------------------------------------------- */

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

/* ---- The law of a mean ----------------------------------------------------------- */

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
        const struct mean_law of = law_of(law, f, limits[shell]);
        if (!is_normal(&of, n))
            continue;
        const double mean = mean_up_to(f, shell, sum, n);
        const double p = shuf__normal_p((mean - of.mean) / sqrt(of.variance / n));
        if (law->uniform)
            shuf__find(findings, 0, mean, of.mean, p, "%s %u", name, f->degree);
        else
            shuf__find(findings, 0, mean, of.mean, p, "%s %u, to %g", name, f->degree,
                       limits[shell]);
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
