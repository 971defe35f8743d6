/* SPDX-License-Identifier: MIT
 *
 * Requests for the plan of an exchange, of both sides or one-sided: the parts of the ranks, the
 * size and the type of the result, the order of requests, and messages that are refused.
 */
#include "support/cmocka_all.h"

#include "result_message.h"

#include <string.h>

#define SMALL_MOST UINT32_MAX
#define UNIT UINT64_C(65536)
#define RANK_MOST (UINT64_C(1) << 32) /* records of a rank in a one-sided plan */

static struct shuf__result_message message(uint64_t n, uint64_t rank, uint64_t world)
{
    struct shuf__result_message m;
    shuf__result_message_init(&m, SHUF__RESULT__WHAT_EXCHANGE);
    m.permutation.n = n;
    m.exchange.rank = rank;
    m.exchange.world = world;
    return m;
}

static shuf_status parse_message(const struct shuf__result_message *m,
                                 struct shuf__request *request, struct shuf__error *error)
{
    struct shuf__result_message linked = *m;
    return shuf__parse_result(shuf__result_message_link(&linked), request, error);
}

static struct shuf__request parse(const struct shuf__result_message *m)
{
    struct shuf__request request;
    struct shuf__error error;
    if (parse_message(m, &request, &error))
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
    struct shuf__result_message m = message(11, 3, 4);
    struct shuf__request r = parse(&m);
    expect_part(&r.plan, 0, false, 0, 3);
    expect_part(&r.plan, 2, true, 6, 3);
    expect_part(&r.plan, 3, false, 9, 2);
    assert_int_equal(shuf__request_shape(&r).count, 2 * 4 + 2 + 2);
    m = message(10, 1, 3);
    m.exchange.input = input;
    m.exchange.n_input = 3;
    r = parse(&m);
    expect_part(&r.plan, 2, false, 7, 3);
    expect_part(&r.plan, 2, true, 7, 3); /* as the input */
    m.exchange.output = output;
    m.exchange.n_output = 3;
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
    struct shuf__result_message m = message(n, 0, 2);
    m.exchange.input = sizes;
    m.exchange.n_input = 2;
    assert_int_equal(parse(&m).dtype, SHUF_U32);
    m.exchange.output = larger;
    m.exchange.n_output = 2;
    assert_int_equal(parse(&m).dtype, SHUF_U64);
    m.exchange.rank = 1;
    assert_int_equal(parse(&m).dtype, SHUF_U32);
    m = message(n, 0, 1);
    assert_int_equal(parse(&m).dtype, SHUF_U64);
}

static void expect_refused(const struct shuf__result_message *m, const char *words)
{
    struct shuf__request request;
    struct shuf__error error;
    assert_int_equal(parse_message(m, &request, &error), SHUF_INVALID);
    if (!strstr(error.text, words))
        fail_msg("%s: expected %s", error.text, words);
}

static void refused(void **state)
{
    (void)state;
    uint64_t sizes[] = {5, 4, 1}, wraps[] = {11, UINT64_MAX, 0};
    struct shuf__result_message m = message(10, 0, 3);
    m.exchange.input = sizes;
    m.exchange.n_input = 2;
    expect_refused(&m, "input: 2 sizes, expected world = 3, or none");
    m.exchange.n_input = 3;
    m.exchange.output = sizes;
    m.exchange.n_output = 1;
    expect_refused(&m, "output: 1 size, expected world = 3, or none");
    m.exchange.output = wraps; /* their sum mod 2^64 is n */
    m.exchange.n_output = 3;
    expect_refused(&m, "output[0] 11: expected at most 10, the rest of n = 10");
    m = message(10, 0, SHUF__RANKS_EQUAL + 1);
    expect_refused(&m, "world 1048577: expected 1 to 1048576");
    m = message(SHUF__N_MAX + 1, 0, 1);
    expect_refused(&m, "n 4611686018427387905: expected 1 to 2^62");
    m = message(10, 0, 1);
    m.permutation.algorithm = (char *)(uintptr_t) "lcg";
    expect_refused(&m, "algorithm lcg: expected primefold, which computes any position by itself");
    m = message(10, 0, 1);
    m.permutation.key = (char *)(uintptr_t) "training";
    m.permutation.seed = 7;
    expect_refused(&m, "seed 7: expected 0 with key training");
}

/* ---- One-sided plans ---- */

static struct shuf__result_message one_sided(uint64_t n, uint64_t rank, uint64_t world,
                                             uint64_t part)
{
    struct shuf__result_message m = message(n, rank, world);
    m.exchange.part = part;
    return m;
}

/* For each part the begins of its windows and its end, then two numbers for each place. */
static void expect_numbers(const struct shuf__result_message *m, uint64_t parts, uint64_t windows,
                           uint64_t places)
{
    const struct shuf__request r = parse(m);
    const struct shuf__shape shape = shuf__request_shape(&r);
    assert_int_equal(r.dtype, SHUF_U32);
    assert_int_equal(shuf__plan_parts(&r.plan), parts);
    assert_int_equal(shuf__plan_windows(&r.plan).count, windows);
    assert_int_equal(shape.rows, 1);
    assert_int_equal(shape.count, parts * (windows + 1) + 2 * places);
    assert_int_equal(shape.bytes, 4 * shape.count);
}

