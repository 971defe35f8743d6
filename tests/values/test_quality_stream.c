/* SPDX-License-Identifier: MIT
 *
 * shuf-quality's tests of streams: their distributions against exact values. Good streams pass with
 * uniform p-values, and each bad stream fails by the test that should detect it.
 */
#include "run.h"
#include "stream.h"
#include "support/cmocka_all.h"

#include "shuf/box_muller.h"
#include "shuf/gauss.h"
#include "shuf/uniform.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_near(double value, double expected, double error)
{
    if (!(fabs(value - expected) <= error))
        fail_msg("%.17g: expected %.17g", value, expected);
}

static struct shuf__stream_law *law_of(bool uniform, shuf_dtype dtype)
{
    struct shuf__stream_law *law = malloc(sizeof *law);
    struct shuf__error error;
    assert_non_null(law);
    assert_int_equal(shuf__stream_law_make(law, uniform, dtype, &error), SHUF_OK);
    return law;
}

static void free_law(struct shuf__stream_law *law)
{
    shuf__stream_law_free(law);
    free(law);
}

/* ---- Laws ---- */

static double moment(const struct shuf__stream_law *law, int power)
{
    double sum = 0;
    for (size_t i = 0; i < law->nodes; i++)
        sum += law->weight[i] * pow(law->node[i], power);
    return sum;
}

static void normal_moments_match(void **state)
{
    (void)state;
    struct shuf__stream_law *law = law_of(false, SHUF_F64);
    double expected = 1;
    for (int k = 0; k <= 24; k += 2) {
        assert_near(moment(law, k), expected, 1e-13 * expected);
        assert_near(moment(law, k + 1), 0, 1e-13 * expected * (k + 1));
        expected *= k + 1;
    }
    assert_near(law->mean[2], sqrt(2 / M_PI), 1e-14);
    assert_near(law->variance[1], 2, 1e-12);
    free_law(law);
    law = law_of(true, SHUF_F64);
    for (int k = 0; k <= 12; k += 2)
        assert_near(moment(law, k), pow(3, k / 2) / (k + 1), 1e-11);
    assert_near(law->spread_kurtosis, -1.2, 1e-12);
    free_law(law);
}

/* Compares with a plain sum over the normal density on a fine grid. Each point of the grid is
 * rounded to the type. */
static void rounded_moments_match(void **state)
{
    (void)state;
    for (shuf_dtype dtype = SHUF_F16; dtype <= SHUF_BF16; dtype++) {
        struct shuf__stream_law *law = law_of(false, dtype);
        double sum[5] = {0};
        const double step = 0x1p-16;
        for (double z = -12 + step / 2; z < 12; z += step) {
            const double y = shuf__dtype_round(dtype, z);
            const double w = step * exp(-z * z / 2) / sqrt(2 * M_PI);
            for (int k = 0; k < 5; k++)
                sum[k] += w * pow(y, k);
        }
        for (int k = 0; k < 5; k++)
            assert_near(moment(law, k), sum[k], 1e-8);
        if (dtype == SHUF_BF16)
            assert_true(fabs(law->variance[0] - 1) > 2e-6); /* the effect of the rounding is
                                                             * visible */
        free_law(law);
    }
}

static void check_cells(const struct shuf__cells *cells)
{
    double sum = 0;
    for (unsigned k = 0; k < cells->count; k++) {
        sum += cells->p[k];
        assert_true(cells->p[k] >= 0 && cells->edge[k] <= cells->edge[k + 1]);
        if (cells->p[k] > 0 && k > 0) {
            assert_int_equal(shuf__cell(cells, cells->edge[k]), k);
            assert_true(shuf__cell(cells, nextafter(cells->edge[k], -99)) < k);
        }
    }
    assert_near(sum, 1, 1e-12);
    assert_int_equal(shuf__cell(cells, -SHUF__Z_MOST), 0);
    assert_int_equal(shuf__cell(cells, 1e6), cells->count - 1);
}

