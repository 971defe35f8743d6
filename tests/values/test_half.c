/* SPDX-License-Identifier: MIT
 *
 * shuf/half.h: every number of 16 bits, and every float near the middle between two neighbours,
 * against the definition of rounding.
 */
#include "support/cmocka_all.h"
#include "support/random.h"

#include "shuf/half.h"

#include <math.h>

/* The number with these bits, by the definition: sign, exponent, fraction. */
static double value_of(unsigned bits, int exponent_bits, int fraction_bits)
{
    const int exponent = (int)(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    const int fraction = (int)bits & ((1 << fraction_bits) - 1),
              bias = (1 << (exponent_bits - 1)) - 1;
    const double magnitude =
        exponent ? ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits)
                 : ldexp(fraction, 1 - bias - fraction_bits);
    return bits >> 15 ? -magnitude : magnitude;
}

static void every_f16_round_trips(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        if ((bits & 0x7c00) == 0x7c00)
            continue;
        assert_true((double)shuf_of_f16((uint16_t)bits) == value_of(bits, 5, 10));
        assert_int_equal(shuf_f16(shuf_of_f16((uint16_t)bits)), bits);
    }
    assert_true(shuf_of_f16(0x7c00) == INFINITY && shuf_of_f16(0xfc00) == -INFINITY);
}

static void every_bf16_round_trips(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        if ((bits & 0x7f80) == 0x7f80)
            continue;
        assert_true((double)shuf_of_bf16((uint16_t)bits) == value_of(bits, 8, 7));
        assert_int_equal(shuf_bf16(shuf_of_bf16((uint16_t)bits)), bits);
    }
}

/* Checks floats between the neighbours `bits` and bits + 1. A float rounds to the nearer neighbour.
 * The middle rounds to the neighbour with even bits. */
static void check_between(unsigned bits, double below, double above, uint16_t (*round)(float))
{
    const double middle = (below + above) / 2; /* exact; it is a float */
    assert_int_equal(round((float)middle), bits + (bits & 1));
    assert_int_equal(round(nextafterf((float)middle, 0)), bits);
    assert_int_equal(round(nextafterf((float)middle, INFINITY)), bits + 1);
    assert_int_equal(round(-(float)middle), 0x8000 | (bits + (bits & 1)));
}

static uint16_t round_f16(float x)
{
    return shuf_f16(x);
}

static uint16_t round_bf16(float x)
{
    return shuf_bf16(x);
}

static void floats_round_to_nearest_even(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 0x7bff; bits++)
        check_between(bits, value_of(bits, 5, 10), value_of(bits + 1, 5, 10), round_f16);
    for (unsigned bits = 0; bits < 0x7f7f; bits++)
        check_between(bits, value_of(bits, 8, 7), value_of(bits + 1, 8, 7), round_bf16);
}

/* Checks doubles that are nearer to the middle of two neighbours than any float is. */
static void check_sticky(double below, double above, unsigned bits, uint16_t (*round)(float))
{
    const double middle = (below + above) / 2;
    assert_int_equal(round(shuf__float_sticky_of(nextafter(middle, 0))), bits);
    assert_int_equal(round(shuf__float_sticky_of(nextafter(middle, INFINITY))), bits + 1);
    assert_int_equal(round(shuf__float_sticky_of(nextafter(-middle, 0))), 0x8000 | bits);
    assert_int_equal(round(shuf__float_sticky_of(nextafter(-middle, -INFINITY))),
                     0x8000 | (bits + 1));
}

static void sticky_float_rounds_like_its_double(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 0x7bff; bits++)
        check_sticky(value_of(bits, 5, 10), value_of(bits + 1, 5, 10), bits, round_f16);
    for (unsigned bits = 0xf00; bits < 0x7f7f; bits++) /* from 2^-97 on */
        check_sticky(value_of(bits, 8, 7), value_of(bits + 1, 8, 7), bits, round_bf16);
    assert_true(shuf__float_sticky_of(1.5) == 0x1.800002p0f);
    assert_true(shuf__float_sticky(1.5f, -0x1p-30f) == 0x1.7ffffep0f);
    assert_true(shuf__float_sticky(-1.5f, 0x1p-30f) == -0x1.7ffffep0f);
    assert_true(shuf__float_sticky(-1.5f, -0x1p-30f) == -0x1.800002p0f);
}

static void out_of_range_floats_round_to_limits(void **state)
{
    (void)state;
    assert_int_equal(shuf_f16(65519.996f), 0x7bff);
    assert_int_equal(shuf_f16(65520.0f), 0x7c00);
    assert_int_equal(shuf_f16(-3e38f), 0xfc00);
    assert_int_equal(shuf_f16(0x1p-25f), 0);
    assert_int_equal(shuf_f16(-0x1.000002p-25f), 0x8001);
    assert_int_equal(shuf_f16(1e-30f), 0);
    assert_int_equal(shuf_bf16(3.4e38f), 0x7f80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_f16_round_trips),
        cmocka_unit_test(every_bf16_round_trips),
        cmocka_unit_test(floats_round_to_nearest_even),
        cmocka_unit_test(sticky_float_rounds_like_its_double),
        cmocka_unit_test(out_of_range_floats_round_to_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
