/* SPDX-License-Identifier: MIT
 *
 * The draws of streams as functions of words. 16-bit floats, Bernoulli bits, integers and
 * exponential values are compared with their definitions, the method of Box and Muller also with
 * the golden table.
 */
#include "shuf/bernoulli.h"
#include "shuf/box_muller.h"
#include "shuf/exponential.h"
#include "shuf/half.h"
#include "shuf/integers.h"
#include "support/cmocka_all.h"
#include "support/golden.h"
#include "support/random.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- 16-bit floats: every number, and every float near the middle between two ---- */

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

/* ---- Bernoulli: each bit against the comparison of its whole fraction ---- */

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

/* ---- Integers: values, and how many words decide each ---- */

typedef unsigned __int128 u128;

/* A number of any size from 1 to 2^bits, or 2^64 - 1. */
static uint64_t random_bound(unsigned bits)
{
    const uint64_t bound = 1 + (random_u64() >> (64 - bits) >> random_below(bits));
    return bound == 0 ? UINT64_MAX : bound;
}

/* Value i by the definition, with words of 32 or 64 bits. */
static uint64_t integer_of(const shuf_integers *s, unsigned bits, uint64_t i)
{
    const u128 words = (u128)1 << bits;
    for (uint32_t attempt = 0;; attempt++) {
        shuf_stream stream = s->words;
        stream.high[0] ^= attempt;
        const uint64_t each = 128 / bits, number = i % each;
        const shuf_philox4x32 draw = shuf_stream_words(&stream, i / each, 10);
        const u128 word = bits == 32
                              ? draw.word[number]
                              : (u128)draw.word[2 * number + 1] << 32 | draw.word[2 * number];
        const u128 product = word * s->bound;
        if (product % words >= words % s->bound)
            return (uint64_t)(product / words);
    }
}

static void values_follow_the_definition(void **state)
{
    (void)state;
    random_start("values_follow_the_definition");
    for (int k = 0; k < 20000; k++) {
        const uint64_t seed = random_u64(), stream = random_u64(),
                       i = random_below(SHUF_STREAM_MAX) >> random_below(62);
        const shuf_integers narrow = shuf_integers_make(seed, stream, random_bound(32)),
                            any = shuf_integers_make(seed, stream, random_bound(64));
        assert_int_equal(shuf_integers_u32(&narrow, i), integer_of(&narrow, 32, i));
        assert_int_equal(shuf_integers_u64(&any, i), integer_of(&any, 64, i));
        assert_true(shuf_integers_u32(&narrow, i) < narrow.bound);
        assert_true(shuf_integers_u64(&any, i) < any.bound);
    }
}

/* Whether a word decides the value, or else the next attempt. */
static bool decides(const shuf_integers *s, unsigned bits, uint64_t word, uint64_t value)
{
    uint32_t narrow;
    uint64_t found;
    bool result;
    if (bits == 32) {
        result = shuf_integers_u32_of(s, (uint32_t)word, &narrow);
        found = narrow;
    } else {
        result = shuf_integers_u64_of(s, word, &found);
    }
    assert_int_equal(found, value);
    return result;
}

/* The words of a value are neighbours. All but the first of them decide. */
static void check_words(unsigned bits, uint64_t bound, uint64_t value)
{
    const shuf_integers s = shuf_integers_make(7, 0, bound);
    const u128 words = (u128)1 << bits;
    const u128 first = (value * words + bound - 1) / bound,
               end = ((value + (u128)1) * words + bound - 1) / bound;
    u128 deciding = end - first - !decides(&s, bits, (uint64_t)first, value);
    if (end - first > 1) {
        assert_true(decides(&s, bits, (uint64_t)first + 1, value));
        assert_true(decides(&s, bits, (uint64_t)end - 1, value));
    }
    assert_true(deciding == words / bound);
}

static void equally_many_words_decide_each_value(void **state)
{
    (void)state;
    static const uint64_t bounds[] = {1,
                                      2,
                                      3,
                                      1000,
                                      (UINT64_C(1) << 31) + 1,
                                      UINT32_MAX,
                                      UINT64_C(1) << 32,
                                      (UINT64_C(1) << 32) + 1,
                                      (UINT64_C(1) << 63) + 1,
                                      UINT64_MAX};
    random_start("equally_many_words_decide_each_value");
    for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++)
        for (unsigned bits = bounds[k] <= UINT64_C(1) << 32 ? 32 : 64; bits <= 64; bits += 32) {
            check_words(bits, bounds[k], 0);
            check_words(bits, bounds[k], bounds[k] - 1);
            check_words(bits, bounds[k], random_below(bounds[k]));
        }
    for (int k = 0; k < 100000; k++) {
        const unsigned bits = k % 2 ? 32 : 64;
        const uint64_t bound = random_bound(bits);
        check_words(bits, bound, random_below(bound));
    }
}

/* With a power of two, the first word decides: its upper bits are the value. */
static void powers_of_two_take_the_upper_bits(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 64; bits++) {
        const shuf_integers s = shuf_integers_make(7, 0, UINT64_C(1) << bits);
        for (uint64_t i = 0; i < 100; i++) {
            const uint64_t word = shuf_uniform_u64(&s.words, i);
            assert_int_equal(shuf_integers_u64(&s, i), bits ? word >> (64 - bits) : 0);
            if (bits <= 32)
                assert_int_equal(shuf_integers_u32(&s, i),
                                 (uint64_t)shuf_uniform_u32(&s.words, i) >> (32 - bits));
        }
    }
}

