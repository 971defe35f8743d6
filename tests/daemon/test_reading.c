/* SPDX-License-Identifier: MIT
 *
 * How often the daemon measures memory: some readings in sequence, then a share of the time.
 */
#include "memory/reading.h"

#include "support/cmocka_all.h"

#define SECOND_NS UINT64_C(1000000000)

static struct shuf__reading reading_with(uint64_t debt_ns, uint64_t ago_ns)
{
    return (struct shuf__reading){.debt_ns = debt_ns, .end_ns = uv_hrtime() - ago_ns};
}

static void first_readings_are_allowed(void **state)
{
    const struct shuf__reading never = {0}, some = reading_with(SHUF__READING_BURST_NS, 0);
    (void)state;
    assert_false(shuf__reading_is_fresh(&never));
    assert_false(shuf__reading_is_fresh(&some));
}

/* Readings that took 1 s may be repeated after 200 s. */
static void readings_take_a_share_of_the_time(void **state)
{
    const uint64_t took = SECOND_NS;
    const struct shuf__reading early = reading_with(took, 190 * SECOND_NS),
                               late = reading_with(took, 200 * SECOND_NS);
    (void)state;
    assert_true(shuf__reading_is_fresh(&early));
    assert_false(shuf__reading_is_fresh(&late));
}

/* The time is time of the thread, so the sum has these bounds on any machine. */
static void reading_adds_its_time(void **state)
{
    struct shuf__reading reading = {0};
    (void)state;
    const uint64_t start = shuf__reading_thread_ns();
    shuf__reading_begin(&reading);
    const uint64_t begin = shuf__reading_thread_ns();
    while (shuf__reading_thread_ns() - begin < SHUF__READING_BURST_NS + 1)
        ;
    shuf__reading_end(&reading);
    assert_in_range(reading.debt_ns, SHUF__READING_BURST_NS + 1, shuf__reading_thread_ns() - start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_readings_are_allowed),
        cmocka_unit_test(readings_take_a_share_of_the_time),
        cmocka_unit_test(reading_adds_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
