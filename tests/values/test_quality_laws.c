/* SPDX-License-Identifier: MIT
 *
 * The distributions, means and variances that shuf-quality compares with, and the steps from
 * statistics to a verdict. The laws are checked against all permutations of few elements. So are
 * covariances: if they are right, the mean of a sum of squares is exactly its degrees of freedom.
 * With the argument "orders", the test checks `shuf-quality order`.
 */
#include "findings.h"
#include "generator.h"
#include "laws.h"
#include "options.h"
#include "order.h"
#include "shuf/lcg.h"
#include "shuf/philox24.h"
#include "shuf/primefold.h"
#include "support/cmocka_all.h"
#include "support/random.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 7, WORDS = 70000 };

/* Calls `visit` for all permutations of the elements of `row` from index `from` on. */
static void visit_arrangements(uint32_t n, uint32_t from, uint32_t *row,
                               void (*visit)(uint32_t n, const uint32_t *row, void *context),
                               void *context)
{
    if (from == n)
        visit(n, row, context);
    for (uint32_t i = from; i < n; i++) {
        const uint32_t one = row[from], other = row[i];
        row[from] = other;
        row[i] = one;
        visit_arrangements(n, from + 1, row, visit, context);
        row[from] = one;
        row[i] = other;
    }
}

static void visit_permutations(uint32_t n,
                               void (*visit)(uint32_t n, const uint32_t *row, void *context),
                               void *context)
{
    uint32_t row[16];
    for (uint32_t i = 0; i < n; i++)
        row[i] = i;
    visit_arrangements(n, 0, row, visit, context);
}

static double factorial(uint32_t n)
{
    return n < 2 ? 1 : n * factorial(n - 1);
}

static void assert_near(double value, double expected, double error)
{
    if (!(fabs(value - expected) <= error))
        fail_msg("%.17g: expected %.17g", value, expected);
}

/* ---- Distributions ---- */

static uint64_t fixed_points(uint32_t n, const uint32_t *row)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += row[i] == i;
    return count;
}

static uint64_t cycles(uint32_t n, const uint32_t *row)
{
    uint64_t count = 0;
    for (uint32_t start = 0; start < n; start++) {
        uint32_t x = row[start];
        while (x > start)
            x = row[x];
        count += x == start; /* counts a cycle at its least element */
    }
    return count;
}

static uint64_t descents(uint32_t n, const uint32_t *row)
{
    uint64_t count = 0;
    for (uint32_t i = 1; i < n; i++)
        count += row[i - 1] > row[i];
    return count;
}

static uint64_t inverse_descents(uint32_t n, const uint32_t *row)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            count += row[j] == row[i] + 1;
    return count;
}

static uint64_t inversions(uint32_t n, const uint32_t *row)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            count += row[j] > row[i];
    return count;
}

static const struct {
    struct shuf__law (*law)(uint32_t n);
    uint64_t (*count)(uint32_t n, const uint32_t *row);
    size_t (*words)(uint32_t n);
    void (*add)(const struct shuf__rows *, uint64_t *);
    void (*judge)(uint32_t n, const uint64_t *, struct shuf__findings *);
} counts[] = {
#define COUNT(name)                                                                            \
    {                                                                                          \
        shuf__law_##name, name, shuf__##name##_words, shuf__##name##_add, shuf__##name##_judge \
    }
    COUNT(fixed_points), COUNT(cycles), COUNT(descents), COUNT(inverse_descents), COUNT(inversions),
};

enum { COUNTS = sizeof counts / sizeof *counts };

struct histogram {
    int law_index;
    double count[64], sum, squares;
    /* the law's mean; the sum of the fourth powers of the distances from the mean */
    double mean, fourth;
};

static void add_to_histogram(uint32_t n, const uint32_t *row, void *context)
{
    struct histogram *h = context;
    const uint64_t value = counts[h->law_index].count(n, row);
    h->count[value]++;
    h->sum += (double)value;
    h->squares += (double)(value * value);
    h->fourth += pow((double)value - h->mean, 4);
}

