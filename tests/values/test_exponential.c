/* SPDX-License-Identifier: MIT
 *
 * Exponential streams as a function of words, against long double: their errors, their ends, and
 * the probability of each float.
 */
#include "support/cmocka_all.h"
#include "support/random.h"

#include "shuf/exponential.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

enum { ARGUMENTS = 2000000 };

static const uint64_t top = UINT64_C(1) << 63;

/* A draw whose value 0 has these words, as f64 and as f32. */
static shuf_stream_draw wide_draw(uint64_t high, uint64_t low)
{
    return (shuf_stream_draw){{(uint32_t)(high >> 32), (uint32_t)high},
                              {(uint32_t)(low >> 32), (uint32_t)low}};
}

static shuf_stream_draw narrow_draw(uint64_t high)
{
    return (shuf_stream_draw){{(uint32_t)(high >> 32)}, {(uint32_t)high}};
}

/* -ln u with u = p or 1 - p. */
static long double exact(uint64_t high, uint64_t low)
{
    const long double p = ldexpl(high & (top - 1), -64) + ldexpl((low & (top - 1)) | 1, -127);
    return high & top ? -log1pl(-p) : -logl(p);
}

static long double error(long double got, long double expected, int bits)
{
    int exponent;
    frexpl(expected, &exponent);
    return fabsl(got - expected) / ldexpl(1, exponent - bits);
}

/* Random bits with a random number of leading zeros after the first one. */
static uint64_t random_high(void)
{
    const uint64_t rest = (random_u64() & (top - 1)) >> random_below(2) * random_below(62);
    return rest | (random_below(2) ? top : 0);
}

static void errors_are_bounded(void **state)
{
    (void)state;
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    long double wide = 0, narrow = 0;
    random_start("errors_are_bounded");
    for (int i = 0; i < ARGUMENTS; i++) {
        const uint64_t high = random_high(), low = random_u64();
        const shuf_stream_draw f64 = wide_draw(high, low), f32 = narrow_draw(high);
        wide =
            fmaxl(wide, error(shuf_exponential_f64_of(&terms, 0.5, &f64, 0), exact(high, low), 53));
        narrow =
            fmaxl(narrow, error(shuf_exponential_f32_of(&terms, 0.5, &f32, 0), exact(high, 0), 24));
    }
    print_message("errors in units of the last place: f64 %.3Lf, f32 %.9Lf\n", wide, narrow);
    assert_true(wide < 2.7L && narrow < 0.5000001L);
}

static void ends_are_right(void **state)
{
    (void)state;
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    const uint64_t least = top, largest = 0;
    for (int is_narrow = 0; is_narrow < 2; is_narrow++) {
        const shuf_stream_draw low = is_narrow ? narrow_draw(least) : wide_draw(least, 0);
        const shuf_stream_draw high = is_narrow ? narrow_draw(largest) : wide_draw(largest, 0);
        const double of_low = is_narrow ? shuf_exponential_f32_of(&terms, 0.5, &low, 0)
                                        : shuf_exponential_f64_of(&terms, 0.5, &low, 0);
        const double of_high = is_narrow ? shuf_exponential_f32_of(&terms, 0.5, &high, 0)
                                         : shuf_exponential_f64_of(&terms, 0.5, &high, 0);
        assert_true(of_low == 0x1p-127);
        assert_true(fabs(of_high - 127 * M_LN2) < 1e-5);
    }
}

/* The values of each draw come from different words. */
static void values_of_a_draw_have_their_words(void **state)
{
    (void)state;
    const shuf_exponential e = shuf_exponential_make(7, 3, 2);
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    for (uint64_t i = 0; i < 1000; i++) {
        const shuf_stream_draw d = shuf_stream_draw_make(&e.words, i / 4);
        const uint64_t words[2] = {(uint64_t)d.word[i % 4] << 32 | d.early[i % 4], 0};
        assert_true(shuf_exponential_f32(&e, i) == (float)shuf_box_muller_log_f64(&terms, words));
    }
}

/* Counts the neighbours of floats in a small interval: random values fall on each float of it, in
 * proportion to its width. A logarithm of 24 bits would leave out many of them. */
static void floats_of_an_interval_are_equally_likely(void **state)
{
    (void)state;
    enum { FLOATS = 1024, VALUES = 1 << 16 };
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    const float first = 0.375f, unit = 0x1p-25f;
    const long double from = expm1l(-((long double)first - unit / 2)) * -1;
    const long double to = expm1l(-((long double)first + (FLOATS - 0.5L) * unit)) * -1;
    unsigned found[FLOATS] = {0};
    random_start("floats_of_an_interval_are_equally_likely");
    for (int i = 0; i < VALUES; i++) {
        const long double p = from + (to - from) * ldexpl(random_u64(), -64);
        const shuf_stream_draw d = narrow_draw(top | (uint64_t)ldexpl(p, 64));
        const long at = lrintf((shuf_exponential_f32_of(&terms, 0.5, &d, 0) - first) / unit);
        if (at >= 0 && at < FLOATS)
            found[at]++;
    }
    double squares = 0;
    for (int i = 0; i < FLOATS; i++)
        squares += (found[i] - 64.0) * (found[i] - 64.0) / 64;
    print_message("chi-squared of %d floats: %.1f\n", FLOATS, squares);
    assert_true(squares < 1024 + 6 * 45.3 && squares > 1024 - 6 * 45.3);
}

/* Whether neighbouring words from `word` on, with the same top bit, skip floats. */
static bool skips_floats(bool is_narrow, uint64_t top_bit, uint64_t word)
{
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    double last = 0;
    for (int i = 0; i < 4096; i++) {
        const uint64_t next = word + (uint64_t)i * (is_narrow ? 1 : 2); /* R's low word is odd */
        const shuf_stream_draw d =
            is_narrow ? narrow_draw(top_bit | next) : wide_draw(top_bit, next);
        const double x = is_narrow ? shuf_exponential_f32_of(&terms, 0.5, &d, 0)
                                   : shuf_exponential_f64_of(&terms, 0.5, &d, 0);
        const double beside = is_narrow ? nextafterf((float)last, (float)x) : nextafter(last, x);
        if (i > 0 && x != last && x != beside)
            return true;
        last = x;
    }
    return false;
}

/* The limits of docs/spec.md, beyond which the grid of the words is coarser than the floats. */
static void grid_is_coarse_only_beyond_its_limits(void **state)
{
    static const struct {
        bool is_narrow;
        uint64_t top_bit;
        int exponent; /* of u, or with the top bit of 1 - u */
    } limits[] = {{true, UINT64_C(1) << 63, 41},
                  {true, 0, 45},
                  {false, UINT64_C(1) << 63, 73},
                  {false, 0, 79}};
    (void)state;
    for (int i = 0; i < 4; i++) {
        const int shift = (limits[i].is_narrow ? 64 : 127) - limits[i].exponent;
        const uint64_t limit = UINT64_C(1) << shift;
        assert_false(skips_floats(limits[i].is_narrow, limits[i].top_bit, limit));
        assert_true(skips_floats(limits[i].is_narrow, limits[i].top_bit, limit / 2));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_bounded),
        cmocka_unit_test(ends_are_right),
        cmocka_unit_test(values_of_a_draw_have_their_words),
        cmocka_unit_test(floats_of_an_interval_are_equally_likely),
        cmocka_unit_test(grid_is_coarse_only_beyond_its_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
