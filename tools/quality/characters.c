/* SPDX-License-Identifier: MIT
 *
 * Character sums: S(a, b) = sum over i of e(a i / N + b f(i) / p). e(x) is the point of the unit
 * circle at x turns, exp(2 pi sqrt(-1) x). N is a power of two. p is the modulus or, without one,
 * the smallest prime that is not below n. Any linear relation of positions and values makes one of
 * the sums large. |S|^2 divided by its exact mean has nearly an exponential distribution. Only its
 * tail is shorter, because no |S| is larger than n. The test judges the best sum of a row as the
 * best of many, and then the best of all rows.
 */
#include "test.h"

#include "shuf/prime.h"

#include <gsl/gsl_fft_complex.h>
#include <math.h>
#include <string.h>

enum { MOST_P = 2048, STEPS = 4, BEST = 64 * STEPS, WORK = 1 << 18 };
enum { ROWS, WORDS = 1 + BEST };

size_t shuf__characters_words(uint32_t n)
{
    (void)n;
    return WORDS;
}

/* The tables for one size. */
struct sums {
    uint32_t n, p, length;
    double cosine[MOST_P], sine[MOST_P];
    double positions[MOST_P]; /* |sum of e(a i / N)|^2 */
};

static double square(const double *complex)
{
    return complex[0] * complex[0] + complex[1] * complex[1];
}

static void set_up(uint32_t n, uint64_t modulus, struct sums *sums)
{
    double x[2 * MOST_P] = {0};
    sums->n = n;
    sums->p = (uint32_t)(modulus == 0 || modulus > MOST_P ? shuf_prime_from(n) : modulus);
    for (sums->length = 1; sums->length < n;)
        sums->length *= 2;
    for (uint32_t k = 0; k < sums->p; k++) {
        sums->cosine[k] = cos(2 * M_PI * k / sums->p);
        sums->sine[k] = sin(2 * M_PI * k / sums->p);
    }
    for (uint32_t i = 0; i < n; i++)
        x[2 * i] = 1;
    gsl_fft_complex_radix2_forward(x, 1, sums->length);
    for (uint32_t a = 0; a < sums->length; a++)
        sums->positions[a] = square(x + 2 * a);
}

/* |sum of e(b v / p)|^2 over all values. */
static double of_values(const struct sums *sums, uint32_t b)
{
    double sum[2] = {0};
    for (uint32_t v = 0; v < sums->n; v++) {
        const uint32_t at = (uint32_t)((uint64_t)b * v % sums->p);
        sum[0] += sums->cosine[at];
        sum[1] += sums->sine[at];
    }
    return square(sum);
}

/* The largest |S(a, b)|^2 with this b, divided by its mean. */
static double best_of(const struct sums *sums, const uint32_t *row, uint32_t b)
{
    const double n = sums->n, values = of_values(sums, b);
    double x[2 * MOST_P], best = 0;
    memset(x, 0, 2 * sums->length * sizeof *x);
    for (uint32_t i = 0; i < sums->n; i++) {
        const uint32_t at = (uint32_t)((uint64_t)b * row[i] % sums->p);
        x[2 * i] = sums->cosine[at];
        x[2 * i + 1] = sums->sine[at];
    }
    gsl_fft_complex_radix2_forward(x, 1, sums->length);
    for (uint32_t a = 1; a < sums->length; a++) {
        const double mean = n + (sums->positions[a] - n) * (values - n) / (n * (n - 1));
        if (mean > n / 2)
            best = fmax(best, square(x + 2 * a) / mean);
    }
    return best;
}

/* In a long row only some values of b are tested. Different rows test different b. */
static double best_of_row(const struct sums *sums, const uint32_t *row, uint64_t number)
{
    const uint32_t half = (sums->p - 1) / 2, most = WORK / sums->length;
    const uint32_t count = half < most ? half : most;
    double best = 0;
    for (uint32_t k = 0; k < count; k++)
        best = fmax(best, best_of(sums, row, 1 + (uint32_t)((number * count + k) % half)));
    return -log2(-expm1((double)count * sums->length * log1p(-fmin(exp(-best), 1 - 1e-15))));
}

void shuf__characters_add(const struct shuf__rows *rows, uint64_t *words)
{
    struct sums sums;
    set_up(rows->n, rows->modulus, &sums);
    for (size_t r = 0; r < rows->count; r++) {
        if ((rows->first + r) % 16 != 0) /* takes as long as all other tests together */
            continue;
        const double step =
            STEPS * best_of_row(&sums, rows->row + r * rows->n, (rows->first + r) / 16);
        words[1 + (step > 0 ? (unsigned)fmin(step, BEST - 1) : 0)]++;
        words[ROWS]++;
    }
}

void shuf__characters_judge(uint32_t n, const uint64_t *words, struct shuf__findings *findings)
{
    unsigned best = BEST - 1;
    while (best > 0 && words[1 + best] == 0)
        best--;
    const double p =
        best == 0 ? 1 : -expm1((double)words[ROWS] * log1p(-exp2(-(double)best / STEPS)));
    shuf__find(findings, n, (double)best / STEPS, log2((double)words[ROWS]), p, "best sum, bits");
}
