/* SPDX-License-Identifier: MIT
 *
 * Requests for the plan of an exchange: the parts of the ranks, the type of the numbers, and
 * messages that are refused.
 */
#include "support/cmocka_all.h"

#include "parse.h"

#include <string.h>

#define SMALL_MOST UINT32_MAX

static Shuf__Exchange message(uint64_t n, uint64_t rank, uint64_t world)
{
    Shuf__Exchange m = SHUF__EXCHANGE__INIT;
    m.n = n;
    m.rank = rank;
    m.world = world;
    return m;
}

static struct shuf__request parse(const Shuf__Exchange *m)
{
    struct shuf__request request;
    struct shuf__error error;
    if (shuf__parse_exchange(m, &request, &error))
        fail_msg("%s", error.text);
    return request;
}

static void expect_part(const struct shuf__plan *plan, uint64_t rank, bool output, uint64_t first,
                        uint64_t count)
{
    const struct shuf__range part = shuf__plan_part(plan, rank, output);
    assert_int_equal(part.first, first);
    assert_int_equal(part.count, count);
}

static void parts(void **state)
{
    (void)state;
    uint64_t input[] = {0, 7, 3}, output[] = {10, 0, 0};
    Shuf__Exchange m = message(11, 3, 4);
    struct shuf__request r = parse(&m);
    expect_part(&r.plan, 0, false, 0, 3);
    expect_part(&r.plan, 2, true, 6, 3);
    expect_part(&r.plan, 3, false, 9, 2);
    assert_int_equal(shuf__request_shape(&r).count, 2 * 4 + 2 + 2);
    m = message(10, 1, 3);
    m.input = input;
    m.n_input = 3;
    r = parse(&m);
    expect_part(&r.plan, 2, false, 7, 3);
    expect_part(&r.plan, 2, true, 7, 3); /* as the input */
    m.output = output;
    m.n_output = 3;
    r = parse(&m);
    expect_part(&r.plan, 1, true, 10, 0);
    assert_int_equal(shuf__request_shape(&r).count, 2 * 3 + 7 + 0);
    m = message(2, 2, 3); /* more ranks than records */
    r = parse(&m);
    expect_part(&r.plan, 2, false, 2, 0);
    m = message(SHUF__N_MAX, SHUF__RANKS_EQUAL - 1, SHUF__RANKS_EQUAL);
    r = parse(&m);
    expect_part(&r.plan, SHUF__RANKS_EQUAL - 1, false, SHUF__N_MAX - (SHUF__N_MAX >> 20),
                SHUF__N_MAX >> 20);
}

/* u32 as long as no number and no count of the rank needs more. */
static void types(void **state)
{
    (void)state;
    const uint64_t n = (uint64_t)SMALL_MOST + 100;
    uint64_t sizes[] = {SMALL_MOST, 100}, larger[] = {(uint64_t)SMALL_MOST + 1, 99};
    Shuf__Exchange m = message(n, 0, 2);
    m.input = sizes;
    m.n_input = 2;
    assert_int_equal(parse(&m).dtype, SHUF_U32);
    m.output = larger;
    m.n_output = 2;
    assert_int_equal(parse(&m).dtype, SHUF_U64);
    m.rank = 1;
    assert_int_equal(parse(&m).dtype, SHUF_U32);
    m = message(n, 0, 1);
    assert_int_equal(parse(&m).dtype, SHUF_U64);
}

static void expect_refused(const Shuf__Exchange *m, const char *words)
{
    struct shuf__request request;
    struct shuf__error error;
    assert_int_equal(shuf__parse_exchange(m, &request, &error), SHUF_INVALID);
    if (!strstr(error.text, words))
        fail_msg("%s: expected %s", error.text, words);
}

static void refused(void **state)
{
    (void)state;
    uint64_t sizes[] = {5, 4, 1}, wraps[] = {11, UINT64_MAX, 0};
    Shuf__Exchange m = message(10, 0, 3);
    m.input = sizes;
    m.n_input = 2;
    expect_refused(&m, "input: 2 sizes, expected world = 3, or none");
    m.n_input = 3;
    m.output = sizes;
    m.n_output = 1;
    expect_refused(&m, "output: 1 size, expected world = 3, or none");
    m.output = wraps; /* their sum mod 2^64 is n */
    m.n_output = 3;
    expect_refused(&m, "output[0] 11: expected at most 10, the rest of n = 10");
    m = message(10, 0, SHUF__RANKS_EQUAL + 1);
    expect_refused(&m, "world 1048577: expected 1 to 1048576");
    m = message(SHUF__N_MAX + 1, 0, 1);
    expect_refused(&m, "n 4611686018427387905: expected 1 to 2^62");
    m = message(10, 0, 1);
    m.algorithm = (char *)(uintptr_t) "lcg";
    expect_refused(&m, "algorithm lcg: expected primefold, which computes any position by itself");
    m = message(10, 0, 1);
    m.key = (char *)(uintptr_t) "training";
    m.seed = 7;
    expect_refused(&m, "seed 7: expected 0 with key training");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts),
        cmocka_unit_test(types),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