/* ---- Exponential, against long double: errors, ends, the probability of each float ---- */

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

static void exponential_errors_are_bounded(void **state)
{
    (void)state;
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    long double wide = 0, narrow = 0;
    random_start("exponential_errors_are_bounded");
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

/* ---- Box and Muller: special words ---- */

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

/* ---- Box and Muller: radius, sine and cosine against long double ---- */

enum { PAIRS = 300000 };

/* The largest errors, in units of the last place of a type with `bits` bits. */
struct pair_errors {
    int bits;
    long double radius, cosine, sine;
};

static void update_largest_error(long double *largest, long double got, long double exact, int bits)
{
    *largest = fmaxl(*largest, error(got, exact, bits));
}

/* The exact radius for p in (0, 1/2]; u is p, or 1 - p with `near_1`. */
static long double exact_radius(long double p, bool near_1)
{
    return sqrtl(-2 * (near_1 ? log1pl(-p) : logl(p)));
}

static void update_angle_errors(struct pair_errors *e, long double y, const long double got[2])
{
    const long double x = y * (M_PIl / 4);
    update_largest_error(&e->cosine, fabsl(got[0]), cosl(x), e->bits);
    if (y > 0)
        update_largest_error(&e->sine, fabsl(got[1]), sinl(x), e->bits);
}

/* Random bits with a random number of leading zeros. */
static uint64_t random_word(void)
{
    const uint64_t word = random_u64();
    const unsigned zeros = (unsigned)random_below(62);
    return word & 1 ? random_u64() & (top - 1) : (random_u64() & (top - 1)) >> zeros;
}

static void measure_f32(struct pair_errors *e)
{
    const uint64_t word = random_word(), near_1 = random_below(2);
    const uint32_t w[2] = {(uint32_t)(word >> 32 | near_1 << 31), (uint32_t)word};
    const long double high = w[0] & 0x7fffffff, low = w[1] & 0x7fffffff;
    float got[2];
    update_largest_error(
        &e->radius, shuf_box_muller_radius_f32(w),
        exact_radius(ldexpl(high, -32) + ldexpl((w[1] & 0x7fffffff) | 1, -63), near_1), e->bits);
    shuf_box_muller_angle_f32(w, got);
    update_angle_errors(e, ldexpl(high, -31) + ldexpl(low, -62), (long double[]){got[0], got[1]});
}

static void measure_f64(struct pair_errors *e)
{
    const shuf_box_muller_terms terms = shuf_box_muller_terms_make();
    const uint64_t near_1 = random_below(2);
    const uint64_t w[2] = {random_word() | (near_1 ? top : 0), random_u64()};
    const long double high = w[0] & (top - 1), low = w[1] & (top - 1);
    double got[2];
    update_largest_error(
        &e->radius, shuf_box_muller_radius_f64(&terms, w),
        exact_radius(ldexpl(high, -64) + ldexpl((w[1] & (top - 1)) | 1, -127), near_1), e->bits);
    shuf_box_muller_angle_f64(&terms, w, 0, got);
    update_angle_errors(e, ldexpl(high, -63) + ldexpl(low, -126), (long double[]){got[0], got[1]});
}

static void check_error(void (*measure)(struct pair_errors *e), int bits, long double radius,
                        long double cosine, long double sine)
{
    struct pair_errors e = {.bits = bits};
    for (int i = 0; i < PAIRS; i++)
        measure(&e);
    print_message("f%d: errors of the radius %.3Lf, cosine %.3Lf, sine %.3Lf\n",
                  bits == 24 ? 32 : 64, e.radius, e.cosine, e.sine);
    assert_true(e.radius < radius && e.cosine < cosine && e.sine < sine);
}

static void pair_errors_are_bounded(void **state)
{
    (void)state;
    random_start("pair_errors_are_bounded");
    check_error(measure_f32, 24, 2.0L, 1.9L, 2.9L);
    check_error(measure_f64, 53, 1.9L, 1.4L, 3.2L);
}

/* ---- Box and Muller: moments of f32 ---- */

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

/* ---- Box and Muller: the smallest and largest words ---- */

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
        cmocka_unit_test(every_f16_round_trips),
        cmocka_unit_test(every_bf16_round_trips),
        cmocka_unit_test(floats_round_to_nearest_even),
        cmocka_unit_test(sticky_float_rounds_like_its_double),
        cmocka_unit_test(out_of_range_floats_round_to_limits),
        cmocka_unit_test(bits_are_comparisons),
        cmocka_unit_test(last_digits_decide),
        cmocka_unit_test(thresholds_are_rounded),
        cmocka_unit_test(ends_are_certain),
        cmocka_unit_test(values_follow_the_definition),
        cmocka_unit_test(equally_many_words_decide_each_value),
        cmocka_unit_test(powers_of_two_take_the_upper_bits),
        cmocka_unit_test(exponential_errors_are_bounded),
        cmocka_unit_test(ends_are_right),
        cmocka_unit_test(values_of_a_draw_have_their_words),
        cmocka_unit_test(floats_of_an_interval_are_equally_likely),
        cmocka_unit_test(grid_is_coarse_only_beyond_its_limits),
        cmocka_unit_test(golden_words_give_golden_bits),
        cmocka_unit_test(pair_errors_are_bounded),
        cmocka_unit_test(f32_moments_are_close),
        cmocka_unit_test(extreme_words_are_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