static void distributions_match_enumeration(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= FEW; n++)
        for (int law_index = 0; law_index < COUNTS; law_index++) {
            const struct shuf__law law = counts[law_index].law(n);
            struct histogram h = {.law_index = law_index, .mean = law.mean};
            double p[SHUF__LAW_CELLS];
            visit_permutations(n, add_to_histogram, &h);
            shuf__law_cells(&law, n, p);
            for (unsigned k = 0; k < 64; k++)
                assert_near(p[k], h.count[k] / factorial(n), 1e-14);
            const double mean = h.sum / factorial(n);
            assert_near(law.mean, mean, 1e-12);
            assert_near(law.variance, h.squares / factorial(n) - mean * mean, 1e-11);
            if (n >= 4)
                assert_near(law.cumulant, h.fourth / factorial(n) - 3 * law.variance * law.variance,
                            1e-10);
        }
}

/* A test's own fast count adds the same words for a row as a plain count, for long rows too. */
static void tests_match_plain_counts(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {2, 5, 63, 64, 65, 100, 300};
    static uint32_t row[300], scratch[2 * 300 + 300 / 32 + 1];
    random_start("tests_match_plain_counts");
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int law_index = 0; law_index < COUNTS; law_index++) {
            const uint32_t n = sizes[s];
            for (uint32_t i = 0; i < n; i++) {
                const uint32_t j = (uint32_t)random_below(i + 1);
                row[i] = row[j];
                row[j] = i;
            }
            const struct shuf__rows rows = {.n = n, .count = 1, .row = row, .scratch = scratch};
            const struct shuf__law law = counts[law_index].law(n);
            uint64_t *words = calloc(counts[law_index].words(n), sizeof *words);
            const uint64_t value = counts[law_index].count(n, row);
            counts[law_index].add(&rows, words);
            assert_int_equal(words[0], 1);
            assert_int_equal(words[1], value - (uint64_t)law.mean);
            assert_int_equal(words[2 + shuf__law_cell(&law, value)], 1);
            free(words);
        }
}

/* At the largest n that has an exact law, the normal law nearly equals it. A larger n uses the
 * normal law. */
static void normal_law_is_near_exact_law(void **state)
{
    (void)state;
    double exact[SHUF__LAW_CELLS], normal[SHUF__LAW_CELLS];
    const struct {
        struct shuf__law law;
        uint32_t n;
        double error;
    } rows[] = {{shuf__law_descents(1024), 1024, 1e-8}, {shuf__law_inversions(128), 128, 1e-6}};
    for (int i = 0; i < 2; i++) {
        struct shuf__law law = rows[i].law;
        assert_non_null(law.exact);
        shuf__law_cells(&law, rows[i].n, exact);
        law.exact = NULL;
        shuf__law_cells(&law, rows[i].n, normal);
        for (int k = 0; k < SHUF__LAW_CELLS; k++)
            assert_near(normal[k], exact[k], rows[i].error);
    }
    assert_null(shuf__law_descents(1025).exact);
    assert_null(shuf__law_inversions(129).exact);
}

static void fast_inversions_match_plain_count(void **state)
{
    (void)state;
    enum { MOST = 3000 };
    static uint32_t row[MOST], copy[MOST], scratch[MOST];
    random_start("fast_inversions_match_plain_count");
    for (int i = 0; i < 200; i++) {
        const uint32_t n = (uint32_t)random_size(MOST);
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t j = (uint32_t)random_below(k + 1);
            row[k] = row[j];
            row[j] = k;
        }
        memcpy(copy, row, sizeof row);
        assert_int_equal(shuf__inversions(n, copy, scratch), inversions(n, row));
    }
}

/* ---- Sums of squares ---- */

/* A test, and sums of its statistics over all permutations. Each permutation is one row, counted as
 * if it had occurred `times` times. */
struct statistics {
    size_t (*words)(uint32_t n);
    void (*add)(const struct shuf__rows *, uint64_t *);
    void (*judge)(uint32_t n, const uint64_t *, struct shuf__findings *);
    unsigned times;
    bool in_pairs;              /* the test gets each row together with the identity */
    double sum[16];             /* sums of each finding's statistic over all permutations */
    double squares[16];         /* sums of the squares of the same statistics */
    struct shuf__findings last; /* findings of the last permutation */
    uint64_t *memory;
};

