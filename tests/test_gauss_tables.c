/* SPDX-License-Identifier: MIT
 *
 * The tables of Gaussian streams that the library has: what is claimed of them, computed anew. And
 * the arithmetic of that proof, against sums over all outcomes.
 */
#include "proof.h"

#include "header.h"
#include "support/cmocka_all.h"
#include "support/random.h"

#include "shuf/gauss_table.h"

#include <string.h>

static void assert_near(shuf__real value, shuf__real expected, double error)
{
    const double apart = fabs((double)(value - expected));
    if (!(apart <= error))
        fail_msg("%.17g: expected %.17g, less than %g apart", (double)value, (double)expected,
                 error);
}

/* ---- The committed table ----------------------------------------------------- */

static struct shuf__rounded coefficients;
static shuf__tables tables;

static int read_header(void **state)
{
    (void)state;
    return shuf__header_read(&tables, &coefficients) ? 0 : -1;
}

static void table_is_what_the_stream_needs(void **state)
{
    (void)state;
    for (int t = 0; t < 16; t++) {
        double squares = 0;
        for (int j = 0; j < 128; j++) {
            const int32_t entry = shuf_gauss_table[j][t];
            assert_true(entry >= 0 && entry <= 1 << 19); /* 32 of them stay exact in a float */
            assert_int_equal(shuf_gauss_table[j + 128][t], -entry);
            squares += (double)entry * entry;
        }
        assert_near(squares / 128 / SHUF_GAUSS_UNIT / SHUF_GAUSS_UNIT, 1, 2e-6);
    }
}

static void coefficients_are_what_the_stream_needs(void **state)
{
    (void)state;
    double variance = 0;
    for (int t = 0; t < 16; t++)
        for (int j = 0; j < 128; j++)
            variance += (double)shuf_gauss_table[j][t] * shuf_gauss_table[j][t] / 64;
    const double c = SHUF_GAUSS_C_HIGH + SHUF_GAUSS_C_LOW;
    const double sums = SHUF_GAUSS_A * SHUF_GAUSS_A + SHUF_GAUSS_B * SHUF_GAUSS_B;
    assert_near(sums * variance + c * c * (16384.0 * 16384 - 1) / 3, 1, 1e-14);
    const double a = SHUF_GAUSS_A_F32, b = SHUF_GAUSS_B_F32;
    assert_near((a * a + b * b) * variance, 1, 1e-10);
    assert_true((float)SHUF_GAUSS_C_HIGH == SHUF_GAUSS_C_HIGH);
    assert_true(SHUF_GAUSS_A > SHUF_GAUSS_B);
}

/* delta < 4 / 2^63, so that 2^126 outputs, all of all streams, are too few to see it. */
static void committed_delta(void **state)
{
    (void)state;
    const struct shuf__proof proof = shuf__prove(&tables, &coefficients);
    assert_true(proof.delta < 1.2e-19);
    assert_true(16 / proof.delta / proof.delta > 0x1p126);
    assert_true(proof.delta32 < 9.3e-11);
    assert_true(proof.fourth < 0.081);
    assert_int_equal(shuf__proof_faults(&proof), 0);
}

/* One entry that is one off is a thousand times too much; and is told. */
static void proof_sees_one_quantum(void **state)
{
    (void)state;
    random_start("proof_sees_one_quantum");
    shuf__tables off = tables;
    int32_t *entry = &off.of[random_below(16)][64 + random_below(63)];
    *entry += random_below(2) ? 1 : -1;
    const struct shuf__proof proof = shuf__prove(&off, &coefficients);
    assert_true(proof.delta > SHUF__DELTA_LIMIT);
    assert_true(shuf__proof_faults(&proof) > 0);
}

/* ---- Its arithmetic ---------------------------------------------------------- */

/* He_k(x), k = 2i, is added to sum->of[i], `times` times. */
static void add_hermite(shuf__series *sum, shuf__real x, shuf__real times)
{
    shuf__real before = 1, now = x;
    sum->of[0] += times;
    for (int k = 2; k < 2 * SHUF__ORDERS; k++) {
        const shuf__real next = x * now - (k - 1) * before;
        before = now;
        now = next;
        if (k % 2 == 0)
            sum->of[k / 2] += times * next;
    }
}

static void assert_same(const shuf__series *found, const shuf__series *expected)
{
    for (int i = 0; i < SHUF__ORDERS; i++) {
        const double size = (double)shuf__hermite_length(2 * i);
        assert_near(found->of[i], expected->of[i],
                    1e-18 * fmax(size, fabs((double)expected->of[i])));
    }
}

