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

static struct shuf__coefficients coefficients;
static shuf__tables tables;

static int read_header(void **state)
{
    (void)state;
    return shuf__header_read(&tables, &coefficients) ? 0 : -1;
}

static void entries_are_what_the_stream_needs(void **state)
{
    (void)state;
    for (int t = 0; t < 16; t++)
        for (int j = 0; j < 128; j++) {
            const int32_t entry = shuf_gauss_table[j][t];
            assert_true(entry >= 0 && entry < 1 << 18); /* 64 of them stay exact in a float */
            assert_int_equal(shuf_gauss_table[j + 128][t], -entry);
        }
}

/* In integers: no rounding hides how near A is to 2^-19, which a float takes for it. */
static void variance_is_one(void **state)
{
    (void)state;
    int64_t squares = 0;
    for (int j = 0; j < 128; j++)
        for (int t = 0; t < 16; t++)
            squares += (int64_t)shuf_gauss_table[j][t] * shuf_gauss_table[j][t];
    const int64_t room = ((int64_t)1 << 43) - squares;
    assert_in_range(room, SHUF__ROOM_LEAST, SHUF__ROOM_MOST);
    assert_true(room == shuf__law_room(&tables));
    const shuf__real a = SHUF_GAUSS_A, c = SHUF_GAUSS_C;
    const shuf__real steps = (0x1p64L - 1) / (shuf__real)12;
    assert_near(a * a * squares / 32 + c * c * steps, 1, 2.3e-16);
    assert_true((float)SHUF_GAUSS_A == 0x1p-19f);
    assert_near(c / a * 0x1p32, 1, 0x1p-17); /* one step of s wide, and a little more */
}

/* By their moments rather than by the proof's cumulants: of x = k + k', the sum of one draw from
 * each table of a pair, E He_n(x / 2^16.5) for n to 8. */
static void pairs_are_normal_to_order_eight(void **state)
{
    (void)state;
    for (int pair = 0; pair < 8; pair++) {
        double sum[5] = {0};
        for (int j = 0; j < 256; j++)
            for (int k = 0; k < 256; k++) {
                const int32_t entry = shuf_gauss_table[j][pair] + shuf_gauss_table[k][pair + 8];
                const double x = entry / (SHUF_GAUSS_UNIT * sqrt(2)), y = x * x;
                sum[1] += y - 1;
                sum[2] += (y - 6) * y + 3;
                sum[3] += ((y - 15) * y + 45) * y - 15;
                sum[4] += (((y - 28) * y + 210) * y - 420) * y + 105;
            }
        for (int i = 1; i <= 4; i++)
            assert_near(sum[i] / 65536 / (double)shuf__hermite_length(2 * i), 0, 2e-5);
    }
}

static void committed_delta(void **state)
{
    (void)state;
    const struct shuf__proof proof = shuf__prove(&tables, &coefficients);
    assert_true(proof.residue < 2.5e-6 && proof.variance < 3.6e-6);
    assert_true(proof.delta < 1.1e-16 && proof.delta32 < 2.7e-14);
    assert_int_equal(shuf__proof_faults(&proof), 0);
}

/* One entry that is one off is a thousand times too much, in both types, and takes all the room; it
 * is told. */
static void proof_sees_one_quantum(void **state)
{
    (void)state;
    random_start("proof_sees_one_quantum");
    shuf__tables off = tables;
    int32_t *entry = &off.of[random_below(16)][64 + random_below(63)];
    *entry += random_below(2) ? 1 : -1;
    const struct shuf__proof proof = shuf__prove(&off, &coefficients);
    assert_true(proof.delta > SHUF__DELTA_LIMIT);
    assert_int_equal(shuf__proof_faults(&proof), 3);
}

/* Its other demands: a pair that is wider than another, though the sum of squares stays; and one
 * whose draws make it less normal. */
static void proof_sees_pairs(void **state)
{
    (void)state;
    shuf__tables off = tables;
    for (int j = 20; j < 100; j++) {
        off.of[2][j] += 8;
        off.of[3][j] -= 8;
    }
    struct shuf__proof proof = shuf__prove(&off, &coefficients);
    assert_true(proof.variance > SHUF__PAIR_LIMIT);
    off = tables;
    off.of[5][127] += 300;
    off.of[6][127] -= 300;
    proof = shuf__prove(&off, &coefficients);
    assert_true(proof.residue > SHUF__PAIR_LIMIT);
    off.of[0][127] = 1 << 18;
    proof = shuf__prove(&off, &coefficients);
    assert_true(shuf__proof_faults(&proof) == 6);
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

/* The closed form, against the sum of 32 independent bits: h + 1/2 is one of +-2^(b - 1) for each
 * b. */
static void steps_by_one_bit_more(void **state)
{
    (void)state;
    const shuf__series steps = shuf__cumulants_of_steps();
    const int32_t one =
        SHUF__UNIT; /* +-1, and all bits of h together make it +-2^(b - 1), b < 32 */
    const shuf__series bit = shuf__cumulants(&one, 1);
    for (int i = 1; i < SHUF__ORDERS; i++) {
        shuf__real expected = 0;
        for (int b = 0; b < 32; b++)
            expected += bit.of[i] * shuf__real_power(2, 2 * i * b) / shuf__real_power(2, 2 * i);
        const double size = fabs((double)expected);
        assert_near(steps.of[i], expected, 1e-28 * size);
    }
}

static void solution_has_variance_one(void **state)
{
    (void)state;
    shuf__series sum = shuf__cumulants_of_tables(&tables);
    struct shuf__coefficients by = shuf__law_solve(&sum);
    shuf__series defects = shuf__law_defects(&sum, &by);
    assert_true((double)by.a == SHUF_GAUSS_A && (double)by.c == SHUF_GAUSS_C);
    assert_near(defects.of[1], 0, 1e-27);
    sum.of[1] = 65; /* whatever it is */
    by = shuf__law_solve(&sum);
    defects = shuf__law_defects(&sum, &by);
    assert_near(defects.of[1], 0, 1e-27);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_what_the_stream_needs),
        cmocka_unit_test(variance_is_one),
        cmocka_unit_test(pairs_are_normal_to_order_eight),
        cmocka_unit_test(committed_delta),
        cmocka_unit_test(proof_sees_one_quantum),
        cmocka_unit_test(proof_sees_pairs),
        cmocka_unit_test(one_table_by_direct_summation),
        cmocka_unit_test(sums_by_convolution),
        cmocka_unit_test(steps_by_one_bit_more),
        cmocka_unit_test(solution_has_variance_one),
    };
    return cmocka_run_group_tests(tests, read_header, NULL);
}