static void cells_have_equal_probability(void **state)
{
    (void)state;
    for (shuf_dtype dtype = SHUF_F64; dtype <= SHUF_BF16; dtype++) {
        struct shuf__stream_law *law = law_of(false, dtype);
        check_cells(&law->cells);
        check_cells(&law->transformed);
        check_cells(&law->squares);
        for (unsigned k = 0; k < SHUF__CELLS && !law->rounded; k++)
            assert_near(law->cells.p[k], 1.0 / SHUF__CELLS, 1e-12);
        free_law(law);
    }
    struct shuf__stream_law *law = law_of(true, SHUF_F32);
    check_cells(&law->cells);
    assert_near(law->cells.edge[256], -sqrt(3) / 2, 1e-15);
    free_law(law);
    law = law_of(false, SHUF_F64);
    assert_near(law->cells.edge[1023], 3.0972690781987854, 1e-9); /* the value of scipy */
    assert_near(law->squares.edge[128], 31.33591, 1e-4);          /* from a table of the chi-squared
                                                                   * distribution */
    free_law(law);
}

/* A rounded value is spread again: it is replaced by numbers from the interval that rounds to it.
 * They cover the whole interval. */
static void spread_values_cover_interval(void **state)
{
    (void)state;
    struct shuf__stream_law *law = law_of(false, SHUF_BF16);
    /* Below 1 the interval is half as wide as above 1. */
    const double low = 0.5 * erfc(-(1 - 0x1p-9) * M_SQRT1_2);
    const double high = 0.5 * erfc(-(1 + 0x1p-8) * M_SQRT1_2);
    double sum = 0, least = 1, most = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        const double u = shuf__law_below_spread(law, 1, i);
        least = fmin(least, u);
        most = fmax(most, u);
        sum += u / 10000;
    }
    assert_true(least >= low && most <= high);
    assert_near(least, low, (high - low) / 500);
    assert_near(most, high, (high - low) / 500);
    assert_near(sum, (low + high) / 2, (high - low) / 50);
    free_law(law);
}

/* A spread value rounds to the same number again. The spread values of a number cover its interval,
 * and all together have the variance of the law. */
static void spread_values_round_back(void **state)
{
    (void)state;
    for (shuf_dtype dtype = SHUF_F16; dtype <= SHUF_BF16; dtype++) {
        struct shuf__stream_law *law = law_of(false, dtype);
        double second = 0, least = 1, most = -1;
        for (size_t i = 1; i + 1 < law->nodes; i++) {
            double moved[8];
            const double same[8] = {law->node[i], law->node[i], law->node[i], law->node[i],
                                    law->node[i], law->node[i], law->node[i], law->node[i]};
            const double low = law->upper[i - 1], high = law->upper[i];
            shuf__law_spread(law, same, 8, 8 * i, moved);
            for (int k = 0; k < 8; k++) {
                assert_true(moved[k] >= low && moved[k] <= high);
                least = fmin(least, (moved[k] - low) / (high - low));
                most = fmax(most, (moved[k] - low) / (high - low));
                second += law->weight[i] * moved[k] * moved[k] / 8;
            }
        }
        assert_true(least < 0.001 && most > 0.999);
        assert_near(second, law->spread_variance, 3e-4);
        assert_near(law->spread_variance, 1, dtype == SHUF_F16 ? 1e-6 : 1e-4);
        assert_near(law->spread_kurtosis, 0, 1e-4);
        free_law(law);
    }
}

/* The Anderson-Darling statistic has mean 1 and variance 2 (pi^2 - 9) / 3. Its quantiles are those
 * in the table of Lewis (1961). */
static void anderson_darling_matches_lewis(void **state)
{
    (void)state;
    double mean = 0, second = 0;
    for (double a2 = 0.005; a2 < 30; a2 += 0.01) {
        const double above = shuf__law_anderson_darling(a2);
        mean += 0.01 * above;
        second += 0.02 * a2 * above;
    }
    assert_near(mean, 1, 1e-4);
    assert_near(second - mean * mean, 2 * (M_PI * M_PI - 9) / 3, 1e-3);
    assert_near(shuf__law_anderson_darling(1.933), 0.1, 1e-5);
    assert_near(shuf__law_anderson_darling(2.4924), 0.05, 5e-6);
    assert_near(shuf__law_anderson_darling(3.0775), 0.025, 5e-6);
    assert_near(shuf__law_anderson_darling(3.8781), 0.01, 1e-6);
    const double at_20 = shuf__law_anderson_darling(20), beyond = shuf__law_anderson_darling(20.1);
    assert_true(at_20 < 1e-8 && beyond < at_20 && beyond > at_20 / 2);
}