static void judge_repeated(uint32_t n, const uint32_t *row, void *context)
{
    struct statistics *r = context;
    uint32_t two[32], scratch[64];
    struct shuf__findings findings = {.alpha = 0.001};
    struct shuf__rows rows = {.n = n, .count = 1, .row = row, .scratch = scratch};
    if (r->in_pairs) {
        for (uint32_t i = 0; i < n; i++)
            two[i] = i;
        memcpy(two + n, row, n * sizeof *row);
        rows.row = two;
        rows.count = 2;
    }
    memset(r->memory, 0, r->words(n) * sizeof *r->memory);
    r->add(&rows, r->memory);
    for (size_t i = 0; i < r->words(n); i++)
        r->memory[i] *= r->times; /* as if the row had occurred so often */
    r->judge(n, r->memory, &findings);
    for (size_t i = 0; i < findings.count; i++) {
        r->sum[i] += findings.finding[i].statistic;
        r->squares[i] += findings.finding[i].statistic * findings.finding[i].statistic;
    }
    shuf__findings_free(&r->last);
    r->last = findings;
}

static void judge_all_permutations(struct statistics *r, uint32_t n)
{
    r->memory = calloc(WORDS, sizeof *r->memory);
    memset(r->sum, 0, sizeof r->sum);
    memset(r->squares, 0, sizeof r->squares);
    visit_permutations(n, judge_repeated, r);
    free(r->memory);
}

static size_t index_of_finding(const struct shuf__findings *all, const char *detail)
{
    size_t i = 0;
    while (i < all->count && strcmp(all->finding[i].detail, detail) != 0)
        i++;
    if (i == all->count)
        fail_msg("no finding of %s", detail);
    return i;
}

/* Compares the mean and the variance of the statistic "variance" over all permutations with the
 * law. */
static void variance_statistic_has_exact_moments(void **state)
{
    (void)state;
    for (uint32_t n = 4; n <= FEW; n++)
        for (int law_index = 0; law_index < COUNTS; law_index++) {
            struct statistics r = {.words = counts[law_index].words,
                                   .add = counts[law_index].add,
                                   .judge = counts[law_index].judge,
                                   .times = 10000};
            const struct shuf__law law = counts[law_index].law(n);
            const double square = law.variance * law.variance;
            judge_all_permutations(&r, n);
            const size_t i = index_of_finding(&r.last, "variance");
            assert_near(r.last.finding[i].expected, law.variance, 0);
            assert_near(r.sum[i] / factorial(n), law.variance, 1e-10);
            assert_near(r.squares[i] / factorial(n) - square, law.cumulant + 2 * square, 1e-8);
            shuf__findings_free(&r.last);
        }
}

/* The deviation from the mean has more than 32 bits. The test must still add its square without an
 * overflow. */
static void variance_of_large_n_does_not_overflow(void **state)
{
    (void)state;
    enum { N = 1 << 18, ROWS = 1000 };
    uint32_t *row = malloc(N * sizeof *row), *scratch = malloc((2 * N + N / 32 + 1) * sizeof *row);
    uint64_t *words = calloc(shuf__inversions_words(N), sizeof *words);
    const double mean = N * (N - 1.0) / 4;
    struct shuf__findings findings = {0};
    for (uint32_t i = 0; i < N; i++)
        row[i] = i;
    const struct shuf__rows rows = {.n = N, .count = 1, .row = row, .scratch = scratch};
    shuf__inversions_add(&rows, words);
    for (size_t i = 0; i < shuf__inversions_words(N); i++)
        words[i] *= ROWS;
    shuf__inversions_judge(N, words, &findings);
    const struct shuf__finding *f = &findings.finding[index_of_finding(&findings, "variance")];
    assert_near(f->statistic / (mean * mean), 1, 1e-14);
    assert_near(f->p, 0, 0);
    shuf__findings_free(&findings);
    free(words);
    free(scratch);
    free(row);
}

