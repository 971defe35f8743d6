/* SPDX-License-Identifier: MIT
 *
 * shuf_host_part(): parts of any size make the values and the fingerprint of the whole.
 */
#include "support/cmocka_all.h"
#include "support/random.h"

#include "shuf.h"

#include <stdlib.h>
#include <string.h>

static void check(shuf_status status)
{
    if (status != SHUF_OK)
        fail_msg("%s: %s", shuf_status_name(status), shuf_message(NULL));
}

static void expect_refusal(shuf_status status, const char *words)
{
    assert_int_equal(status, SHUF_INVALID);
    assert_non_null(strstr(shuf_message(NULL), words));
}

/* All kinds that have parts: slices, a shard whose last value comes from the front, rows, windows,
 * compaction, and types of 2, 4 and 8 bytes. */
static const shuf_request divisible[] = {
    {.permutation = {.n = 100003, .seed = 5}},
    {.permutation = {.n = 90007, .seed = 5, .dtype = SHUF_U64, .epoch = 3}},
    {.permutation =
         {.n = 1000003, .view = SHUF_VIEW_SLICE, .offset = 7, .stride = 13, .count = 5000}},
    {.permutation = {.n = 10001, .seed = 5, .view = SHUF_VIEW_SHARD, .rank = 2, .world = 4}},
    {.permutation = {.n = 1001, .seed = 5, .epoch = 2, .epochs = 7}},
    {.permutation = {.n = 50001, .seed = 5, .chunk = 100, .window = 7, .epochs = 2}},
    {.permutation = {.algorithm = "philox24", .n = 5003, .seed = 5, .epochs = 2}},
    {SHUF_NUMBERS, .numbers = {SHUF_GAUSS, .seed = 5, .offset = 9, .count = 9001, .std = 1}},
    {SHUF_NUMBERS, .numbers = {SHUF_GAUSS, .seed = 5, .count = 9001, .std = 2, .dtype = SHUF_F16}},
    {SHUF_NUMBERS, .numbers = {SHUF_BERNOULLI, .seed = 5, .count = 777, .mean = 0.3}},
};

/* Computes the values in parts of random sizes. Returns the sum of the shares. */
static uint64_t fill_parts(const shuf_request *request, const shuf_shape *shape, uint8_t *values)
{
    const uint64_t all = shape->rows * shape->count;
    uint64_t sum = 0, share, count;
    for (uint64_t first = 0; first < all; first += count) {
        count = 1 + random_below(all / 5);
        count = count < all - first ? count : all - first;
        check(shuf_host_part(request, first, count, 1, values + first * shape->width, &share));
        sum += share;
    }
    return sum;
}

static void parts_make_the_whole(void **state)
{
    (void)state;
    random_start("parts_make_the_whole");
    for (size_t i = 0; i < sizeof divisible / sizeof *divisible; i++) {
        shuf_shape shape;
        uint64_t fingerprint;
        check(shuf_shape_of(&divisible[i], &shape, NULL, 0));
        const uint64_t count = shape.rows * shape.count;
        uint8_t *whole = malloc(shape.bytes), *parts = malloc(shape.bytes);
        assert_true(whole && parts);
        check(shuf_host_fill(&divisible[i], 1, whole, shape.bytes));
        check(shuf_host_fingerprint(whole, (unsigned)shape.width, count, 1, &fingerprint));
        assert_int_equal(fill_parts(&divisible[i], &shape, parts), fingerprint);
        assert_memory_equal(parts, whole, shape.bytes);
        free(whole);
        free(parts);
    }
}

static void parts_outside_are_refused(void **state)
{
    (void)state;
    const shuf_request request = {.permutation = {.n = 8, .epochs = 2}};
    const shuf_request named = {.permutation = {.n = 8, .key = "k"}};
    const shuf_request ranks = {SHUF_RANKS, .ranks = {.n = 8, .world = 2}};
    uint64_t array[16], share = 1;
    expect_refusal(shuf_host_part(&request, 0, 17, 1, array, NULL), "the result has 16 values");
    expect_refusal(shuf_host_part(&request, 17, 0, 1, array, NULL), "the result has 16 values");
    expect_refusal(shuf_host_part(&request, 9, UINT64_MAX - 4, 1, array, NULL), "16 values");
    expect_refusal(shuf_host_part(&named, 0, 1, 1, array, NULL), "key k");
    expect_refusal(shuf_host_part(&ranks, 0, 1, 1, array, NULL), "a plan has no parts");
    expect_refusal(shuf_host_part(&request, 0, 1, 1, (uint8_t *)array + 1, NULL), "multiple of 4");
    check(shuf_host_part(&request, 16, 0, 1, NULL, &share));
    assert_int_equal(share, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_make_the_whole),
        cmocka_unit_test(parts_outside_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
