/* SPDX-License-Identifier: MIT
 *
 * The steps from statistics to a verdict: p-values against known ones, pooling, Holm's procedure
 * and lists of sizes. Also compares the generators with the inline algorithms.
 */
#include "findings.h"
#include "generator.h"
#include "options.h"
#include "support/cmocka_all.h"

#include "shuf/lcg.h"
#include "shuf/philox24.h"
#include "shuf/primefold.h"

#include <math.h>
#include <string.h>

static void assert_near(double value, double expected, double error)
{
    if (!(fabs(value - expected) <= error))
        fail_msg("%.17g: expected %.17g", value, expected);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p_values_match_tables),
        cmocka_unit_test(rare_cells_are_pooled),
        cmocka_unit_test(parts_have_equal_sizes),
        cmocka_unit_test(holm_procedure_decides),
        cmocka_unit_test(lists_of_sizes_are_parsed),
        cmocka_unit_test(generators_match_algorithms),
        cmocka_unit_test(generators_make_permutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
