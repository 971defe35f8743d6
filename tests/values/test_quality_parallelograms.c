/* SPDX-License-Identifier: MIT
 *
 * The counts of parallelograms in shuf-quality. The expectation is checked against all permutations
 * of few values, and the variance against many shuffles. The old primefold fails the test, and an
 * exact shuffle passes.
 */
#include "generator.h"
#include "parallelograms.h"
#include "run.h"
#include "support/cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The law --------------------------------------------------------------------- */

static bool next_permutation(uint32_t *row, uint32_t n)
{
    uint32_t i = n - 1, j = n - 1;
    while (i > 0 && row[i - 1] > row[i])
        i--;
    if (i == 0)
        return false;
    while (row[j] < row[i - 1])
        j--;
    const uint32_t kept = row[i - 1];
    row[i - 1] = row[j];
    row[j] = kept;
    for (j = n - 1; i < j; i++, j--) {
        const uint32_t other = row[i];
        row[i] = row[j];
        row[j] = other;
    }
    return true;
}

/* Counts as the definition says: compares every pair of pairs. */
static void count_by_definition(uint32_t n, uint64_t modulus, const uint32_t *row, uint32_t d,
                                uint64_t *equal, uint64_t *either)
{
    for (uint32_t i = 0; i + d < n; i++)
        for (uint32_t j = 0; j < i; j++) {
            const uint64_t a = (row[i + d] + modulus - row[i]) % modulus;
            const uint64_t b = (row[j + d] + modulus - row[j]) % modulus;
            *equal += a == b;
            *either += a == b || (a + b) % modulus == 0;
        }
}

static void expect_mean(uint32_t n, uint64_t modulus, uint32_t d)
{
    const uint64_t m = shuf__parallelogram_modulus(n, modulus);
    const struct shuf__parallelogram_law law = shuf__parallelogram_law(n, m);
    const struct shuf__parallelograms places = shuf__parallelogram_places(n, d);
    uint32_t row[8] = {0}, tally[16] = {0};
    uint64_t equal = 0, either = 0, counted_equal = 0, counted = 0, all = 0;
    for (uint32_t i = 0; i < n; i++)
        row[i] = i;
    do {
        const struct shuf__parallelograms found = shuf__parallelograms_count(n, m, row, d, tally);
        counted_equal += found.equal;
        counted += found.either;
        count_by_definition(n, modulus ? modulus : 1000, row, d, &equal, &either);
        all++;
    } while (next_permutation(row, n));
    assert_int_equal(counted_equal, equal);
    assert_int_equal(counted, either);
    const double deviation =
        (double)either - shuf__parallelograms_expected(&law, &places) * (double)all;
    const double deviation_equal =
        (double)equal -
        ((double)places.pairs * law.equal + (double)places.chains * law.chain) * (double)all;
    if (fabs(deviation) > 1e-6 * (double)all || fabs(deviation_equal) > 1e-6 * (double)all)
        fail_msg("n = %u, modulus %u, distance %u: off by %g and %g", n, (unsigned)modulus, d,
                 deviation, deviation_equal);
}

static void expectation_matches_enumeration(void **state)
{
    (void)state;
    for (uint32_t n = 4; n <= 7; n++)
        for (uint32_t d = 1; d < n; d++) {
            for (uint64_t modulus = n; modulus <= 2 * n + 1; modulus++)
                expect_mean(n, modulus, d);
            expect_mean(n, 0, d);
        }
    expect_mean(8, 11, 2);
    expect_mean(8, 0, 1);
}

/* ---- The variance ---------------------------------------------------------------- */

/* The variance of the sum of the counts of all distances. Two equal differences count at two
 * distances. */
static void variance_matches_sample(void **state)
{
    (void)state;
    enum { N = 97, ROWS = 20000 };
    static uint32_t tally[2 * N];
    _Alignas(64) unsigned char made[SHUF__GENERATOR_STATE] = {0};
    const struct shuf__parallelogram_law law = shuf__parallelogram_law(N, N);
    double second = 0, expected = 0;
    for (unsigned r = 0; r < ROWS; r++) {
        uint32_t row[N];
        double deviation = 0, variance = 0;
        shuf__generator_fisher_yates.make(made, N, 1, r, 0);
        shuf__generator_fisher_yates.fill(made, N, row);
        for (uint32_t d = 1; d < N; d++) {
            const struct shuf__parallelograms one = shuf__parallelograms_count(N, N, row, d, tally);
            deviation += (double)one.either - shuf__parallelograms_expected(&law, &one);
            variance += (double)(one.pairs + one.chains) * (law.either + law.equal);
        }
        second += deviation * deviation / ROWS;
        expected += variance / ROWS;
    }
    if (fabs(second / expected - 1) > 0.1)
        fail_msg("variance %g: expected %g", second, expected);
}

/* ---- Verdicts -------------------------------------------------------------------- */

static struct shuf__findings judge(const char *generator, uint32_t n, uint64_t modulus,
                                   uint64_t samples)
{
    const struct shuf__origin origin = {.type = &shuf__source_generator,
                                        .generator = shuf__generator_find(generator),
                                        .modulus = modulus,
                                        .seed = 7};
    struct shuf__run_options options = {
        .origin = &origin, .n = n, .samples = samples, .threads = 2};
    struct shuf__findings findings = {.alpha = 0.001};
    struct shuf__outcome outcome;
    struct shuf__error error;
    for (int i = 0; shuf__tests[i].name; i++)
        if (strcmp(shuf__tests[i].name, "parallelograms") == 0)
            options.tests = UINT32_C(1) << i;
    assert_int_equal(shuf__run(&options, &findings, &outcome, &error), SHUF_OK);
    shuf__findings_decide(&findings);
    return findings;
}

static const struct {
    uint32_t n, modulus, rows;
    const char *detail;
} sizes[] = {
    {97, 97, 20000, "equal or opposite"},     {97, 97, 3000, "best distance, bits"},
    {257, 257, 4000, "equal or opposite"},    {1000, 1009, 200, "best distance, bits"},
    {65536, 65537, 200, "equal or opposite"},
};

static void broken_primefold_fails(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct shuf__findings all = judge("broken-primefold", sizes[i].n, 0, sizes[i].rows);
        bool failed = false;
        for (size_t f = 0; f < all.count; f++)
            failed |= all.finding[f].failed && strcmp(all.finding[f].detail, sizes[i].detail) == 0;
        if (!failed)
            fail_msg("n = %u: passed %s", sizes[i].n, sizes[i].detail);
        shuf__findings_free(&all);
    }
}

static void fisher_yates_passes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int plain = 0; plain < (sizes[i].n == 97 ? 2 : 1); plain++) {
            struct shuf__findings all =
                judge("fisher-yates", sizes[i].n, plain ? 0 : sizes[i].modulus, sizes[i].rows);
            assert_true(all.count >= 2);
            for (size_t f = 0; f < all.count; f++)
                if (all.finding[f].failed)
                    fail_msg("n = %u: %s: p = %g", sizes[i].n, all.finding[f].detail,
                             all.finding[f].p);
            shuf__findings_free(&all);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expectation_matches_enumeration),
        cmocka_unit_test(variance_matches_sample),
        cmocka_unit_test(broken_primefold_fails),
        cmocka_unit_test(fisher_yates_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
