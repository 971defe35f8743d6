/* SPDX-License-Identifier: MIT
 *
 * Measures how well the folds of `primefold` hide equal differences. For each n it prints the
 * probability C that two equal differences of values are still equal after a fold. It also prints
 * how many rows and operations a test needs to detect this by parallelograms: two pairs of values
 * with equal differences (docs/spec.md).
 *
 *     fold-collisions [N...]
 */
#include "shuf/primefold.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLE = 1 << 16, TRIALS = 4000 };

static const uint64_t sizes[] = {
    257,   263,   509,    521,     1021,    1024,    2053,     4096,      8209,       16381,
    65521, 65537, 131073, 1048577, 2097153, 4194305, 16777217, 268435457, 1000000000, 1073741825};

/* A random word, from the key words of a seed that nothing else uses. */
static uint64_t random_word(void)
{
    static uint64_t count;
    uint32_t word[8];
    shuf_key_words(shuf_key_of_seed(UINT64_MAX), count++, SHUF_PURPOSE_STREAM, 0, word);
    return (uint64_t)word[0] << 32 | word[1];
}

static int by_size(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Folds SAMPLE values, or all values if there are fewer, and the value `distance` above each.
 * Returns the probability that two of these pairs then have equal differences, up to the sign. */
static double equal_pairs(shuf_primefold *f, uint64_t distance, uint64_t *difference)
{
    const uint64_t p = f->shape.p, count = p < SAMPLE ? p : SAMPLE;
    double equal = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t x = count == p ? i : shuf__mulhi64(random_word(), p);
        const uint64_t y = x + distance < p ? x + distance : x + distance - p;
        const uint64_t a = shuf_primefold_fold(f, 0, x), b = shuf_primefold_fold(f, 0, y);
        const uint64_t d = a < b ? b - a : a - b;
        difference[i] = d < p - d ? d : p - d;
    }
    qsort(difference, count, sizeof *difference, by_size);
    for (uint64_t i = 1, run = 1; i <= count; i++, run++)
        if (i == count || difference[i] != difference[i - 1]) {
            equal += 0.5 * (double)run * (double)(run - 1);
            run = 0;
        }
    return equal / (0.5 * (double)count * (double)(count - 1));
}

/* log2(C - chance), where chance is the probability that two random differences are equal. */
static double collisions(uint64_t n, unsigned trials, uint64_t *difference, double *error)
{
    shuf_primefold f = shuf_primefold_make(n, 0, 0);
    const double p = (double)f.shape.p;
    double sum = 0, squares = 0;
    for (unsigned i = 0; i < trials; i++) {
        f.map[0].fold = random_word() & ((UINT64_C(1) << (f.shape.bits - f.shape.shift)) - 1);
        const double c =
            equal_pairs(&f, 1 + shuf__mulhi64(random_word(), f.shape.p - 1), difference);
        sum += c;
        squares += c * c;
    }
    const double mean = sum / trials, chance = 2 / p;
    *error = sqrt((squares / trials - mean * mean) / trials) / mean;
    return log2(mean - chance);
}

int main(int count, char **values)
{
    uint64_t *difference = malloc(SAMPLE * sizeof *difference);
    if (!difference)
        return 1;
    printf("%11s %11s %5s %9s %7s %10s %10s\n", "n", "p", "folds", "log2 C", "+- %", "log2 rows",
           "log2 ops");
    for (size_t i = 0; i < (count > 1 ? (size_t)count - 1 : sizeof sizes / sizeof *sizes); i++) {
        const uint64_t n = count > 1 ? (uint64_t)strtod(values[i + 1], NULL) : sizes[i];
        const shuf_primefold_shape shape = shuf_primefold_shape_of(n);
        if (shape.maps == 0) {
            fprintf(stderr, "fold-collisions: n %s: expected 257 or more\n", values[i + 1]);
            free(difference);
            return 1;
        }
        double error;
        const double c = collisions(n, TRIALS, difference, &error), folds = shape.maps - 1;
        const double bits = log2((double)n);
        /* The rows for 6.5 standard deviations. A test of all distances compares n^2 / 2
         * differences of a row, and one distance n differences:
         *
         *     all distances    n^2   C^folds / sqrt 2 deviations for each row
         *     one distance     n^1.5 C^folds / sqrt 2 */
        const double rows = 2 * (log2(6.5 * sqrt(2)) - 2 * bits - folds * c);
        const double operations = 2 * (log2(6.5 * sqrt(2)) - 1.5 * bits - folds * c) + bits;
        printf("%11llu %11llu %5.0f %9.2f %7.1f %10.1f %10.1f\n", (unsigned long long)n,
               (unsigned long long)shape.p, folds, c, 100 * error, rows, operations);
    }
    free(difference);
    return 0;
}
