/* SPDX-License-Identifier: MIT
 *
 * shuf-quality fails bad generators by the tests that should detect them, and passes good ones. The
 * p-values of good ones are uniform.
 */
#include "generator.h"
#include "options.h"
#include "run.h"
#include "support/cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Adds the findings of `judge --generator NAME --rounds ROUNDS`; 0: all rounds. */
static void add_findings(const char *generator, unsigned rounds, uint32_t n, uint64_t samples,
                         uint64_t seed, bool vary_seed, uint32_t tests,
                         struct shuf__findings *findings)
{
    const struct shuf__generator *g = shuf__generator_find(generator);
    assert_non_null(g);
    const struct shuf__origin origin = {.type = &shuf__source_generator,
                                        .generator = g,
                                        .rounds = rounds ? rounds : g->rounds,
                                        .seed = seed,
                                        .vary_seed = vary_seed};
    const struct shuf__run_options options = {
        .origin = &origin, .n = n, .samples = samples, .tests = tests, .threads = 2};
    struct shuf__outcome outcome;
    struct shuf__error error;
    if (shuf__run(&options, findings, &outcome, &error) != SHUF_OK)
        fail_msg("%s", error.text);
    assert_int_equal(outcome.rows, samples);
}

/* Returns a bit for each test whose name contains `part`. */
static uint32_t tests_named(const char *part)
{
    uint32_t tests = 0;
    for (int i = 0; shuf__tests[i].name; i++)
        if (strstr(shuf__tests[i].name, part))
            tests |= UINT32_C(1) << i;
    return tests;
}

static struct shuf__findings judge(const char *generator, unsigned rounds, uint32_t n,
                                   uint64_t samples, uint64_t seed, bool vary_seed)
{
    struct shuf__findings findings = {.alpha = 0.001};
    add_findings(generator, rounds, n, samples, seed, vary_seed, SHUF__TESTS_ALL, &findings);
    shuf__findings_decide(&findings);
    return findings;
}

/* Decides over all findings together, and expects that none has failed. */
static void expect_no_failure(const char *generator, struct shuf__findings *all)
{
    shuf__findings_decide(all);
    for (size_t i = 0; i < all->count; i++)
        if (all->finding[i].failed)
            fail_msg("%s, n = %u: %s, %s: p = %g", generator, all->finding[i].n,
                     all->finding[i].test, all->finding[i].detail, all->finding[i].p);
}

static const struct shuf__finding *find_finding(const struct shuf__findings *all, const char *test,
                                                const char *detail)
{
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->finding[i].test, test) == 0 && strcmp(all->finding[i].detail, detail) == 0)
            return &all->finding[i];
    fail_msg("no finding of %s, %s", test, detail);
    return NULL;
}

/* `expected` ends with a row of NULL. */
static void expect_failed_tests(const char *generator, unsigned rounds, uint32_t n,
                                uint64_t samples, uint32_t tests, const char *const (*expected)[2])
{
    struct shuf__findings all = {.alpha = 0.001};
    add_findings(generator, rounds, n, samples, 7, false, tests, &all);
    shuf__findings_decide(&all);
    for (; (*expected)[0]; expected++)
        if (!find_finding(&all, (*expected)[0], (*expected)[1])->failed)
            fail_msg("%s, n = %u: passed %s, %s", generator, n, (*expected)[0], (*expected)[1]);
    shuf__findings_free(&all);
}

static void lcg_fails(void **state)
{
    (void)state;
    static const char *const small[][2] = {
        {"orders", "5!"}, {"mmd", "lambda 5"}, {"second-differences", "of 3 neighbours"}, {0}};
    static const char *const large[][2] = {{"differences", "distance 1"},
                                           {"cycles", "distribution"},
                                           {"descents", "distribution"},
                                           {"patterns", "of 3"},
                                           {"second-differences", "of 3 neighbours"},
                                           {"rows", "agreements"},
                                           {"avalanche", "agreements"},
                                           {0}};
    const uint32_t cheap = ~(tests_named("parallelograms") | tests_named("characters"));
    expect_failed_tests("lcg", 0, 5, 20000, SHUF__TESTS_ALL, small);
    expect_failed_tests("lcg", 0, 100, 20000, cheap, large);
    expect_failed_tests("lcg", 0, 1000, 10000, cheap, large);
}

/* With three of its maps, primefold keeps ratios of differences. */
static void primefold_with_three_maps_fails(void **state)
{
    (void)state;
    static const char *const expected[][2] = {{"ratios", "second differences"},
                                              {"ratios", "ratios"},
                                              {"characters", "best sum, bits"},
                                              {0}};
    expect_failed_tests("primefold", 3, 257, 4000,
                        tests_named("ratios") | tests_named("characters"), expected);
}

static void philox_with_eight_rounds_fails(void **state)
{
    (void)state;
    static const char *const small[][2] = {
        {"orders", "5!"}, {"places", "5x5"}, {"differences", "distance 1"}, {0}};
    static const char *const large[][2] = {{"differences", "distance 1"}, {0}};
    expect_failed_tests("philox24", 8, 5, 100000, SHUF__TESTS_ALL, small);
    expect_failed_tests("philox24", 8, 16, 20000, SHUF__TESTS_ALL, large);
}

/* philox24 has two known limits. At a power of two it makes only even permutations. With a domain
 * of five bits its differences are not uniform. */
static void philox_fails_at_its_limits(void **state)
{
    (void)state;
    static const char *const expected[][2] = {{"cycles", "parity"}, {0}};
    static const char *const differences[][2] = {{"differences", "distance 1"}, {0}};
    expect_failed_tests("philox24", 0, 16, 1000, SHUF__TESTS_ALL, expected);
    expect_failed_tests("philox24", 0, 16, 1000000, tests_named("differences"), differences);
    expect_failed_tests("philox24", 0, 31, 100000, tests_named("differences"), differences);
    struct shuf__findings all = judge("philox24", 0, 100, 5000, 7, false);
    assert_int_equal(all.failed, 0);
    shuf__findings_free(&all);
}

