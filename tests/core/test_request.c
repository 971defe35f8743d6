/* SPDX-License-Identifier: MIT
 *
 * The functions that all kinds of requests share: their order, which the cache uses to find equal
 * requests, their shapes and their descriptions.
 */
#include "support/cmocka_all.h"

#include "algorithm.h"
#include "request.h"

#include <stdio.h>
#include <string.h>

static const struct shuf__permutation sample = {.n = 1000,
                                                .seed = 7,
                                                .epoch = 3,
                                                .rows = 2,
                                                .offset = 5,
                                                .count = 9,
                                                .stride = 4,
                                                .algorithm = SHUF_ALGORITHM_PHILOX24};

static struct shuf__request permutation(void)
{
    return (struct shuf__request){
        .kind = SHUF__PERMUTATION, .dtype = SHUF_U64, .permutation = sample};
}

static struct shuf__request stream(void)
{
    return (struct shuf__request){.kind = SHUF__STREAM,
                                  .dtype = SHUF_F32,
                                  .stream = {.seed = 7,
                                             .stream = 1,
                                             .offset = 2,
                                             .count = 10,
                                             .mean = -1.5,
                                             .std = 3,
                                             .distribution = SHUF_DISTRIBUTION_GAUSS}};
}

static struct shuf__request shuffle(void)
{
    return (struct shuf__request){
        .kind = SHUF__SHUFFLE, .shuffle = {.permutation = sample, .record = 16, .inverse = true}};
}

static struct shuf__request look_up(void)
{
    return (struct shuf__request){.kind = SHUF__LOOK_UP, .look_up = {.permutation = sample}};
}

static struct shuf__request buffer(void)
{
    return (struct shuf__request){.kind = SHUF__BUFFER, .buffer = {4096}};
}

static const uint64_t input[] = {400, 600}, output[] = {399, 601};

static struct shuf__request plan(void)
{
    return (struct shuf__request){
        .kind = SHUF__EXCHANGE,
        .dtype = SHUF_U32,
        .plan = {.permutation = sample, .rank = 1, .world = 2, .input = input}};
}

/* ---- Order ----------------------------------------------------------------------- */

static void expect_less(const struct shuf__request *a, const struct shuf__request *b)
{
    assert_true(shuf__request_compare(a, b) < 0);
    assert_true(shuf__request_compare(b, a) > 0);
    assert_int_equal(shuf__request_compare(a, a), 0);
    assert_int_equal(shuf__request_compare(b, b), 0);
}

/* Adds 1 to one field, and expects that the request becomes larger. */
#define EXPECT_FIELD(make, field)                    \
    do {                                             \
        const struct shuf__request small = (make)(); \
        struct shuf__request large = small;          \
        large.field += 1;                            \
        expect_less(&small, &large);                 \
    } while (0)

static void every_field_is_compared(void **state)
{
    (void)state;
    EXPECT_FIELD(permutation, permutation.n);
    EXPECT_FIELD(permutation, permutation.seed);
    EXPECT_FIELD(permutation, permutation.epoch);
    EXPECT_FIELD(permutation, permutation.rows);
    EXPECT_FIELD(permutation, permutation.offset);
    EXPECT_FIELD(permutation, permutation.count);
    EXPECT_FIELD(permutation, permutation.stride);
    EXPECT_FIELD(permutation, permutation.algorithm);
    EXPECT_FIELD(stream, dtype);
    EXPECT_FIELD(stream, stream.seed);
    EXPECT_FIELD(stream, stream.stream);
    EXPECT_FIELD(stream, stream.offset);
    EXPECT_FIELD(stream, stream.count);
    EXPECT_FIELD(stream, stream.mean);
    EXPECT_FIELD(stream, stream.std);
    EXPECT_FIELD(stream, stream.bound);
    EXPECT_FIELD(stream, stream.distribution);
    EXPECT_FIELD(shuffle, shuffle.permutation.seed);
    EXPECT_FIELD(shuffle, shuffle.record);
    EXPECT_FIELD(look_up, look_up.permutation.n);
    EXPECT_FIELD(buffer, buffer.bytes);
    EXPECT_FIELD(plan, plan.permutation.epoch);
    EXPECT_FIELD(plan, plan.rank);
}

static struct shuf__request plan_of(const uint64_t *in, const uint64_t *out)
{
    struct shuf__error error;
    struct shuf__request request = {
        .plan = {.permutation.n = 1000, .rank = 1, .world = 2, .input = in, .output = out}};
    if (shuf__exchange_make(&request, &error))
        fail_msg("%s", error.text);
    return request;
}

