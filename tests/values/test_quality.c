/* SPDX-License-Identifier: MIT
 *
 * shuf-quality fails bad generators by the tests that should detect them, and passes good ones. The
 * p-values of good ones are uniform.
 */
#include "generator.h"
#include "options.h"
#include "parallelograms.h"
#include "run.h"
#include "shuf/domain.h"
#include "shuf/lcg.h"
#include "shuf/philox24.h"
#include "shuf/primefold.h"
#include "stream.h"
#include "support/cmocka_all.h"
#include "support/random.h"

#include <inttypes.h>
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

/* ---- Counts of parallelograms: the law, against all permutations of few values ---- */

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

/* ---- Counts of parallelograms: the variance, against many shuffles ---- */

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

/* ---- Counts of parallelograms: verdicts ---- */

static struct shuf__findings judge_parallelograms(const char *generator, uint32_t n,
                                                  uint64_t modulus, uint64_t samples)
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
} cases[] = {
    {97, 97, 20000, "equal or opposite"},     {97, 97, 3000, "best distance, bits"},
    {257, 257, 4000, "equal or opposite"},    {1000, 1009, 200, "best distance, bits"},
    {65536, 65537, 200, "equal or opposite"},
};

static void broken_primefold_fails(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shuf__findings all =
            judge_parallelograms("broken-primefold", cases[i].n, 0, cases[i].rows);
        bool failed = false;
        for (size_t f = 0; f < all.count; f++)
            failed |= all.finding[f].failed && strcmp(all.finding[f].detail, cases[i].detail) == 0;
        if (!failed)
            fail_msg("n = %u: passed %s", cases[i].n, cases[i].detail);
        shuf__findings_free(&all);
    }
}

static void fisher_yates_passes_parallelograms(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int plain = 0; plain < (cases[i].n == 97 ? 2 : 1); plain++) {
            struct shuf__findings all = judge_parallelograms(
                "fisher-yates", cases[i].n, plain ? 0 : cases[i].modulus, cases[i].rows);
            assert_true(all.count >= 2);
            for (size_t f = 0; f < all.count; f++)
                if (all.finding[f].failed)
                    fail_msg("n = %u: %s: p = %g", cases[i].n, all.finding[f].detail,
                             all.finding[f].p);
            shuf__findings_free(&all);
        }
}

/* ---- Fast generators make the permutations of the inline algorithms ---- */

typedef uint64_t forward_fn(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t position);

static uint64_t primefold(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t position)
{
    const shuf_primefold f = shuf_primefold_make(n, seed, epoch);
    return shuf_primefold_forward(&f, position);
}

static uint64_t philox24(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t position)
{
    const shuf_philox24 f = shuf_philox24_make(n, seed, epoch);
    return shuf_philox24_forward(&f, position);
}

static uint64_t lcg(uint64_t n, uint64_t seed, uint64_t epoch, uint64_t position)
{
    const shuf_lcg f = shuf_lcg_make(n, seed, epoch);
    return shuf_lcg_forward(&f, position);
}

/* Makes the rows of two keys one after the other, because a generator reuses its state. */
static void expect_rows(const char *name, forward_fn *forward, uint32_t n)
{
    const struct shuf__generator *g = shuf__generator_find(name);
    _Alignas(64) unsigned char state[SHUF__GENERATOR_STATE] = {0};
    uint32_t *row = malloc(n * sizeof *row);
    assert_non_null(g);
    assert_non_null(row);
    for (int key = 0; key < 2; key++) {
        const uint64_t seed = random_u64(), epoch = random_u64();
        const uint64_t domain = forward == primefold ? n : UINT64_C(1) << shuf_domain_bits(n);
        uint32_t count = 0;
        g->make(state, n, seed, epoch, g->rounds);
        g->fill(state, n, row);
        for (uint64_t x = 0; x < domain; x++) {
            const uint64_t value = forward(n, seed, epoch, x);
            if (value < n && row[count++] != value)
                fail_msg("%s, n = %" PRIu32 ", seed %" PRIu64 ", epoch %" PRIu64 ": value %" PRIu32
                         " is %" PRIu32 ", expected %" PRIu64,
                         name, n, seed, epoch, count - 1, row[count - 1], value);
        }
    }
    free(row);
}

static void rows_match_algorithms(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {2, 3, 16, 64, 255, 256, 257, 1000, 1021, 4097, 65521, 65537};
    random_start("rows_match_algorithms");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        expect_rows("primefold", primefold, sizes[i]);
        expect_rows("philox24", philox24, sizes[i]);
        expect_rows("lcg", lcg, sizes[i]);
    }
}