/* The mean of each finding's statistic is its degrees of freedom, multiplied by `times`. */
static void expect_degrees(struct statistics *r, uint32_t n, size_t first, size_t count)
{
    judge_all_permutations(r, n);
    assert_true(r->last.count >= first + count);
    for (size_t i = first; i < first + count; i++) {
        const double degrees = r->last.finding[i].dof;
        assert_true(degrees >= 1);
        assert_near(r->sum[i] / factorial(n) / r->times, degrees, 1e-9 * degrees);
    }
    shuf__findings_free(&r->last);
}

#define REPEATED(name, count, pairs)                                                             \
    {                                                                                            \
        .words = shuf__##name##_words, .add = shuf__##name##_add, .judge = shuf__##name##_judge, \
        .times = count, .in_pairs = pairs                                                        \
    }

static void places_have_expected_degrees(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= FEW; n++)
        /* with few rows, cells with small expected counts are pooled */
        for (unsigned times = 10; times <= 10 * n; times += 5) {
            struct statistics r = REPEATED(places, times, false);
            if (times * n >= 40)
                expect_degrees(&r, n, 0, 1);
        }
}

static void differences_have_expected_degrees(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= 8; n++) {
        struct statistics r = REPEATED(differences, 30, false);
        expect_degrees(&r, n, 0, n < 4 ? 1 : n < 6 ? 2 : n == 7 || n == 6 ? 3 : 4);
    }
}

static void second_differences_have_expected_degrees(void **state)
{
    (void)state;
    for (uint32_t n = 4; n <= 8; n++) {
        struct statistics r = REPEATED(second_differences, 300, false);
        expect_degrees(&r, n, 0, 1);
    }
}

static void displacements_have_expected_degrees(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= FEW; n++) {
        struct statistics r = REPEATED(epochs, 1000, true);
        judge_all_permutations(&r, n);
        const size_t i = index_of_finding(&r.last, "displacements");
        shuf__findings_free(&r.last);
        expect_degrees(&r, n, i, 1);
    }
}

static void rank_correlation_has_exact_variance(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= FEW; n++) {
        struct statistics r = REPEATED(epochs, 1000, true);
        judge_all_permutations(&r, n);
        const size_t i = r.last.count - 1;
        assert_string_equal(r.last.finding[i].detail, "rank correlation");
        assert_near(r.sum[i] / factorial(n), 0, 1e-12);
        assert_near(r.squares[i] / factorial(n), 1.0 / (n - 1), 1e-12);
        shuf__findings_free(&r.last);
    }
}

/* The mean of the Mallows kernel over all permutations is the constant of its law. The variance of
 * the kernel decides which deviations fail. */
static void mallows_kernel_has_exact_moments(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= FEW; n++) {
        struct statistics r = REPEATED(mallows, 25, true);
        judge_all_permutations(&r, n);
        const struct shuf__finding *f = &r.last.finding[0];
        const double deviation = sqrt(r.squares[0] / factorial(n) / r.times);
        assert_near(r.sum[0] / factorial(n), 0, 1e-10); /* the kernel is rounded to 36 bits */
        assert_near(f->normal.high / deviation, 3.2905267314919255, 1e-8);
        assert_near(f->hoeffding.high, sqrt(log(2000.0) / 50), 1e-12);
        shuf__findings_free(&r.last);
    }
}

/* At a large n nearly half of all pairs are discordant (in opposite order in both rows). So the
 * mean of the kernel is near exp(-lambda / 2). */
static void mallows_constant_approaches_limit(void **state)
{
    (void)state;
    assert_near(shuf__law_mallows(2, 5), (1 + exp(-5)) / 2, 1e-15);
    assert_near(shuf__law_mallows(1 << 20, 5), exp(-2.5), 1e-5);
}

struct difference_counts {
    double count[FEW];
};

static void count_second(uint32_t n, const uint32_t *row, void *context)
{
    ((struct difference_counts *)context)->count[(row[0] + row[2] + 2 * (n - row[1])) % n]++;
}

static void second_differences_are_uniform(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= FEW; n++) {
        struct difference_counts difference_counts = {{0}};
        visit_permutations(n, count_second, &difference_counts);
        for (uint32_t t = 0; t < n; t++)
            assert_near((double)shuf__law_second_difference(n, t) / ((n - 1.0) * (n - 2.0)),
                        difference_counts.count[t] / factorial(n), 1e-14);
    }
}