/* Values computed by hand. */
static void poisson_p_values_match(void **state)
{
    (void)state;
    assert_near(shuf__poisson_p(0, 1), 2 * exp(-1), 1e-15);
    assert_near(shuf__poisson_p(5, 1), 2 * (1 - 65 * exp(-1) / 24), 1e-14);
    assert_near(shuf__poisson_p(1, 1), 1, 0);
    assert_near(shuf__poisson_p(4000000, 4e6), 1, 1e-3);
    assert_near(shuf__poisson_p(4003920, 4e6), 0.05, 1e-4); /* 1.96 standard deviations */
}

/* ---- Streams ---- */

static void add_findings(const char *name, shuf_dtype dtype, uint64_t samples, uint64_t seed,
                         int threads, uint32_t tests, struct shuf__findings *findings)
{
    static struct shuf__stream_outcome outcome;
    const struct shuf__stream_generator *g = shuf__stream_generator_find(name);
    assert_non_null(g);
    struct shuf__stream_law *law = law_of(g->uniform, dtype);
    const struct shuf__stream_origin origin = {
        .generator = g, .dtype = dtype, .uniform = g->uniform, .seed = seed};
    const struct shuf__stream_run_options options = {
        .origin = &origin, .law = law, .samples = samples, .tests = tests, .threads = threads};
    struct shuf__error error;
    if (shuf__stream_run(&options, findings, &outcome, &error) != SHUF_OK)
        fail_msg("%s", error.text);
    assert_int_equal(outcome.values, samples);
    free_law(law);
}

/* Returns the bit of the test with this name. */
static uint32_t test_named(const char *test)
{
    int i = 0;
    while (shuf__stream_tests[i] && strcmp(shuf__stream_tests[i]->name, test) != 0)
        i++;
    assert_non_null(shuf__stream_tests[i]);
    return UINT32_C(1) << i;
}

static void expect_pass(const char *name, shuf_dtype dtype, size_t least_findings)
{
    struct shuf__findings all = {.alpha = 0.001};
    add_findings(name, dtype, 300001, 5, 2, SHUF__TESTS_ALL, &all);
    shuf__findings_decide(&all);
    for (size_t i = 0; i < all.count; i++)
        if (all.finding[i].failed)
            fail_msg("%s, %s: %s, %s: p = %g", name, shuf__dtype_name(dtype), all.finding[i].test,
                     all.finding[i].detail, all.finding[i].p);
    assert_true(all.count >= least_findings);
    shuf__findings_free(&all);
}

static void good_generators_pass(void **state)
{
    (void)state;
    for (shuf_dtype dtype = SHUF_F64; dtype <= SHUF_BF16; dtype++) {
        expect_pass("gauss", dtype, 80);
        expect_pass("box-muller", dtype, 80);
        expect_pass("polar", dtype, 80);
    }
    expect_pass("uniform", SHUF_F64, 50);
    expect_pass("uniform", SHUF_F32, 50);
    expect_pass("integers", SHUF_F64, 50);
    expect_pass("integers", SHUF_F32, 50);
}

static const struct shuf__finding *find_finding(const struct shuf__findings *all,
                                                const char *detail)
{
    for (size_t i = 0; i < all->count; i++)
        if (strncmp(all->finding[i].detail, detail, strlen(detail)) == 0)
            return &all->finding[i];
    return NULL;
}

/* Runs only this test and expects a failed finding. `detail` is the beginning of the finding's
 * detail. */
static void expect_failure(const char *name, shuf_dtype dtype, uint64_t samples, const char *test,
                           const char *detail)
{
    struct shuf__findings all = {.alpha = 0.001};
    add_findings(name, dtype, samples, 6, 2, test_named(test), &all);
    shuf__findings_decide(&all);
    const struct shuf__finding *f = find_finding(&all, detail);
    if (!f || !f->failed)
        fail_msg("%s: %s, %s: p = %g", name, test, detail, f ? f->p : NAN);
    shuf__findings_free(&all);
}

