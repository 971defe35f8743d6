/* SPDX-License-Identifier: MIT
 *
 * `shuf-quality order` passes the orders of libshuf, and fails each order with a fault by the test
 * that should detect it.
 */
#include "order.h"
#include "support/cmocka_all.h"

#include <string.h>

enum { SEED = 7 };

static struct shuf__findings judge(const struct shuf__fault *fault, uint64_t seed, int threads)
{
    struct shuf__findings all = {.alpha = 0.001};
    const struct shuf__order_run run = {
        .fault = fault, .seed = seed, .effort = 1, .threads = threads, .findings = &all};
    for (const struct shuf__order_family *family = shuf__order_families; family->name; family++)
        if (!fault || strcmp(fault->family, family->name) == 0)
            family->judge(&run);
    shuf__findings_decide(&all);
    return all;
}

static void orders_of_libshuf_pass(void **state)
{
    (void)state;
    struct shuf__findings all = judge(NULL, SEED, 2);
    for (size_t i = 0; i < all.count; i++)
        if (all.finding[i].failed)
            fail_msg("seed %d: %s, n = %u, %s: p = %g", SEED, all.finding[i].test, all.finding[i].n,
                     all.finding[i].detail, all.finding[i].p);
    assert_true(all.count > 1000);
    shuf__findings_free(&all);
}

static bool is_detected(const struct shuf__fault *fault, const struct shuf__findings *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->finding[i].failed && strcmp(all->finding[i].test, fault->test) == 0 &&
            strstr(all->finding[i].detail, fault->detail))
            return true;
    return false;
}

static void each_fault_is_detected(void **state)
{
    (void)state;
    for (const struct shuf__fault *fault = shuf__faults; fault->name; fault++) {
        struct shuf__findings all = judge(fault, SEED, 2);
        if (!is_detected(fault, &all))
            fail_msg("seed %d: %s passed %s, %s", SEED, fault->name, fault->test, fault->detail);
        shuf__findings_free(&all);
    }
}

static void findings_do_not_depend_on_threads(void **state)
{
    (void)state;
    struct shuf__findings one = judge(NULL, SEED, 1), three = judge(NULL, SEED, 3);
    assert_int_equal(one.count, three.count);
    for (size_t i = 0; i < one.count; i++)
        assert_true(one.finding[i].p == three.finding[i].p);
    shuf__findings_free(&one);
    shuf__findings_free(&three);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_of_libshuf_pass),
        cmocka_unit_test(each_fault_is_detected),
        cmocka_unit_test(findings_do_not_depend_on_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