/* Sizes by their values, wherever they are, also after the lists are freed. */
static void sizes_are_compared_by_value(void **state)
{
    (void)state;
    const uint64_t same[] = {400, 600};
    const struct shuf__request a = plan_of(input, NULL), b = plan_of(same, NULL),
                               d = plan_of(input, same), e = plan_of(NULL, same);
    struct shuf__request c = plan_of(output, NULL);
    const uint64_t bytes = shuf__request_shape(&c).bytes;
    assert_int_equal(shuf__request_compare(&a, &b), 0);
    assert_int_not_equal(shuf__request_compare(&a, &d), 0);
    assert_int_not_equal(shuf__request_compare(&a, &e), 0);
    assert_int_not_equal(shuf__request_compare(&d, &e), 0);
    assert_true(shuf__request_own(&c));
    assert_true(c.plan.input != output && c.plan.input[1] == 601 && !c.plan.output);
    shuf__request_disown(&c);
    const struct shuf__request again = plan_of(output, NULL);
    assert_int_equal(shuf__request_compare(&c, &again), 0);
    assert_int_not_equal(shuf__request_compare(&c, &a), 0);
    assert_int_equal(shuf__request_shape(&c).bytes, bytes);
}

static void inverses_are_compared(void **state)
{
    (void)state;
    struct shuf__request inverse_shuffle = shuffle(), forward_shuffle = inverse_shuffle,
                         value = look_up(), position = value;
    forward_shuffle.shuffle.inverse = false;
    position.look_up.inverse = true;
    expect_less(&forward_shuffle, &inverse_shuffle);
    expect_less(&value, &position);
}

static void kinds_are_compared(void **state)
{
    (void)state;
    const struct shuf__request all[] = {permutation(), stream(), shuffle(),
                                        look_up(),     buffer(), plan()};
    const size_t count = sizeof all / sizeof *all;
    for (size_t i = 0; i + 1 < count; i++)
        for (size_t j = i + 1; j < count; j++)
            expect_less(&all[i], &all[j]);
}

/* A permutation has the same bits as u64 and as i64. As u32 it has other bits. */
static void signed_and_unsigned_are_equal(void **state)
{
    (void)state;
    struct shuf__request wide = permutation(), same = wide, narrow = wide;
    same.dtype = SHUF_I64;
    narrow.dtype = SHUF_U32;
    assert_int_equal(shuf__request_compare(&wide, &same), 0);
    expect_less(&narrow, &wide);
}

/* ---- Shapes and words ------------------------------------------------------------ */

static void expect_shape(struct shuf__request request, uint64_t rows, uint64_t count,
                         uint64_t width)
{
    const struct shuf__shape shape = shuf__request_shape(&request);
    assert_int_equal(shape.rows, rows);
    assert_int_equal(shape.count, count);
    assert_int_equal(shape.width, width);
    assert_int_equal(shape.bytes, rows * count * width);
}

static void shapes_match(void **state)
{
    (void)state;
    expect_shape(permutation(), 2, 9, 8);
    expect_shape(stream(), 1, 10, 4);
    expect_shape(shuffle(), 1, 1000, 16);
    expect_shape(buffer(), 1, 4096, 1);
    expect_shape(plan_of(input, NULL), 1, 2 + 2 + 600 + 600, 4);
}

static void members_are_selected_by_kind(void **state)
{
    (void)state;
    const struct shuf__request p = permutation(), s = stream(), b = buffer(), l = look_up(),
                               h = shuffle();
    assert_ptr_equal(shuf__request_permutation(&p), &p.permutation);
    assert_ptr_equal(shuf__request_permutation(&h), &h.shuffle.permutation);
    assert_ptr_equal(shuf__request_permutation(&l), &l.look_up.permutation);
    assert_null(shuf__request_permutation(&s));
    assert_null(shuf__request_permutation(&b));
    assert_int_equal(shuf__request_distribution(&s), SHUF_DISTRIBUTION_GAUSS);
    assert_int_equal(shuf__request_distribution(&p), SHUF_DISTRIBUTION_NONE);
}

static void expect_description(struct shuf__request request, const char *name, const char *all,
                               const char *brief)
{
    char text[SHUF__REQUEST_TEXT];
    assert_string_equal(shuf__request_name(&request), name);
    assert_string_equal(shuf__request_describe(&request, true, text), all);
    assert_string_equal(shuf__request_describe(&request, false, text), brief);
}

