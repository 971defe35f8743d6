/* SPDX-License-Identifier: MIT
 *
 * Bernoulli streams: each bit against the comparison of its whole fraction, the rounding of the
 * probability, and its ends.
 */
#include "support/cmocka_all.h"
#include "support/random.h"

#include "shuf/bernoulli.h"

#include <math.h>
#include <stdbool.h>

/* The fraction of a bit in units of 2^-63, by the definition. */
static uint64_t fraction_of(const shuf_bernoulli *b, uint64_t bit)
{
    uint64_t fraction = 0;
    for (uint32_t j = 0; j < SHUF_BERNOULLI_DIGITS; j++) {
        shuf_stream words = b->words;
        words.high[0] ^= j;
        const shuf_philox4x32 digits = shuf_stream_words(&words, bit / 128, SHUF_BERNOULLI_ROUNDS);
        fraction = fraction << 1 | (digits.word[bit % 128 / 32] >> bit % 32 & 1);
    }
    return fraction;
}

static bool bit_of(const shuf_bernoulli *b, uint64_t bit)
{
    const bool is_set = shuf_bernoulli_u32(b, bit / 32) >> bit % 32 & 1;
    assert_int_equal(is_set, shuf_bernoulli_u64(b, bit / 64) >> bit % 64 & 1);
    return is_set;
}

static void bits_are_comparisons(void **state)
{
    (void)state;
    random_start("bits_are_comparisons");
    for (int i = 0; i < 2000; i++) {
        const double p =
            ldexp((double)random_u64(), -64 - (int)(random_below(2) * random_below(12)));
        const shuf_bernoulli b = shuf_bernoulli_make(random_u64(), random_u64(), p);
        const uint64_t bit = random_below(UINT64_C(1) << 63);
        assert_int_equal(bit_of(&b, bit), fraction_of(&b, bit) < b.threshold);
    }
}

/* A threshold at the fraction itself, and one unit above: all digits decide. */
static void last_digits_decide(void **state)
{
    (void)state;
    random_start("last_digits_decide");
    for (int i = 0; i < 300; i++) {
        shuf_bernoulli b = shuf_bernoulli_make(random_u64(), 0, 0.5);
        const uint64_t bit = random_below(UINT64_C(1) << 63);
        b.threshold = fraction_of(&b, bit);
        assert_false(bit_of(&b, bit));
        b.threshold++;
        assert_true(bit_of(&b, bit));
    }
}

static void thresholds_are_rounded(void **state)
{
    (void)state;
    static const struct {
        double p;
        uint64_t threshold;
    } rows[] = {
        {0, 0},
        {1, UINT64_C(1) << 63},
        {0.5, UINT64_C(1) << 62},
        {0x1p-63, 1},
        {0x1p-64, 0},
        {0x1.8p-63, 2},
        {0x1.4p-62, 2},
        {0x1.cp-62, 4},
        {1 - 0x1p-53, (UINT64_C(1) << 63) - 1024},
        {0.1, UINT64_C(922337203685477632)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(shuf_bernoulli_make(7, 0, rows[i].p).threshold, rows[i].threshold);
}

static void ends_are_certain(void **state)
{
    (void)state;
    const shuf_bernoulli never = shuf_bernoulli_make(7, 0, 0),
                         always = shuf_bernoulli_make(7, 0, 1);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(shuf_bernoulli_u32(&never, i), 0);
        assert_int_equal(shuf_bernoulli_u32(&always, i), UINT32_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_comparisons),
        cmocka_unit_test(last_digits_decide),
        cmocka_unit_test(thresholds_are_rounded),
        cmocka_unit_test(ends_are_certain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