/* ---- From statistics to a verdict ---- */

/* Known values from tables, and some computed by hand. */
static void p_values_match_tables(void **state)
{
    (void)state;
    assert_near(shuf__normal_p(1.959963984540054), 0.05, 1e-12);
    assert_near(shuf__normal_p(-1.959963984540054), 0.05, 1e-12);
    assert_near(shuf__normal_p(0), 1, 0);
    assert_near(shuf__chi_squared_p((struct shuf__chi_squared){3.841458820694124, 1}), 0.05, 1e-12);
    assert_near(shuf__chi_squared_p((struct shuf__chi_squared){0, 1}), 1, 0); /* one-sided */
    assert_near(shuf__chi_squared_p((struct shuf__chi_squared){31.41043284423092, 20}), 0.1, 1e-12);
    assert_near(shuf__chi_squared_p((struct shuf__chi_squared){10.85081139418259, 20}), 0.1, 1e-12);
    assert_near(shuf__chi_squared_p((struct shuf__chi_squared){0, 20}), 0, 0);
    assert_near(shuf__chi_squared_p((struct shuf__chi_squared){65025, 65025}), 1, 0.01);
    assert_near(shuf__coin_p(10, 10), 2.0 / 1024, 1e-15);
    assert_near(shuf__coin_p(0, 10), 2.0 / 1024, 1e-15);
    assert_near(shuf__coin_p(1, 10), 22.0 / 1024, 1e-15);
    assert_near(shuf__coin_p(5, 10), 1, 0);
    assert_near(shuf__coin_p(UINT64_C(5000196000), UINT64_C(10000000000)), 8.85e-5, 1e-6);
}

/* Expected counts of 40, 40, 12 and 8: the last two become one cell. */
static void rare_cells_are_pooled(void **state)
{
    (void)state;
    const uint64_t count[] = {50, 30, 5, 15, 0};
    const double p[] = {0.4, 0.4, 0.12, 0.08, 0};
    const struct shuf__chi_squared x = shuf__pearson(count, p, 5);
    /* The pooled cell has 20, which is too few for a cell of its own. It is added to the second
     * cell. */
    assert_near(x.dof, 1, 0);
    assert_near(x.sum, 100.0 / 40 + 100.0 / 60, 1e-12);
    const uint64_t none[] = {10, 10};
    const double even[] = {0.5, 0.5};
    assert_near(shuf__pearson(none, even, 2).dof, 0, 0);
}

static void parts_have_equal_sizes(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 255, 256, 257, 1000, 65537, 1 << 28};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct shuf__parts parts = shuf__parts_of(sizes[i], 256);
        assert_int_equal(parts.cells, sizes[i] < 256 ? sizes[i] : 256);
        assert_int_equal(shuf__part(&parts, 0), 0);
        assert_int_equal(shuf__part(&parts, sizes[i] - 1), parts.cells - 1);
    }
    const struct shuf__parts parts = shuf__parts_of(1000, 256);
    uint32_t size[256], sum = 0;
    shuf__part_sizes(&parts, size);
    for (int k = 0; k < 256; k++) {
        assert_in_range(size[k], 3, 4);
        sum += size[k];
    }
    assert_int_equal(sum, 1000);
}

/* Holm's procedure compares the least p-value with alpha / 4, the next one with alpha / 3, and so
 * on. */
static void holm_procedure_decides(void **state)
{
    (void)state;
    struct shuf__findings all = {.alpha = 0.05, .test = "t"};
    shuf__find(&all, 5, 0, 0, 0.03, "a");
    shuf__find(&all, 5, 0, 0, 0.005, "b");
    shuf__find(&all, 5, 0, 0, 0.04, "c");
    shuf__find(&all, 5, 0, 0, 0.01, "d%d", 1);
    shuf__findings_decide(&all);
    assert_int_equal(all.failed, 2);
    assert_true(all.finding[1].failed && all.finding[3].failed);
    assert_false(all.finding[0].failed || all.finding[2].failed);
    assert_near(all.finding[1].p_holm, 0.02, 1e-15);
    assert_near(all.finding[3].p_holm, 0.03, 1e-15);
    assert_near(all.finding[0].p_holm, 0.06, 1e-15);
    /* raised to the adjusted p-value of the finding before */
    assert_near(all.finding[2].p_holm, 0.06, 1e-15);
    assert_string_equal(all.finding[3].detail, "d1");
    shuf__findings_free(&all);
}

