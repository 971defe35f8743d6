/* SPDX-License-Identifier: MIT
 *
 * The table that finds leases by number, compared with a plain array of all numbers.
 */
#include "cache/lease.h"

#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NUMBERS = 20000, STEPS = 60000 };

/* Makes a unique address for a number, because the table never reads a lease. */
static struct shuf__lease *lease_of(uint64_t number)
{
    return (struct shuf__lease *)(uintptr_t)(16 * number);
}

static void empty_table_has_no_leases(void **state)
{
    struct shuf__lease_table table = {0};
    (void)state;
    assert_null(shuf__lease_table_find(&table, 0));
    assert_null(shuf__lease_table_find(&table, 1));
    assert_int_equal(shuf__lease_table_above(&table, 0), 0);
    shuf__lease_table_free(&table);
}

/* The expected answer: the first lease above the number. */
static struct shuf__lease *expected_above(const bool *live, uint64_t last, uint64_t number)
{
    for (uint64_t i = number + 1; i <= last; i++)
        if (live[i])
            return lease_of(i);
    return NULL;
}

static struct shuf__lease *first_above(const struct shuf__lease_table *table, uint64_t number)
{
    for (size_t i = shuf__lease_table_above(table, number); i < table->used; i++)
        if (table->slots[i].lease)
            return table->slots[i].lease;
    return NULL;
}

static void random_adds_and_removes_match(void **state)
{
    static bool live[NUMBERS + 1];
    struct shuf__lease_table table = {0};
    uint64_t last = 0, count = 0;
    unsigned seed = (unsigned)time(NULL);
    (void)state;
    printf("seed %u\n", seed);
    for (int step = 0; step < STEPS; step++) {
        const uint64_t number = 1 + (uint64_t)rand_r(&seed) % (last + 1);
        const bool grows = step / 10000 % 2 == 0; /* alternately, the table grows and shrinks */
        if (last < NUMBERS && rand_r(&seed) % 4 < (grows ? 3 : 1)) {
            last += 1 + (uint64_t)(rand_r(&seed) % 3 == 0 && last + 1 < NUMBERS);
            assert_true(shuf__lease_table_add(&table, last, lease_of(last)));
            live[last] = true;
            count++;
        } else if (number <= last && live[number]) {
            shuf__lease_table_remove(&table, number);
            live[number] = false;
            count--;
        }
        assert_int_equal(table.count, count);
        assert_true(table.used < 64 || table.used <= 2 * count + 1);
        assert_ptr_equal(shuf__lease_table_find(&table, number),
                         number <= last && live[number] ? lease_of(number) : NULL);
        assert_ptr_equal(first_above(&table, number), expected_above(live, last, number));
    }
    shuf__lease_table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_table_has_no_leases),
        cmocka_unit_test(random_adds_and_removes_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
