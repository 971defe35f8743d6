/* SPDX-License-Identifier: MIT
 *
 * The programs that measure: shufctl bench prints its rows, with times that agree with the clock of
 * the test. The load generator of the benchmarks checks every reply, and ends the program after a
 * wrong one.
 */
#include "load.h"
#include "support/cmocka_all.h"
#include "support/shufctl.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void bench_as_json(void **state)
{
    (void)state;
    struct timespec begin, end;
    double sum = 0;
    unsigned measured = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    json_t *object = json_parse(shufctl_succeed(NULL, "bench --n 100000 --json"));
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_int_equal(json_member_integer(object, "n"), 100000);
    const json_t *list = json_member(object, "rows");
    assert_int_equal(json_array_size(list), 7);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        const json_t *seconds = json_object_get(row, "seconds");
        const char *name = json_member_text(row, "name");
        if (!seconds) { /* torch is an optional dependency */
            assert_memory_equal(name, "torch", 5);
            assert_true(*json_member_text(row, "skipped"));
            continue;
        }
        measured++;
        sum += json_number_value(seconds);
        assert_true(json_number_value(seconds) > 0);
        if (!strstr(name, "request"))
            assert_int_equal(json_member_integer(row, "bytes"), 400000);
    }
    assert_true(measured >= 5);
    assert_true(sum < (double)(end.tv_sec - begin.tv_sec) + 1);
    json_decref(object);
}

static void bench_as_text(void **state)
{
    (void)state;
    char *text = shufctl_succeed(NULL, "bench --n 1000");
    assert_non_null(strstr(text, ", n = 1000, best time of each row\n"));
    assert_non_null(strstr(text, "\nmemset, one thread  "));
    assert_non_null(strstr(text, "\nshufd, permutation, u32  "));
    assert_non_null(strstr(text, " values/s"));
    assert_non_null(strstr(text, "\ntorch.randperm, cuda, i32 "));
    free(text);
    shufctl_fail(64, "--n 10: expected", "bench --n 10");
}

/* ---- The load generator ---- */

static const double warm_ns = 1e7, run_ns = 5e7;

static void load_with(enum load_kind kind, bool equal)
{
    for (unsigned connections = 1; connections <= 8; connections *= 8) {
        const struct load load = {
            .kind = kind, .connections = connections, .n = 1000, .equal = equal};
        assert_true(load_rate(&load, shufctl_daemon.socket, warm_ns, run_ns) > 1);
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
    shufctl_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bench_as_json),
        cmocka_unit_test(bench_as_text),
        cmocka_unit_test(leases),
        cmocka_unit_test(equal_leases),
        cmocka_unit_test(values_on_the_socket),
    };
    return cmocka_run_group_tests(tests, shufctl_set_up, shufctl_tear_down);
}