/* The test of parallelograms costs n^2 steps a row for n up to 1000, so the number of rows is
 * small. It is at least 50: with fewer rows the statistic has another distribution. */
static uint64_t row_count(uint32_t n)
{
    return n < 32 ? 3000 : n <= 64 ? 1000 : n <= 300 ? 200 : n <= 1025 ? 60 : 50;
}

static void fisher_yates_passes(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {2, 3, 4, 5, 8, 9, 16, 17, 64, 65, 128, 257, 258, 1000, 4097};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int vary_seed = 0; vary_seed < 2; vary_seed++) {
            struct shuf__findings all =
                judge("fisher-yates", 0, sizes[i], row_count(sizes[i]), 7, vary_seed == 1);
            expect_no_failure("fisher-yates", &all);
            assert_true(all.count >= 20);
            shuf__findings_free(&all);
        }
}

/* Does the same as the verb `suite`, with fewer rows. */
static void primefold_passes_at_all_sizes(void **state)
{
    (void)state;
    uint32_t sizes[100];
    unsigned count;
    struct shuf__error error;
    struct shuf__findings all = {.alpha = 0.001};
    assert_int_equal(
        shuf__sizes_parse("sizes", SHUF__SIZES_DEFAULT, 2, SHUF__N_MAX, sizes, 100, &count, &error),
        SHUF_OK);
    for (unsigned i = 0; i < count; i++) {
        const uint64_t samples = row_count(sizes[i]);
        add_findings("primefold", 0, sizes[i], samples, 7, false, SHUF__TESTS_ALL, &all);
    }
    expect_no_failure("primefold", &all);
    assert_true(all.count > 1500);
    shuf__findings_free(&all);
}

/* If primefold had too few maps, the variance of the number of descents would show it first. Two
 * maps fail. A deviation of 2 % would fail at each n. */
static void primefold_passes_variance_of_descents(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {257, 521};
    struct shuf__findings all = {.alpha = 0.001}, two = {.alpha = 0.001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        add_findings("primefold", 0, sizes[i], 100000, 7, false, tests_named("descents"), &all);
    expect_no_failure("primefold", &all);
    add_findings("primefold", 2, 257, 20000, 7, false, tests_named("descents"), &two);
    shuf__findings_decide(&two);
    assert_true(find_finding(&two, "descents", "variance")->failed);
    assert_true(find_finding(&two, "inverse-descents", "variance")->failed);
    shuf__findings_free(&two);
    shuf__findings_free(&all);
}

static void findings_do_not_depend_on_threads(void **state)
{
    (void)state;
    const struct shuf__origin origin = {
        .type = &shuf__source_generator,
        .generator = shuf__generator_find("fisher-yates"),
    };
    struct shuf__findings two = judge("fisher-yates", 0, 20, 5001, 0, false);
    struct shuf__findings one = {.alpha = 0.001};
    struct shuf__outcome outcome;
    struct shuf__error error;
    const struct shuf__run_options options = {
        .origin = &origin, .n = 20, .samples = 5001, .tests = SHUF__TESTS_ALL, .threads = 1};
    assert_int_equal(shuf__run(&options, &one, &outcome, &error), SHUF_OK);
    assert_int_equal(one.count, two.count);
    for (size_t i = 0; i < one.count; i++)
        assert_true(one.finding[i].p == two.finding[i].p);
    shuf__findings_free(&one);
    shuf__findings_free(&two);
}

/* Over many seeds the p-values of each finding are uniform. Their distance from the uniform
 * distribution (Kolmogorov's) exceeds the limit below once in a million. The p-values of counts can
 * only be as uniform as their steps allow. */
enum { SEEDS = 120, FINDINGS = 64 };

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double kolmogorov_distance(double *p, unsigned count)
{
    double most = 0;
    qsort(p, count, sizeof *p, by_value);
    for (unsigned i = 0; i < count; i++)
        most = fmax(most, fmax((i + 1.0) / count - p[i], p[i] - (double)i / count));
    return most;
}

static void p_values_are_uniform(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {5, 16, 66};
    static double p[FINDINGS][SEEDS];
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct shuf__findings all = {0};
        for (unsigned seed = 0; seed < SEEDS; seed++) {
            shuf__findings_free(&all);
            all = judge("fisher-yates", 0, sizes[s], sizes[s] < 32 ? 1000 : 200,
                        UINT64_C(1000003) * seed + 1, false);
            assert_true(all.count <= FINDINGS);
            for (size_t i = 0; i < all.count; i++)
                p[i][seed] = all.finding[i].p;
        }
        for (size_t i = 0; i < all.count; i++)
            if (kolmogorov_distance(p[i], SEEDS) > sqrt(log(2e6) / 2 / SEEDS))
                fail_msg("n = %u: p-values of %s, %s: %g from uniform", sizes[s],
                         all.finding[i].test, all.finding[i].detail,
                         kolmogorov_distance(p[i], SEEDS));
        shuf__findings_free(&all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lcg_fails),
        cmocka_unit_test(primefold_with_three_maps_fails),
        cmocka_unit_test(philox_with_eight_rounds_fails),
        cmocka_unit_test(philox_fails_at_its_limits),
        cmocka_unit_test(fisher_yates_passes),
        cmocka_unit_test(primefold_passes_at_all_sizes),
        cmocka_unit_test(primefold_passes_variance_of_descents),
        cmocka_unit_test(findings_do_not_depend_on_threads),
        cmocka_unit_test(p_values_are_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