static void one_sided_sizes(void **state)
{
    (void)state;
    uint64_t input[] = {(1 << 21) + 1, 0, 5 << 21, 3 * UNIT, 1}, output[5] = {0, 0, 0, UNIT};
    struct shuf__result_message m = one_sided(10, 0, 1, UNIT);
    expect_numbers(&m, 1, 1, 10);
    m = one_sided(10, 63, 64, UNIT); /* no place, and one part */
    expect_numbers(&m, 1, 10, 0);
    m = one_sided(2 * UNIT, 0, 1, UNIT);
    expect_numbers(&m, 2, 1, 2 * UNIT);
    m.permutation.n++;
    expect_numbers(&m, 3, 1, 2 * UNIT + 1);
    m = one_sided((6 << 21) + 3 * UNIT + 2, 3, 5, UNIT);
    m.exchange.input = input;
    m.exchange.n_input = 5;
    expect_numbers(&m, 3, 2 + 0 + 5 + 1 + 1, 3 * UNIT); /* as the input */
    output[0] = m.permutation.n - UNIT;
    m.exchange.output = output;
    m.exchange.n_output = 5;
    expect_numbers(&m, 1, 9, UNIT);
    m.exchange.rank = 1;
    expect_numbers(&m, 1, 9, 0);
}

/* The largest plans: a rank takes its records from all ranks, or it gets all records. */
static void largest_one_sided(void **state)
{
    (void)state;
    uint64_t input[64], output[64] = {UINT64_C(1) << 38};
    struct shuf__result_message m = one_sided(UINT64_C(1) << 38, 63, 64, UINT64_C(1) << 31);
    expect_numbers(&m, 2, 256, RANK_MOST);
    m.exchange.part = UNIT;
    expect_numbers(&m, 1 << 16, 256, RANK_MOST);
    m.exchange.output = output;
    m.exchange.n_output = 64;
    expect_numbers(&m, 1, 256, 0);
    m.exchange.rank = 0;
    expect_numbers(&m, 1 << 22, 256, UINT64_C(1) << 38);
    for (int r = 0; r < 64; r++)
        input[r] = RANK_MOST - (uint64_t)r;
    m.permutation.n = output[0] -= 63 * 64 / 2;
    m.exchange.input = input;
    m.exchange.n_input = 64;
    expect_numbers(&m, 1 << 22, 256, m.permutation.n);
}

static void expect_part_refused(uint64_t part, const char *words)
{
    const struct shuf__result_message m = one_sided(10, 0, 1, part);
    expect_refused(&m, words);
}

static void one_sided_refused(void **state)
{
    (void)state;
    uint64_t input[] = {3, RANK_MOST + 1, 0}, wraps[] = {11, UINT64_MAX, 0};
    expect_part_refused(1, "part 1: expected a multiple of 65536 up to 2^31, or 0 for a plan of "
                           "both sides");
    expect_part_refused(UNIT + 1, "part 65537: expected a multiple of 65536 up to 2^31");
    expect_part_refused((UINT64_C(1) << 31) + UNIT, "part 2147549184: expected a multiple of");
    expect_part_refused(UINT64_C(1) << 63, "part 9223372036854775808: expected a multiple of");
    expect_part_refused(UINT64_MAX, "part 18446744073709551615: expected a multiple of");
    struct shuf__result_message m = one_sided(10, 0, 65, UNIT);
    expect_refused(&m, "world 65: expected at most 64 for a one-sided plan");
    m.exchange.world = 0;
    expect_refused(&m, "world 0: expected 1 to 1048576");
    m = one_sided(10, 64, 64, UNIT);
    expect_refused(&m, "rank 64: expected less than world = 64");
    m = one_sided((UINT64_C(1) << 38) + 1, 63, 64, UNIT);
    expect_refused(&m, "input of rank 0, 4294967297 records: expected at most 2^32 for a "
                       "one-sided plan");
    m = one_sided(SHUF__N_MAX, 0, 1, UNIT);
    expect_refused(&m, "input of rank 0, 4611686018427387904 records: expected at most 2^32");
    m = one_sided(RANK_MOST + 4, 0, 3, UNIT);
    m.exchange.input = input;
    m.exchange.n_input = 3;
    expect_refused(&m, "input of rank 1, 4294967297 records: expected at most 2^32");
    m = one_sided(10, 0, 3, UNIT);
    m.exchange.input = wraps; /* their sum mod 2^64 is n */
    m.exchange.n_input = 3;
    expect_refused(&m, "input[0] 11: expected at most 10, the rest of n = 10");
}

/* A result is shared only with requests for the same part. */
static void order(void **state)
{
    (void)state;
    const uint64_t sizes[] = {0, UNIT, 2 * UNIT, UINT64_C(1) << 31};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            const struct shuf__result_message m = one_sided(10, 0, 1, sizes[i]),
                                              o = one_sided(10, 0, 1, sizes[k]);
            const struct shuf__request a = parse(&m), b = parse(&o);
            assert_int_equal(shuf__request_compare(&a, &b), (i > k) - (i < k));
        }
}

static void expect_text(const struct shuf__result_message *m, bool all, const char *expected)
{
    char text[SHUF__REQUEST_TEXT];
    const struct shuf__request r = parse(m);
    assert_string_equal(shuf__request_describe(&r, all, text), expected);
}

static void texts(void **state)
{
    (void)state;
    struct shuf__result_message m = one_sided(1000, 2, 4, 0);
    m.permutation.seed = 7;
    expect_text(&m, false, "exchange n 1000, rank 2 of 4");
    m.exchange.part = 2 * UNIT;
    expect_text(&m, false, "exchange n 1000, rank 2 of 4, one-sided");
    m.exchange.inverse = true;
    expect_text(&m, true,
                "exchange n 1000, rank 2 of 4, inverse, one-sided, primefold, seed 7, "
                "epoch 0, parts of 131072");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts),
        cmocka_unit_test(types),
        cmocka_unit_test(refused),
        cmocka_unit_test(one_sided_sizes),
        cmocka_unit_test(largest_one_sided),
        cmocka_unit_test(one_sided_refused),
        cmocka_unit_test(order),
        cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
