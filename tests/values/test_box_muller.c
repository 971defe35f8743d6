/* SPDX-License-Identifier: MIT
 *
 * The method of Box and Muller as a function of words: special words against the golden table;
 * radius, sine and cosine against long double.
 */
#include "support/cmocka_all.h"
#include "support/golden.h"
#include "support/random.h"

#include "shuf/box_muller.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Special words ---- */

static void check_f64(const uint64_t w[4], const uint64_t bits[2])
{
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    const shuf_box_muller_wide words = {{w[0], w[1]}, {w[2], w[3]}};
    double z[2];
    shuf_box_muller_pair_f64(&terms, &words, z);
    for (int i = 0; i < 2; i++)
        assert_int_equal(shuf__double_bits(z[i] + 0.0), bits[i]); /* + 0.0 turns -0 into 0 */
}

static void check_f32(const uint64_t w[4], const uint64_t bits[2])
{
    const shuf_box_muller_words words = {{(uint32_t)w[0], (uint32_t)w[1]},
                                         {(uint32_t)w[2], (uint32_t)w[3]}};
    float z[2];
    shuf_box_muller_pair_f32(&words, z);
    for (int i = 0; i < 2; i++)
        assert_int_equal(shuf__float_bits(z[i] + 0.0f), bits[i]);
}

static void golden_words_give_golden_bits(void **state)
{
    (void)state;
    const char *line;
    char dtype[8];
    uint64_t w[4], bits[2];
    unsigned rows = 0;
    FILE *table = golden_open("box_muller.txt");
    while ((line = golden_line(table))) {
        assert_int_equal(
            sscanf(line, "%7s %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
                   dtype, w, w + 1, w + 2, w + 3, bits, bits + 1),
            7);
        (strcmp(dtype, "f64") == 0 ? check_f64 : check_f32)(w, bits);
        rows++;
    }
    fclose(table);
    assert_in_range(rows, 200, 1000);
}

/* ---- Accuracy ---- */

enum { ARGUMENTS = 300000 };

/* The largest errors, in units of the last place of a type with `bits` bits. */
struct error {
    int bits;
    long double radius, cosine, sine;
};

static void update_largest_error(long double *largest, long double got, long double exact, int bits)
{
    int exponent;
    frexpl(exact, &exponent);
    const long double error = fabsl(got - exact) / ldexpl(1, exponent - bits);
    if (error > *largest)
        *largest = error;
}

/* The exact radius for p in (0, 1/2]; u is p, or 1 - p with `near_1`. */
static long double exact_radius(long double p, bool near_1)
{
    return sqrtl(-2 * (near_1 ? log1pl(-p) : logl(p)));
}

static void update_angle_errors(struct error *e, long double y, const long double got[2])
{
    const long double x = y * (M_PIl / 4);
    update_largest_error(&e->cosine, fabsl(got[0]), cosl(x), e->bits);
    if (y > 0)
        update_largest_error(&e->sine, fabsl(got[1]), sinl(x), e->bits);
}

/* Random bits with a random number of leading zeros. */
static uint64_t random_word_below(uint64_t top)
{
    const uint64_t word = random_u64();
    const unsigned zeros = (unsigned)random_below(62);
    return word & 1 ? random_u64() & (top - 1) : (random_u64() & (top - 1)) >> zeros;
}

static void measure_f32(struct error *e)
{
    const uint64_t top = UINT64_C(1) << 63;
    const uint64_t word = random_word_below(top), near_1 = random_below(2);
    const uint32_t w[2] = {(uint32_t)(word >> 32 | near_1 << 31), (uint32_t)word};
    const long double high = w[0] & 0x7fffffff, low = w[1] & 0x7fffffff;
    float got[2];
    update_largest_error(
        &e->radius, shuf_box_muller_radius_f32(w),
        exact_radius(ldexpl(high, -32) + ldexpl((w[1] & 0x7fffffff) | 1, -63), near_1), e->bits);
    shuf_box_muller_angle_f32(w, got);
    update_angle_errors(e, ldexpl(high, -31) + ldexpl(low, -62), (long double[]){got[0], got[1]});
}