static void one_table_by_direct_summation(void **state)
{
    (void)state;
    for (int t = 0; t < SHUF__TABLES; t++) {
        shuf__series expected = {{0}};
        for (int j = 0; j < SHUF__MAGNITUDES; j++)
            add_hermite(&expected, (shuf__real)tables.of[t][j] / SHUF__UNIT,
                        (shuf__real)1 / SHUF__MAGNITUDES);
        const shuf__series cumulants = shuf__cumulants(tables.of[t], SHUF__MAGNITUDES);
        const shuf__series found = shuf__hermite_moments(&cumulants);
        assert_same(&found, &expected);
    }
}

enum { SMALL = 4, TERMS = 4, MOST = 8, PLACES = 2 * TERMS * MOST + 1 };

/* `law` of a sum becomes that of the sum plus +-one of `magnitude`, equally likely. */
static void convolve(shuf__real *law, const int *magnitude)
{
    shuf__real next[PLACES] = {0};
    for (int place = 0; place < PLACES; place++)
        for (int j = 0; law[place] != 0 && j < SMALL; j++) {
            next[place + magnitude[j]] += law[place] / (2 * SMALL);
            next[place - magnitude[j]] += law[place] / (2 * SMALL);
        }
    memcpy(law, next, sizeof next);
}

/* Sums of small tables, of all outcomes: cumulants add up. */
static void sums_by_convolution(void **state)
{
    (void)state;
    random_start("sums_by_convolution");
    for (int repeat = 0; repeat < 50; repeat++) {
        const int32_t step = 1 + (int32_t)random_below(SHUF__UNIT / 4);
        shuf__real law[PLACES] = {0};
        shuf__series total = {{0}}, expected = {{0}};
        law[TERMS * MOST] = 1;
        for (int n = 0; n < TERMS; n++) {
            int magnitude[SMALL];
            int32_t entry[SMALL];
            for (int j = 0; j < SMALL; j++) {
                magnitude[j] = (int)random_below(MOST + 1);
                entry[j] = magnitude[j] * step;
            }
            convolve(law, magnitude);
            const shuf__series one = shuf__cumulants(entry, SMALL);
            for (int i = 0; i < SHUF__ORDERS; i++)
                total.of[i] += one.of[i];
        }
        for (int place = 0; place < PLACES; place++)
            add_hermite(&expected, (shuf__real)(place - TERMS * MOST) * step / SHUF__UNIT,
                        law[place]);
        const shuf__series found = shuf__hermite_moments(&total);
        assert_same(&found, &expected);
    }
}

/* The closed form, against a sum over all 16384 values. */
static void steps_by_summation(void **state)
{
    (void)state;
    const shuf__real scale = (shuf__real)1 / 8192;
    shuf__series scaled = shuf__cumulants_of_steps(), expected = {{0}};
    for (int i = 1; i < SHUF__ORDERS; i++)
        scaled.of[i] *= shuf__real_power(scale, 2 * i);
    for (int c = 1; c <= SHUF__STEPS; c += 2)
        add_hermite(&expected, c * scale, scale);
    const shuf__series found = shuf__hermite_moments(&scaled);
    assert_same(&found, &expected);
}

static void solution_has_variance_one_and_kurtosis_three(void **state)
{
    (void)state;
    shuf__series sum = shuf__cumulants_of_tables(&tables);
    struct shuf__coefficients by = shuf__law_solve(&sum);
    shuf__series defects = shuf__law_defects(&sum, &by);
    assert_true(by.c > 0);
    assert_near(defects.of[1], 0, 1e-30);
    assert_near(defects.of[2], 0, 1e-30);
    sum.of[2] = -sum.of[2]; /* c could only make it worse */
    by = shuf__law_solve(&sum);
    defects = shuf__law_defects(&sum, &by);
    assert_true(by.c == 0);
    assert_near(defects.of[1], 0, 1e-30);
    assert_true(defects.of[2] < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_what_the_stream_needs),
        cmocka_unit_test(coefficients_are_what_the_stream_needs),
        cmocka_unit_test(committed_delta),
        cmocka_unit_test(proof_sees_one_quantum),
        cmocka_unit_test(one_table_by_direct_summation),
        cmocka_unit_test(sums_by_convolution),
        cmocka_unit_test(steps_by_summation),
        cmocka_unit_test(solution_has_variance_one_and_kurtosis_three),
    };
    return cmocka_run_group_tests(tests, read_header, NULL);
}
