/* SPDX-License-Identifier: MIT
 *
 * primefold's inline C on its own: the table of single positions, that forward and
 * inverse undo each other and permute, and the prime that both count modulo.
 */
#include "support/cmocka_all.h"
#include "support/golden.h"
#include "support/random.h"

#include "shuf/primefold.h"

#include <string.h>

#define BIT(k) (UINT64_C(1) << (k))

static shuf_primefold make(uint64_t n, uint64_t seed, uint64_t epoch)
{
    shuf_primefold f = shuf_primefold_make(n, seed, epoch);
    shuf_primefold_make_inverse(&f);
    return f;
}

static void single_positions(void **state)
{
    (void)state;
    struct golden_places row;
    unsigned rows = 0;
    FILE *table = golden_open("primefold.txt");
    for (; golden_next_places(table, &row); rows++) {
        shuf_primefold f = make(row.n, row.seed, row.epoch);
        for (unsigned i = 0; i < row.count; i++) {
            assert_int_equal(shuf_primefold_forward(&f, row.position[i]), row.value[i]);
            assert_int_equal(shuf_primefold_inverse(&f, row.value[i]), row.position[i]);
        }
    }
    fclose(table);
    assert_in_range(rows, 300, 10000);
}

static void check_there_and_back(uint64_t n)
{
    shuf_primefold f = make(n, random_u64(), random_u64());
    for (int i = 0; i < 100; i++) {
        const uint64_t x = i == 0 ? 0 : i == 1 ? n - 1 : random_below(n);
        const uint64_t value = shuf_primefold_forward(&f, x),
                       position = shuf_primefold_inverse(&f, x);
        assert_in_range(value, 0, n - 1);
        assert_in_range(position, 0, n - 1);
        assert_int_equal(shuf_primefold_inverse(&f, value), x);
        assert_int_equal(shuf_primefold_forward(&f, position), x);
    }
}

static void there_and_back(void **state)
{
    (void)state;
    random_start("there_and_back");
    for (unsigned k = 1; k <= 62; k++) {
        check_there_and_back(BIT(k) - 1);
        check_there_and_back(BIT(k));
        if (k < 62)
            check_there_and_back(BIT(k) + 1);
    }
    for (int i = 0; i < 200; i++)
        check_there_and_back(random_size(BIT(62)));
}

static void small_ones_are_permutations(void **state)
{
    (void)state;
    random_start("small_ones_are_permutations");
    for (uint64_t n = 1; n <= 300; n++)
        for (int round = 0; round < 8; round++) {
            unsigned char seen[300] = {0};
            shuf_primefold f = make(n, random_u64(), random_u64());
            for (uint64_t i = 0; i < n; i++) {
                const uint64_t value = shuf_primefold_forward(&f, i);
                assert_in_range(value, 0, n - 1);
                assert_int_equal(seen[value]++, 0);
                assert_int_equal(shuf_primefold_inverse(&f, value), i);
            }
        }
}

/* Of neighbouring n, too, and where they have the prime in common. */
static void keys_are_unrelated(void **state)
{
    (void)state;
    static const uint64_t key[][3] = {
        {1000, 7, 0}, {1001, 7, 0}, {1000, 8, 0}, {1000, 7, 1}, {1000, 7, BIT(32)}};
    enum { KEYS = sizeof key / sizeof key[0], VALUES = 1000 };
    uint16_t value[KEYS][VALUES];
    for (int k = 0; k < KEYS; k++) {
        shuf_primefold f = shuf_primefold_make(key[k][0], key[k][1], key[k][2]);
        for (unsigned i = 0; i < VALUES; i++)
            value[k][i] = (uint16_t)shuf_primefold_forward(&f, i);
    }
    for (int a = 0; a < KEYS; a++)
        for (int b = 0; b < a; b++) {
            int same = 0;
            for (int i = 0; i < VALUES; i++)
                same += value[a][i] == value[b][i];
            assert_in_range(same, 0, 20); /* one is expected; past 20 is past chance */
        }
}

/* ---- The prime -------------------------------------------------------------- */

static bool has_no_divisor(uint64_t p)
{
    for (uint64_t d = 2; d * d <= p; d++)
        if (p % d == 0)
            return false;
    return p > 1;
}

static void primes_by_trial_division(void **state)
{
    (void)state;
    random_start("primes_by_trial_division");
    for (uint64_t p = 0; p < 100000; p++)
        assert_int_equal(shuf_is_prime(p), has_no_divisor(p));
    for (int i = 0; i < 1000; i++) {
        const uint64_t p = random_below(BIT(34)) | 1;
        assert_int_equal(shuf_is_prime(p), has_no_divisor(p));
    }
}

/* Strong pseudoprimes to the first bases are those of Jaeschke: "On strong pseudoprimes to
 * several bases" (Math. Comp. 61, 1993); the squares are Wieferich's. */
static void primes_that_are_known(void **state)
{
    (void)state;
    static const uint64_t primes[] = {BIT(31) - 1,  BIT(32) + 15,  BIT(61) - 1,
                                      BIT(62) - 57, BIT(62) + 135, UINT64_C(18446744073709551557)};
    static const uint64_t composites[] = {561,
                                          41041,
                                          825265,
                                          2047,
                                          1373653,
                                          25326001,
                                          3215031751,
                                          UINT64_C(2152302898747),
                                          UINT64_C(3474749660383),
                                          UINT64_C(341550071728321),
                                          UINT64_C(3825123056546413051),
                                          1093 * 1093,
                                          3511 * 3511,
                                          (BIT(31) - 1) * (BIT(31) - 1),
                                          UINT64_C(4294967291) * UINT64_C(4294967291),
                                          BIT(62) + 1,
                                          UINT64_MAX};
    for (size_t i = 0; i < sizeof primes / sizeof primes[0]; i++)
        assert_true(shuf_is_prime(primes[i]));
    for (size_t i = 0; i < sizeof composites / sizeof composites[0]; i++)
        assert_false(shuf_is_prime(composites[i]));
}

static void nearest_prime(void **state)
{
    (void)state;
    for (uint64_t n = 1, p = 2; n < 20000; n++) {
        if (p < n)
            for (p = n; !has_no_divisor(p);)
                p++;
        assert_int_equal(shuf_prime_from(n), p);
    }
    assert_int_equal(shuf_prime_from(BIT(32)), BIT(32) + 15);
    assert_int_equal(shuf_prime_from(BIT(62)), BIT(62) + 135);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_positions),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(small_ones_are_permutations),
        cmocka_unit_test(keys_are_unrelated),
        cmocka_unit_test(primes_by_trial_division),
        cmocka_unit_test(primes_that_are_known),
        cmocka_unit_test(nearest_prime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