static void expect_lookups(const struct shuf__lookups *l, forward_fn *forward, uint64_t n)
{
    enum { COUNT = 50 };
    _Alignas(64) unsigned char state[SHUF__LOOKUPS_STATE] = {0};
    for (int key = 0; key < 2; key++) {
        const uint64_t seed = random_u64(), epoch = random_u64();
        const size_t count = n < COUNT ? (size_t)n : COUNT;
        const uint64_t stride = n <= COUNT ? 1 : 1 + random_below((n - 1) / COUNT);
        uint64_t value[COUNT];
        l->make(state, n, seed, epoch);
        l->values(state, stride, count, value);
        for (size_t i = 0; i < count; i++)
            if (value[i] != forward(n, seed, epoch, i * stride))
                fail_msg("%s, n = %" PRIu64 ", seed %" PRIu64 ", epoch %" PRIu64
                         ", position %" PRIu64 ": %" PRIu64 ", expected %" PRIu64,
                         l->name, n, seed, epoch, i * stride, value[i],
                         forward(n, seed, epoch, i * stride));
    }
}

static void lookups_match_algorithms(void **state)
{
    (void)state;
    forward_fn *const forward[] = {primefold, philox24, lcg};
    random_start("lookups_match_algorithms");
    for (unsigned bits = 1; bits <= 62; bits++)
        for (int i = 0; shuf__lookups[i].name; i++) {
            const uint64_t n = UINT64_C(1) << bits;
            if (n >= 16 || !shuf__lookups[i].compacted)
                expect_lookups(&shuf__lookups[i], forward[i], n);
            if (!shuf__lookups[i].compacted && bits < 62)
                expect_lookups(&shuf__lookups[i], forward[i], n + 1 + random_below(n));
        }
}

/* ---- The generators broken-primefold and broken-gauss repeat the bits of former versions ---- */

static uint64_t hash_word(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
}

/* Seed 7, epoch 3: the first four values, and a hash of all. */
static const struct {
    uint32_t n, first[4];
    uint64_t hash;
} rows[] = {
    {97, {71, 62, 79, 49}, UINT64_C(0xd2e47b73a2ca0eec)},
    {257, {102, 38, 69, 183}, UINT64_C(0x9afcc3d32c53e800)},
    {1000, {502, 57, 789, 123}, UINT64_C(0xa9c40fd648e8a85c)},
    {65536, {50811, 12085, 28271, 52636}, UINT64_C(0xa5bd3acba67fe2e8)},
    {1048576, {234647, 464295, 830981, 1031075}, UINT64_C(0x6aa992828507c6a0)},
};

static void broken_primefold_values_are_fixed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        _Alignas(64) unsigned char made[SHUF__GENERATOR_STATE] = {0};
        uint32_t *row = malloc(rows[i].n * sizeof *row);
        uint64_t hash = 0;
        assert_non_null(row);
        shuf__generator_broken_primefold.make(made, rows[i].n, 7, 3, 0);
        shuf__generator_broken_primefold.fill(made, rows[i].n, row);
        assert_memory_equal(row, rows[i].first, sizeof rows[i].first);
        for (uint32_t k = 0; k < rows[i].n; k++)
            hash = hash_word(hash, row[k]);
        assert_true(hash == rows[i].hash);
        free(row);
    }
}

/* Seed 7, stream 3, 1024 values from 5 x 2^40: the first value, the last, and a hash of all. */
static const struct {
    double first, last;
    uint64_t hash;
} streams[SHUF__DTYPES] = {
    [SHUF_F64] = {-0x1.129b433c9a0bbp+0, -0x1.a7186fd0ffba3p-4, UINT64_C(0xf8d40b9f959f33dd)},
    [SHUF_F32] = {-0x1.129b3ap+0, -0x1.a71868p-4, UINT64_C(0xe90c24ad60000000)},
    [SHUF_F16] = {-0x1.128p+0, -0x1.a7p-4, UINT64_C(0x3c5ac00000000000)},
    [SHUF_BF16] = {-0x1.12p+0, -0x1.a8p-4, UINT64_C(0x7bd5a00000000000)},
};

static void broken_gauss_values_are_fixed(void **state)
{
    (void)state;
    for (shuf_dtype dtype = SHUF_F64; dtype <= SHUF_BF16; dtype++) {
        double value[SHUF__SUPERBLOCK];
        uint64_t hash = 0;
        shuf__stream_broken_gauss.fill(7, 3, dtype, UINT64_C(5) << 40, SHUF__SUPERBLOCK, value);
        assert_true(value[0] == streams[dtype].first);
        assert_true(value[SHUF__SUPERBLOCK - 1] == streams[dtype].last);
        for (unsigned k = 0; k < SHUF__SUPERBLOCK; k++) {
            uint64_t bits;
            memcpy(&bits, &value[k], sizeof bits);
            hash = hash_word(hash, bits);
        }
        assert_true(hash == streams[dtype].hash);
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
        cmocka_unit_test(expectation_matches_enumeration),
        cmocka_unit_test(variance_matches_sample),
        cmocka_unit_test(broken_primefold_fails),
        cmocka_unit_test(fisher_yates_passes_parallelograms),
        cmocka_unit_test(rows_match_algorithms),
        cmocka_unit_test(lookups_match_algorithms),
        cmocka_unit_test(broken_primefold_values_are_fixed),
        cmocka_unit_test(broken_gauss_values_are_fixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