static void bad_generators_fail(void **state)
{
    (void)state;
    expect_failure("irwin-hall", SHUF_F64, 200000, "moments", "Hermite 4");
    expect_failure("irwin-hall", SHUF_F16, 400000, "moments", "Hermite 4");
    expect_failure("irwin-hall", SHUF_BF16, 1000000, "tails", "above 4");
    expect_failure("irwin-hall", SHUF_F64, 1000000, "squares", "Laguerre 2, in order");
    expect_failure("icdf-table", SHUF_F64, 200000, "low-bits", "8 bits, from 2^0");
    expect_failure("icdf-table", SHUF_F32, 200000, "repeats", "200000 values");
    expect_failure("icdf-table", SHUF_F64, 1000000, "tails", "below -4");
    expect_failure("icdf-table", SHUF_F64, 1000000, "repeats", "500000 radii");
    expect_failure("box-muller-32", SHUF_F64, 2097152, "repeats", "1048576 radii");
    expect_failure("mixed-uniform", SHUF_F64, 2048, "mixed", "24 bits of values");
    expect_failure("mixed-box-muller", SHUF_F64, 2048, "mixed", "10 bits of radii");
}

/* Some tests were added because of a broken stream. Each of them detects it. */
static void broken_gauss_fails(void **state)
{
    (void)state;
    expect_failure("broken-gauss", SHUF_F64, 100000, "lattice", "odd multiples of 2^-19");
    expect_failure("broken-gauss", SHUF_F32, 100000, "lattice", "odd multiples of 2^-19");
    expect_failure("broken-gauss", SHUF_F64, 300000, "cosines", "8 centred");
    expect_failure("broken-gauss", SHUF_F32, 300000, "cosines", "8 centred");
    expect_failure("broken-gauss", SHUF_BF16, 300000, "cosines", "8 centred");
    expect_failure("broken-gauss", SHUF_F16, 5000000, "signs", "bits 07, signs 60");
    expect_failure("broken-gauss", SHUF_F64, 100000, "digits", "64 apart");
    expect_failure("broken-gauss", SHUF_F32, 100000, "digits", "neighbour");
}

/* ---- Injected faults ---- */

/* The injected fault of the present test, a function that changes the values of a good stream. */
static void (*spoil)(uint64_t stream, uint64_t first, size_t count, double *value);

static void fill_spoiled(uint64_t seed, uint64_t stream, shuf_dtype dtype, uint64_t first,
                         size_t count, double *value)
{
    shuf__stream_gauss.fill(seed, stream, dtype, first, count, value);
    spoil(stream, first, count, value);
}

static const struct shuf__stream_generator spoiled_gauss = {"spoilt", "", false, fill_spoiled};

/* Adds a part of value `from` to value `to`, and keeps the variance. The caller does this once in
 * each superblock of 32 blocks. */
static void add_correlation(double *value, unsigned from, unsigned to, double part)
{
    value[to] = sqrt(1 - part * part) * value[to] + part * value[from];
}

static void spoil_lag(uint64_t stream, uint64_t first, size_t count, double *value)
{
    (void)stream;
    (void)first;
    for (size_t i = 512; i < count; i++)
        add_correlation(value + i - 512, 0, 512, 0.02);
}

/* Correlates positions 3 and 30 of each block. Position p of a block is at index 64 * (p / 2) + p %
 * 2. */
static void spoil_pair(uint64_t stream, uint64_t first, size_t count, double *value)
{
    (void)stream;
    (void)first;
    for (size_t i = 0; i < count; i += SHUF__SUPERBLOCK)
        for (unsigned block = 0; block < 32; block++)
            add_correlation(value + i + 2 * block, 65, 960, 0.1);
}

/* Scales all values of a block by the same factor. */
static void spoil_scale(uint64_t stream, uint64_t first, size_t count, double *value)
{
    (void)stream;
    for (size_t i = 0; i < count; i++) {
        const uint64_t block = (first + i) / SHUF__SUPERBLOCK * 32 + i % 64 / 2;
        value[i] *= block * 7 % 16 < 8 ? 1.05 : 0.9474;
    }
}