static void lists_of_sizes_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message_part; /* why: a part of the message; NULL: valid */
        unsigned count, last;
    } rows[] = {
        {"7", NULL, 1, 7},
        {"2:64,100,127:129", NULL, 67, 129},
        {"1e3,64Ki", NULL, 2, 65536},
        {SHUF__SIZES_DEFAULT, NULL, 78, 65537},
        {"", "whole number", 0, 0},
        {"2,,3", "whole number", 0, 0},
        {"1", "expected numbers from 2 to 100000", 0, 0},
        {"3:2", "A at most B", 0, 0},
        {"2:1e6", "expected numbers", 0, 0},
        {"2:1002", "at most 1000 numbers", 0, 0},
        {"5:", "whole number", 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t sizes[1000];
        unsigned count;
        struct shuf__error error = {0};
        shuf_status status =
            shuf__sizes_parse("--n", rows[i].text, 2, 100000, sizes, 1000, &count, &error);
        assert_int_equal(status, rows[i].message_part ? SHUF_INVALID : SHUF_OK);
        if (rows[i].message_part &&
            (!strstr(error.text, rows[i].message_part) || strncmp(error.text, "--n ", 4)))
            fail_msg("'%s': %s", rows[i].text, error.text);
        if (!rows[i].message_part) {
            assert_int_equal(count, rows[i].count);
            assert_int_equal(sizes[count - 1], rows[i].last);
        }
    }
}

enum { LONG = 5000 };

static void fill_row(const char *name, uint32_t n, uint64_t seed, uint64_t epoch, uint32_t *row)
{
    static _Alignas(64) unsigned char made[SHUF__GENERATOR_STATE];
    const struct shuf__generator *g = shuf__generator_find(name);
    assert_non_null(g);
    memset(made, 0, sizeof made);
    g->make(made, n, seed, epoch, g->rounds);
    g->fill(made, n, row);
}

static void generators_match_algorithms(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {2, 9, 16, 17, 256, 257, 1025, LONG, 1 << 17};
    static uint32_t row[1 << 17];
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const uint32_t n = sizes[s];
        const shuf_philox24 philox = shuf_philox24_make(n, 7, 3);
        const shuf_lcg lcg = shuf_lcg_make(n, 7, 3);
        const shuf_primefold primefold = shuf_primefold_make(n, 7, 3);
        uint32_t at = 0;
        fill_row("philox24", n, 7, 3, row);
        for (uint64_t x = 0; at < n; x++)
            if (shuf_philox24_forward(&philox, x) < n)
                assert_int_equal(row[at++], shuf_philox24_forward(&philox, x));
        fill_row("lcg", n, 7, 3, row);
        at = 0;
        for (uint64_t x = 0; at < n; x++)
            if (shuf_lcg_forward(&lcg, x) < n)
                assert_int_equal(row[at++], shuf_lcg_forward(&lcg, x));
        fill_row("primefold", n, 7, 3, row);
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(row[i], shuf_primefold_forward(&primefold, i));
    }
}

/* Every generator makes permutations. Another seed or epoch gives another permutation. */
static void generators_make_permutations(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {2, 3, 64, 65, 1000, LONG};
    static uint32_t row[LONG], other[LONG];
    for (const struct shuf__generator *const *g = shuf__generators; *g; g++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            const uint32_t n = sizes[s];
            static bool seen[LONG];
            memset(seen, 0, sizeof seen);
            fill_row((*g)->name, n, 7, 3, row);
            for (uint32_t i = 0; i < n; i++) {
                assert_true(row[i] < n && !seen[row[i]]);
                seen[row[i]] = true;
            }
            fill_row((*g)->name, n, 8, 3, other);
            assert_true(n < 64 || memcmp(row, other, n * sizeof *row) != 0);
            fill_row((*g)->name, n, 7, 4, other);
            assert_true(n < 64 || memcmp(row, other, n * sizeof *row) != 0);
            fill_row((*g)->name, n, 7, 3, other);
            assert_memory_equal(row, other, n * sizeof *row);
        }
    assert_null(shuf__generator_find("no such"));
}