static void measure_f64(struct error *e)
{
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    const uint64_t top = UINT64_C(1) << 63, near_1 = random_below(2);
    const uint64_t w[2] = {random_word_below(top) | (near_1 ? top : 0), random_u64()};
    const long double high = w[0] & (top - 1), low = w[1] & (top - 1);
    double got[2];
    update_largest_error(
        &e->radius, shuf_box_muller_radius_f64(&terms, w),
        exact_radius(ldexpl(high, -64) + ldexpl((w[1] & (top - 1)) | 1, -127), near_1), e->bits);
    shuf_box_muller_angle_f64(&terms, w, 0, got);
    update_angle_errors(e, ldexpl(high, -63) + ldexpl(low, -126), (long double[]){got[0], got[1]});
}

static void check_error(void (*measure)(struct error *e), int bits, long double radius,
                        long double cosine, long double sine)
{
    struct error e = {.bits = bits};
    for (int i = 0; i < ARGUMENTS; i++)
        measure(&e);
    print_message("f%d: errors of the radius %.3Lf, cosine %.3Lf, sine %.3Lf\n",
                  bits == 24 ? 32 : 64, e.radius, e.cosine, e.sine);
    assert_true(e.radius < radius && e.cosine < cosine && e.sine < sine);
}

static void errors_are_bounded(void **state)
{
    (void)state;
    random_start("errors_are_bounded");
    check_error(measure_f32, 24, 2.0L, 1.9L, 2.9L);
    check_error(measure_f64, 53, 1.9L, 1.4L, 3.2L);
}

/* ---- Moments of f32 ---- */

enum { MOMENT_ARGUMENTS = 4000000 };

/* Sums over random arguments: the differences between computed and exact powers of the radius, and
 * of sine and cosine. They show how much the errors change the mean square and the mean fourth
 * power of a value. */
struct change {
    double radius2, radius4, angle2, angle4;
};

static void add_change(struct change *change)
{
    const uint64_t random = random_u64(), other = random_u64();
    const uint32_t r[2] = {(uint32_t)(random >> 32), (uint32_t)random};
    const uint32_t t[2] = {(uint32_t)(other >> 32) & 0x7fffffff, (uint32_t)other & 0x7fffffff};
    const double p = ldexp(r[0] & 0x7fffffff, -32) + ldexp((r[1] & 0x7fffffff) | 1, -63);
    const double exact = -2 * (r[0] >> 31 ? log1p(-p) : log(p));
    const double x = (ldexp(t[0], -31) + ldexp(t[1], -62)) * (M_PI / 4),
                 radius = shuf_box_muller_radius_f32(r);
    float got[2];
    shuf_box_muller_angle_f32(t, got);
    const double c = got[0], s = got[1];
    change->radius2 += radius * radius - exact;
    change->radius4 += pow(radius, 4) - exact * exact;
    change->angle2 += c * c + s * s - 1;
    change->angle4 += pow(c, 4) + pow(s, 4) - pow(cos(x), 4) - pow(sin(x), 4);
}

/* E r^2 = 2, E r^4 = 8, and the mean of c^4 + s^4 is 3/4. */
static void f32_moments_are_close(void **state)
{
    (void)state;
    struct change sum = {0};
    random_start("f32_moments_are_close");
    for (int i = 0; i < MOMENT_ARGUMENTS; i++)
        add_change(&sum);
    const double square = (sum.radius2 / 2 + sum.angle2) / MOMENT_ARGUMENTS;
    const double fourth = (sum.radius4 / 8 + sum.angle4 / 0.75) / MOMENT_ARGUMENTS;
    print_message("f32: mean square %+.3g, fourth power %+.3g\n", square, fourth);
    assert_true(fabs(square) < 1e-9 && fabs(fourth) < 2e-8);
}

/* ---- The smallest and largest words ---- */

static void extreme_words_are_finite(void **state)
{
    (void)state;
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    const uint32_t least[2] = {UINT32_C(1) << 31, 0}, largest[2] = {0, 0};
    const uint64_t least_64[2] = {UINT64_C(1) << 63, 0}, largest_64[2] = {0, 0};
    assert_true(shuf_box_muller_radius_f32(least) > 0);
    assert_true(shuf_box_muller_radius_f32(least) < 0x1p-30f);
    assert_true(shuf_box_muller_radius_f32(largest) > 9.3f);
    assert_true(shuf_box_muller_radius_f64(&terms, least_64) > 0);
    assert_true(shuf_box_muller_radius_f64(&terms, least_64) < 0x1p-62);
    assert_true(shuf_box_muller_radius_f64(&terms, largest_64) > 13.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_words_give_golden_bits),
        cmocka_unit_test(errors_are_bounded),
        cmocka_unit_test(f32_moments_are_close),
        cmocka_unit_test(extreme_words_are_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