static void spoil_stream(uint64_t stream, uint64_t first, size_t count, double *value)
{
    static double other[SHUF__CHUNK];
    shuf__stream_gauss.fill(5, 0, SHUF_F64, first, count, other);
    for (size_t i = 0; i < count && stream == 1; i++)
        value[i] = 0.9998 * value[i] + 0.02 * other[i];
}

static void spoil_sign(uint64_t stream, uint64_t first, size_t count, double *value)
{
    (void)stream;
    (void)first;
    for (size_t i = 0; i < count; i++)
        value[i] = value[i] > 4 ? -value[i] : value[i];
}

static void spoil_tail(uint64_t stream, uint64_t first, size_t count, double *value)
{
    (void)stream;
    (void)first;
    for (size_t i = 0; i < count; i++)
        if (fabs(value[i]) > 4)
            value[i] = copysign(4.05, value[i]);
}

static void spoil_bit(uint64_t stream, uint64_t first, size_t count, double *value)
{
    (void)stream;
    (void)first;
    for (size_t i = 0; i < count; i++)
        if (fabs(value[i]) < 0.125) {
            uint64_t bits;
            memcpy(&bits, &value[i], sizeof bits);
            bits &= ~UINT64_C(1);
            memcpy(&value[i], &bits, sizeof bits);
        }
}

/* Lets small quotients of a pair be multiples of 2^-31. */
static void spoil_quotient(uint64_t stream, uint64_t first, size_t count, double *value)
{
    (void)stream;
    (void)first;
    for (size_t i = 0; i + 1 < count; i += 2) {
        const double quotient = value[i + 1] / value[i];
        if (fabs(quotient) < 0x1p-8)
            value[i + 1] = value[i] * ldexp(rint(ldexp(quotient, 31)), -31);
    }
}

/* Clears the last 29 bits of one in a thousand values. */
static void spoil_digits(uint64_t stream, uint64_t first, size_t count, double *value)
{
    (void)stream;
    (void)first;
    for (size_t i = 0; i < count; i += 1000)
        value[i] = (float)value[i];
}

static void spoil_repeat(uint64_t stream, uint64_t first, size_t count, double *value)
{
    (void)stream;
    (void)first;
    for (size_t i = 100; i < count; i += 50000)
        value[i] = value[i - 70];
}

/* Gives the two halves of a block different scales. */
static void spoil_halves(uint64_t stream, uint64_t first, size_t count, double *value)
{
    (void)stream;
    for (size_t i = 0; i < count; i++)
        value[i] *= (first + i) % 64 / 2 % 2 == ((first + i) % 1024 < 512) ? 1.02 : 0.98;
}

/* Whether an odd number of the values at positions 1, 2, 4 and 7 is large. The exclusive or of
 * these positions is 0. `block` is the address of the first value. */
static bool has_odd_large(const double *block)
{
    const double median = 0.67448975;
    return (fabs(block[1]) > median) ^ (fabs(block[64]) > median) ^ (fabs(block[128]) > median) ^
           (fabs(block[193]) > median);
}

/* Takes two blocks with an odd number of large values each. Exchanges their last values if this
 * makes both numbers even. Any three of the four values stay independent. */
static void spoil_quad(uint64_t stream, uint64_t first, size_t count, double *value)
{
    (void)stream;
    (void)first;
    for (size_t i = 0; i < count; i += SHUF__SUPERBLOCK)
        for (unsigned block = 0; block < 32; block += 2) {
            double *a = value + i + 2 * (size_t)block, *b = a + 2;
            const double last = a[193];
            if (!has_odd_large(a) || !has_odd_large(b))
                continue;
            a[193] = b[193];
            b[193] = last;
            if (has_odd_large(a)) {
                b[193] = a[193];
                a[193] = last;
            }
        }
}

/* Makes the last digit of one in fifty values even, in the precision of f16. */
static void spoil_tie(uint64_t stream, uint64_t first, size_t count, double *value)
{
    (void)stream;
    (void)first;
    for (size_t i = 0; i < count; i += 50) {
        uint64_t bits;
        memcpy(&bits, &value[i], sizeof bits);
        bits &= ~(UINT64_C(1) << (52 - 10));
        memcpy(&value[i], &bits, sizeof bits);
    }
}

