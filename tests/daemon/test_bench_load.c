/* SPDX-License-Identifier: MIT
 *
 * The load generator of the benchmarks, against a real daemon. It checks every reply, and ends the
 * program after a wrong one.
 */
#include "load.h"
#include "support/cmocka_all.h"
#include "support/harness.h"

#include <stddef.h>

static const double warm_ns = 1e7, run_ns = 5e7;

static void load_with(enum load_kind kind, bool equal)
{
    for (unsigned connections = 1; connections <= 8; connections *= 8) {
        const struct load load = {
            .kind = kind, .connections = connections, .n = 1000, .equal = equal};
        assert_true(load_rate(&load, harness_shared.socket, warm_ns, run_ns) > 1);
    }
}

static void leases(void **state)
{
    (void)state;
    load_with(LOAD_MEMFD, false);
}

static void equal_leases(void **state)
{
    (void)state;
    load_with(LOAD_MEMFD, true);
}

static void values_on_the_socket(void **state)
{
    (void)state;
    load_with(LOAD_INLINE, false);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leases),
        cmocka_unit_test(equal_leases),
        cmocka_unit_test(values_on_the_socket),
    };
    harness_backend = argc > 1 ? argv[1] : "cpu";
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