static void requests_are_described(void **state)
{
    (void)state;
    expect_description(permutation(), "permute",
                       "permute n 1000, philox24, seed 7, epoch 3, 2 x 9 values",
                       "n 1000, philox24");
    expect_description(stream(), "gauss",
                       "gauss, f32, stream 1, seed 7, 10 values from 2, mean -1.5, std 3",
                       "gauss, f32, stream 1");
    struct shuf__request one = stream();
    one.stream.count = 1;
    expect_description(one, "gauss",
                       "gauss, f32, stream 1, seed 7, 1 value from 2, mean -1.5, std 3",
                       "gauss, f32, stream 1");
    expect_description(shuffle(), "shuffle",
                       "inverse shuffle n 1000, records of 16 bytes, philox24, seed 7, epoch 3",
                       "inverse shuffle n 1000, records of 16 bytes");
    expect_description(look_up(), "index", "index n 1000, philox24, seed 7, epoch 3",
                       "index n 1000");
    expect_description(plan(), "exchange",
                       "exchange n 1000, rank 1 of 2, philox24, seed 7, epoch 3",
                       "exchange n 1000, rank 1 of 2");
    expect_description(buffer(), "buffer", "buffer of 4096", "buffer of 4096");
}

/* A description with the longest fields fits. */
static void longest_description_fits(void **state)
{
    (void)state;
    char text[SHUF__REQUEST_TEXT];
    struct shuf__request request = stream();
    request.stream = (struct shuf__stream){.seed = UINT64_MAX,
                                           .stream = UINT64_MAX,
                                           .offset = UINT64_MAX,
                                           .count = UINT64_MAX,
                                           .mean = -1.2345678901234567e-300,
                                           .std = 1.2345678901234567e-300,
                                           .distribution = SHUF_DISTRIBUTION_BOX_MULLER};
    shuf__request_describe(&request, true, text);
    char end[96];
    snprintf(end, sizeof end, ", mean %.17g, std %.17g", request.stream.mean, request.stream.std);
    assert_in_range(strlen(text), strlen(end), SHUF__REQUEST_TEXT - 2);
    assert_string_equal(text + strlen(text) - strlen(end), end);
}

/* ---- Algorithms and types -------------------------------------------------------- */

static void algorithm_names_are_parsed(void **state)
{
    (void)state;
    struct shuf__error error = {0};
    enum shuf_algorithm algorithm = SHUF_ALGORITHM_LCG;
    for (int i = 0; i < SHUF_ALGORITHM_COUNT; i++) {
        const char *name = shuf__algorithm_name((enum shuf_algorithm)i);
        assert_int_equal(shuf__algorithm_parse(name, &algorithm, &error), SHUF_OK);
        assert_int_equal(algorithm, i);
    }
    assert_int_equal(shuf__algorithm_parse("", &algorithm, &error), SHUF_OK);
    assert_int_equal(algorithm, SHUF_ALGORITHM_PRIMEFOLD);
    assert_int_equal(shuf__algorithm_parse(NULL, &algorithm, &error), SHUF_OK);
    assert_int_equal(shuf__algorithm_parse("philox", &algorithm, &error), SHUF_INVALID);
    assert_string_equal(error.text,
                        "algorithm \"philox\": expected primefold, philox24 or lcg; did "
                        "you mean philox24?");
    assert_true(shuf_algorithm_has_random_access(SHUF_ALGORITHM_PRIMEFOLD));
    assert_false(shuf_algorithm_has_random_access(SHUF_ALGORITHM_PHILOX24));
    assert_false(shuf_algorithm_has_random_access(SHUF_ALGORITHM_LCG));
}

static void dtypes_have_names_and_sizes(void **state)
{
    (void)state;
    assert_string_equal(shuf__dtype_name(SHUF_AUTO), "auto");
    assert_string_equal(shuf__dtype_name(SHUF_BF16), "bf16");
    assert_int_equal(shuf__dtype_bytes(SHUF_AUTO), 0);
    assert_int_equal(shuf__dtype_bytes(SHUF_I64), 8);
    for (int i = -1; i <= SHUF__DTYPES; i += SHUF__DTYPES + 1) { /* past both ends */
        assert_null(shuf__dtype_name(i));
        assert_int_equal(shuf__dtype_bytes(i), 0);
        assert_false(shuf__dtype_is_allowed(i, SHUF_DISTRIBUTION_UNIFORM));
    }
    for (int i = 1; i < SHUF__DTYPES; i++)
        assert_int_equal(shuf__dtype_is_allowed(i, SHUF_DISTRIBUTION_BOX_MULLER),
                         shuf__dtype_is_allowed(i, SHUF_DISTRIBUTION_GAUSS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_compared),
        cmocka_unit_test(sizes_are_compared_by_value),
        cmocka_unit_test(inverses_are_compared),
        cmocka_unit_test(kinds_are_compared),
        cmocka_unit_test(signed_and_unsigned_are_equal),
        cmocka_unit_test(shapes_match),
        cmocka_unit_test(members_are_selected_by_kind),
        cmocka_unit_test(requests_are_described),
        cmocka_unit_test(longest_description_fits),
        cmocka_unit_test(algorithm_names_are_parsed),
        cmocka_unit_test(dtypes_have_names_and_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