static void spoiled_streams_fail(void **state)
{
    (void)state;
    static const struct {
        void (*spoil)(uint64_t stream, uint64_t first, size_t count, double *value);
        const char *test, *detail;
        uint64_t samples;
        shuf_dtype dtype;
    } rows[] = {
        {spoil_lag, "lags", "lag 512, values", 1000000, SHUF_F64},
        {spoil_pair, "pairs", "496 pairs, values", 1000000, SHUF_F64},
        {spoil_scale, "squares", "Laguerre 2, block", 1000000, SHUF_F64},
        {spoil_scale, "pairs", "31 masks, squares", 1000000, SHUF_F64},
        {spoil_stream, "streams", "stream + 1, values", 1000000, SHUF_F64},
        {spoil_sign, "tails", "above 4", 1000000, SHUF_F64},
        {spoil_tail, "tails", "spread, above 4", 2000000, SHUF_F64},
        {spoil_bit, "low-bits", "8 bits, from 2^-4", 1000000, SHUF_F64},
        {spoil_digits, "round", "zeros at the end, from 2^0", 1000000, SHUF_F64},
        {spoil_quotient, "quotients", "below 2^-10, multiples of 2^-31", 1000000, SHUF_F64},
        {spoil_repeat, "windows", "equal among 1024", 1000000, SHUF_F64},
        {spoil_halves, "norms", "best variance, weights 10", 4000000, SHUF_F64},
        {spoil_quad, "quads", "4 that cancel", 500000, SHUF_F64},
        {spoil_tie, "ties", "last digit, from 2^0", 500000, SHUF_F16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct shuf__stream_outcome outcome;
        struct shuf__stream_law *law = law_of(false, rows[i].dtype);
        const struct shuf__stream_origin origin = {
            .generator = &spoiled_gauss, .dtype = rows[i].dtype, .seed = 5};
        const struct shuf__stream_run_options options = {.origin = &origin,
                                                         .law = law,
                                                         .samples = rows[i].samples,
                                                         .tests = test_named(rows[i].test),
                                                         .threads = 1};
        struct shuf__findings all = {.alpha = 0.001};
        struct shuf__error error;
        spoil = rows[i].spoil;
        assert_int_equal(shuf__stream_run(&options, &all, &outcome, &error), SHUF_OK);
        shuf__findings_decide(&all);
        const struct shuf__finding *f = find_finding(&all, rows[i].detail);
        if (!f || !f->failed)
            fail_msg("%s, %s did not fail", rows[i].test, rows[i].detail);
        shuf__findings_free(&all);
        free_law(law);
    }
}

/* ---- P-values ---- */

/* For each test, about a tenth of the p-values of a good stream is below 0.1. The bounds are wide,
 * because the p-values are not independent and those of counts are conservative. The seeds are
 * fixed. */
static void p_values_are_uniform(void **state)
{
    (void)state;
    enum { RUNS = 20 };
    struct shuf__findings all = {.alpha = 0.001};
    for (uint64_t seed = 0; seed < RUNS; seed++)
        add_findings("polar", SHUF_F64, 70000, seed, 2, SHUF__TESTS_ALL, &all);
    for (int t = 0; shuf__stream_tests[t]; t++) {
        const char *name = shuf__stream_tests[t]->name;
        size_t count = 0, below = 0, far = 0;
        for (size_t i = 0; i < all.count; i++)
            if (strcmp(all.finding[i].test, name) == 0) {
                count++;
                below += all.finding[i].p < 0.1;
                far += all.finding[i].p < 1e-4;
            }
        const double deviation = ((double)below - 0.1 * (double)count) / sqrt(0.09 * (double)count);
        const bool counts = strcmp(name, "tails") == 0 || strcmp(name, "repeats") == 0 ||
                            strcmp(name, "round") == 0 || strcmp(name, "windows") == 0 ||
                            strcmp(name, "mixed") == 0;
        const bool more = strcmp(name, "ties") == 0;
        if ((count < RUNS && !more) || deviation > 5 || (deviation < -5 && !counts) || far > 2)
            fail_msg("%s: %zu of %zu p-values below 0.1, %zu below 1e-4", name, below, count, far);
    }
    shuf__findings_free(&all);
}

static void findings_do_not_depend_on_threads(void **state)
{
    (void)state;
    struct shuf__findings one = {.alpha = 0.001}, three = {.alpha = 0.001};
    add_findings("gauss", SHUF_F32, 300000, 9, 1, SHUF__TESTS_ALL, &one);
    add_findings("gauss", SHUF_F32, 300000, 9, 3, SHUF__TESTS_ALL, &three);
    assert_int_equal(one.count, three.count);
    for (size_t i = 0; i < one.count; i++) {
        assert_string_equal(one.finding[i].detail, three.finding[i].detail);
        assert_true(one.finding[i].statistic == three.finding[i].statistic);
        assert_true(one.finding[i].p == three.finding[i].p);
    }
    shuf__findings_free(&one);
    shuf__findings_free(&three);
}

/* The generators make the same values as the streams of the library. */
static void generators_match_streams(void **state)
{
    (void)state;
    static double value[2 * SHUF__SUPERBLOCK];
    const uint64_t first = UINT64_C(5) << 40;
    const shuf_gauss gauss = shuf_gauss_make(7, 3, 0, 1);
    const shuf_box_muller box_muller = shuf_box_muller_make(7, 3, 0, 1);
    const shuf_stream uniform = shuf_uniform_make(7, 3);
    for (shuf_dtype dtype = SHUF_F64; dtype <= SHUF_BF16; dtype++) {
        shuf__stream_gauss.fill(7, 3, dtype, first, 2 * SHUF__SUPERBLOCK, value);
        for (uint64_t i = 0; i < 2 * SHUF__SUPERBLOCK; i += 13) {
            const double expected[] = {[SHUF_F64] = shuf_gauss_f64(&gauss, first + i),
                                       [SHUF_F32] = shuf_gauss_f32(&gauss, first + i),
                                       [SHUF_F16] = shuf_of_f16(shuf_gauss_f16(&gauss, first + i)),
                                       [SHUF_BF16] =
                                           shuf_of_bf16(shuf_gauss_bf16(&gauss, first + i))};
            assert_true(value[i] == expected[dtype]);
        }
    }
    for (shuf_dtype dtype = SHUF_F64; dtype <= SHUF_BF16; dtype++) {
        shuf__stream_box_muller.fill(7, 3, dtype, first, 2 * SHUF__SUPERBLOCK, value);
        for (uint64_t i = 0; i < 2 * SHUF__SUPERBLOCK; i += 13) {
            const double expected[] = {
                [SHUF_F64] = shuf_box_muller_f64(&box_muller, first + i),
                [SHUF_F32] = shuf_box_muller_f32(&box_muller, first + i),
                [SHUF_F16] = shuf_of_f16(shuf_box_muller_f16(&box_muller, first + i)),
                [SHUF_BF16] = shuf_of_bf16(shuf_box_muller_bf16(&box_muller, first + i))};
            assert_true(value[i] == expected[dtype]);
        }
    }
    shuf__stream_uniform.fill(7, 3, SHUF_F64, first, SHUF__SUPERBLOCK, value);
    for (uint64_t i = 0; i < SHUF__SUPERBLOCK; i++)
        assert_true(value[i] == shuf_uniform_f64(&uniform, first + i));
    shuf__stream_uniform.fill(7, 3, SHUF_F32, first, SHUF__SUPERBLOCK, value);
    for (uint64_t i = 0; i < SHUF__SUPERBLOCK; i++)
        assert_true(value[i] == shuf_uniform_f32(&uniform, first + i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_moments_match),
        cmocka_unit_test(rounded_moments_match),
        cmocka_unit_test(cells_have_equal_probability),
        cmocka_unit_test(spread_values_cover_interval),
        cmocka_unit_test(spread_values_round_back),
        cmocka_unit_test(anderson_darling_matches_lewis),
        cmocka_unit_test(poisson_p_values_match),
        cmocka_unit_test(good_generators_pass),
        cmocka_unit_test(bad_generators_fail),
        cmocka_unit_test(broken_gauss_fails),
        cmocka_unit_test(spoiled_streams_fail),
        cmocka_unit_test(p_values_are_uniform),
        cmocka_unit_test(findings_do_not_depend_on_threads),
        cmocka_unit_test(generators_match_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
