/* SPDX-License-Identifier: MIT
 *
 * Integer streams: values by the definition, and how many words decide each value.
 */
#include "support/cmocka_all.h"
#include "support/random.h"

#include "shuf/integers.h"

#include <stddef.h>

typedef unsigned __int128 wide;

/* A number of any size from 1 to 2^bits, or 2^64 - 1. */
static uint64_t random_bound(unsigned bits)
{
    const uint64_t bound = 1 + (random_u64() >> (64 - bits) >> random_below(bits));
    return bound == 0 ? UINT64_MAX : bound;
}

/* Value i by the definition, with words of 32 or 64 bits. */
static uint64_t value_of(const shuf_integers *s, unsigned bits, uint64_t i)
{
    const wide words = (wide)1 << bits;
    for (uint32_t attempt = 0;; attempt++) {
        shuf_stream stream = s->words;
        stream.high[0] ^= attempt;
        const uint64_t each = 128 / bits, number = i % each;
        const shuf_philox4x32 draw = shuf_stream_words(&stream, i / each, 10);
        const wide word = bits == 32
                              ? draw.word[number]
                              : (wide)draw.word[2 * number + 1] << 32 | draw.word[2 * number];
        const wide product = word * s->bound;
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
        assert_int_equal(shuf_integers_u32(&narrow, i), value_of(&narrow, 32, i));
        assert_int_equal(shuf_integers_u64(&any, i), value_of(&any, 64, i));
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
    const wide words = (wide)1 << bits;
    const wide first = (value * words + bound - 1) / bound,
               end = ((value + (wide)1) * words + bound - 1) / bound;
    wide deciding = end - first - !decides(&s, bits, (uint64_t)first, value);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_follow_the_definition),
        cmocka_unit_test(equally_many_words_decide_each_value),
        cmocka_unit_test(powers_of_two_take_the_upper_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
