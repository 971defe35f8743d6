/* SPDX-License-Identifier: MIT
 *
 * The CPU's loops of `primefold`, forward and inverse, for every width of word and every
 * instruction set. Values of positions and positions of values are compared with the inline C.
 */
#include "support/cmocka_all.h"
#include "support/random.h"

#include "host/host.h"
#include "host/primefold_shape.h"

#include <inttypes.h>
#include <stdio.h>

#define BIT(k) (UINT64_C(1) << (k))
enum { MOST = 3000 }; /* values in one call */

static const struct shuf__simd_ops *simd;

static void check_direction(uint64_t n, uint64_t seed, uint64_t first, uint64_t stride,
                            size_t count, bool inverse)
{
    const shuf_primefold_shape shape = shuf__primefold_shape(n);
    shuf_primefold plain = shuf_primefold_make_of(&shape, shuf_key_of_seed(seed), 5);
    const bool narrow = shuf__primefold_word_bits(&shape) <= 32;
    uint32_t narrow_out[MOST];
    uint64_t wide_out[MOST];
    union shuf__bijection f;
    shuf_primefold_make_inverse(&plain);
    shuf__primefold_make(&f.primefold, &shape, shuf_key_of_seed(seed), 5);
    if (inverse)
        shuf__primefold_invert(&f.primefold);
    if (narrow)
        simd->narrow[SHUF_ALGORITHM_PRIMEFOLD](&f, (uint32_t)first, (uint32_t)stride, narrow_out,
                                               count);
    else
        simd->wide[SHUF_ALGORITHM_PRIMEFOLD](&f, first, stride, wide_out, count);
    for (size_t i = 0; i < count; i++) {
        const uint64_t value = narrow ? narrow_out[i] : wide_out[i], at = first + i * stride;
        const uint64_t expected =
            inverse ? shuf_primefold_inverse(&plain, at) : shuf_primefold_forward(&plain, at);
        if (value != expected)
            fail_msg("%s n %" PRIu64 " seed %" PRIu64 ": %s %" PRIu64 " gives %" PRIu64
                     ", expected %" PRIu64,
                     simd->name, n, seed, inverse ? "value" : "position", at, value, expected);
    }
}

static void check_both_directions(uint64_t n, uint64_t seed, uint64_t first, uint64_t stride,
                                  size_t count)
{
    check_direction(n, seed, first, stride, count, false);
    check_direction(n, seed, first, stride, count, true);
}

/* Checks the first and the last values. */
static void check_ends(uint64_t n, uint64_t seed)
{
    const size_t count = n < MOST ? n : MOST;
    check_both_directions(n, seed, 0, 1, count);
    check_both_directions(n, seed, n - count, 1, count);
}

static void small_sizes_match(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 65540; n += n < 1200 || n > 65500 ? 1 : n < MOST ? 17 : 257)
        check_ends(n, n);
}

static void sizes_near_powers_of_two_match(void **state)
{
    (void)state;
    for (unsigned k = 12; k < 62; k++)
        for (uint64_t n = BIT(k) - 1; n <= BIT(k) + 1; n++)
            check_ends(n, k);
    check_ends(BIT(62), 1);
}

/* Sizes around the largest n of each width of word. For some of them p is the next prime; for
 * others n is rounded up to a whole block first. */
static void sizes_near_word_limits_match(void **state)
{
    (void)state;
    const uint64_t wide = BIT(31) - BIT(25), widest = BIT(50) - BIT(44);
    const uint64_t sizes[] = {32748, 32749, 32750,       65520,  65521,
                              65522, wide,  wide + 1007, widest, widest + 1009};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (uint64_t n = sizes[i] - 2; n <= sizes[i] + 2; n++)
            check_ends(n, n);
}

static void random_slices_match(void **state)
{
    (void)state;
    random_start("random_slices_match");
    for (int i = 0; i < 300; i++) {
        const uint64_t n = random_size(BIT(62)), first = random_below(n);
        const uint64_t stride = random_size(n), most = (n - 1 - first) / stride + 1;
        check_both_directions(n, random_u64(), first, stride,
                              most < MOST ? most : 1 + random_below(MOST));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_sizes_match),
        cmocka_unit_test(sizes_near_powers_of_two_match),
        cmocka_unit_test(sizes_near_word_limits_match),
        cmocka_unit_test(random_slices_match),
    };
    static const char *const names[] = {"scalar", "avx2", "avx512"};
    int failed = 0;
    for (int i = 0; i < 3; i++) {
        struct shuf__error error;
        if (shuf__simd_choose(names[i], &simd, &error))
            printf("%s\n", error.text);
        else
            failed += cmocka_run_group_tests_name(names[i], tests, NULL, NULL);
    }
    return failed != 0;
}