/* ---- Orders: those of libshuf pass, and each fault fails the test for it ---- */

enum { SEED = 7 };

static struct shuf__findings judge(const struct shuf__fault *fault, uint64_t seed, int threads)
{
    struct shuf__findings all = {.alpha = 0.001};
    const struct shuf__order_run run = {
        .fault = fault, .seed = seed, .effort = 1, .threads = threads, .findings = &all};
    for (const struct shuf__order_family *family = shuf__order_families; family->name; family++)
        if (!fault || strcmp(fault->family, family->name) == 0)
            family->judge(&run);
    shuf__findings_decide(&all);
    return all;
}

static void orders_of_libshuf_pass(void **state)
{
    (void)state;
    struct shuf__findings all = judge(NULL, SEED, 2);
    for (size_t i = 0; i < all.count; i++)
        if (all.finding[i].failed)
            fail_msg("seed %d: %s, n = %u, %s: p = %g", SEED, all.finding[i].test, all.finding[i].n,
                     all.finding[i].detail, all.finding[i].p);
    assert_true(all.count > 1000);
    shuf__findings_free(&all);
}

static bool is_detected(const struct shuf__fault *fault, const struct shuf__findings *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->finding[i].failed && strcmp(all->finding[i].test, fault->test) == 0 &&
            strstr(all->finding[i].detail, fault->detail))
            return true;
    return false;
}

static void each_fault_is_detected(void **state)
{
    (void)state;
    for (const struct shuf__fault *fault = shuf__faults; fault->name; fault++) {
        struct shuf__findings all = judge(fault, SEED, 2);
        if (!is_detected(fault, &all))
            fail_msg("seed %d: %s passed %s, %s", SEED, fault->name, fault->test, fault->detail);
        shuf__findings_free(&all);
    }
}

static void findings_do_not_depend_on_threads(void **state)
{
    (void)state;
    struct shuf__findings one = judge(NULL, SEED, 1), three = judge(NULL, SEED, 3);
    assert_int_equal(one.count, three.count);
    for (size_t i = 0; i < one.count; i++)
        assert_true(one.finding[i].p == three.finding[i].p);
    shuf__findings_free(&one);
    shuf__findings_free(&three);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distributions_match_enumeration),
        cmocka_unit_test(tests_match_plain_counts),
        cmocka_unit_test(normal_law_is_near_exact_law),
        cmocka_unit_test(fast_inversions_match_plain_count),
        cmocka_unit_test(variance_statistic_has_exact_moments),
        cmocka_unit_test(variance_of_large_n_does_not_overflow),
        cmocka_unit_test(places_have_expected_degrees),
        cmocka_unit_test(differences_have_expected_degrees),
        cmocka_unit_test(second_differences_have_expected_degrees),
        cmocka_unit_test(displacements_have_expected_degrees),
        cmocka_unit_test(rank_correlation_has_exact_variance),
        cmocka_unit_test(mallows_kernel_has_exact_moments),
        cmocka_unit_test(mallows_constant_approaches_limit),
        cmocka_unit_test(second_differences_are_uniform),
        cmocka_unit_test(p_values_match_tables),
        cmocka_unit_test(rare_cells_are_pooled),
        cmocka_unit_test(parts_have_equal_sizes),
        cmocka_unit_test(holm_procedure_decides),
        cmocka_unit_test(lists_of_sizes_are_parsed),
        cmocka_unit_test(generators_match_algorithms),
        cmocka_unit_test(generators_make_permutations),
    };
    const struct CMUnitTest order_tests[] = {
        cmocka_unit_test(orders_of_libshuf_pass),
        cmocka_unit_test(each_fault_is_detected),
        cmocka_unit_test(findings_do_not_depend_on_threads),
    };
    if (argc > 1 && strcmp(argv[1], "orders") == 0)
        return cmocka_run_group_tests(order_tests, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
