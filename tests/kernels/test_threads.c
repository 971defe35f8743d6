/* SPDX-License-Identifier: MIT
 *
 * The threads of OpenMP exist before the first computation, because OpenMP ends the process if it
 * cannot start one of them then.
 */
#include "host/threads.h"

#include "support/cmocka_all.h"
#include "support/descriptors.h"

static void team_is_started(void **state)
{
    enum { THREADS = 5, LATER = 3 };
    struct shuf__error error;
    const int before = count_entries("/proc/self/task");
    (void)state;
    assert_int_equal(shuf__threads_start(THREADS, LATER, &error), SHUF_OK);
    assert_true(count_entries("/proc/self/task") >=
                before + THREADS - 1); /* a sanitizer has more */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(team_is_started)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
