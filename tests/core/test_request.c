/* SPDX-License-Identifier: MIT
 *
 * Requests: the functions that all kinds share (their order, which the cache uses to find equal
 * requests, their shapes and their descriptions), and requests for permutations: defaults, ranges,
 * slices, the shards of DistributedSampler as in tests/vectors/shard.txt, and the message of every
 * error.
 */
#include "algorithm.h"
#include "request.h"
#include "result_message.h"
#include "support/cmocka_all.h"
#include "support/golden.h"
#include "support/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- Order ---- */

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

/* ---- Shapes and words ---- */

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

/* ---- Algorithms and types ---- */

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

/* ---- Permutations ---- */

#define BIT(k) (UINT64_C(1) << (k))

static void set_whole(struct shuf__result_message *r, uint64_t n)
{
    shuf__result_message_init(r, SHUF__RESULT__WHAT_PERMUTE);
    r->permutation.n = n;
}

static void set_slice(struct shuf__result_message *r, uint64_t n, uint64_t offset, uint64_t count,
                      uint64_t stride)
{
    set_whole(r, n);
    shuf__result_message_add_view(r, SHUF__PERMUTE__VIEW_SLICE);
    r->slice.offset = offset;
    r->slice.count = count;
    r->slice.stride = stride;
}

static void set_shard(struct shuf__result_message *r, uint64_t n, uint64_t rank, uint64_t world,
                      bool drop_last)
{
    set_whole(r, n);
    shuf__result_message_add_view(r, SHUF__PERMUTE__VIEW_SHARD);
    r->shard.rank = rank;
    r->shard.world = world;
    r->shard.drop_last = drop_last;
}

static struct shuf__request expect_parsed(const struct shuf__result_message *r)
{
    struct shuf__request request;
    struct shuf__error error = {0};
    if (shuf__parse_result(&r->result, &request, &error) != SHUF_OK)
        fail_msg("%s", error.text);
    return request;
}

static void expect_refused(const struct shuf__result_message *r, shuf_status status,
                           const char *text)
{
    struct shuf__request request;
    struct shuf__error error = {0};
    assert_int_equal(shuf__parse_result(&r->result, &request, &error), status);
    assert_int_equal(error.status, status);
    assert_string_equal(error.text, text);
}

static void defaults_are_filled_in(void **state)
{
    (void)state;
    struct shuf__result_message r;
    set_whole(&r, 1000);
    struct shuf__request p = expect_parsed(&r);
    assert_int_equal(p.permutation.n, 1000);
    assert_int_equal(p.permutation.seed, 0);
    assert_int_equal(p.permutation.epoch, 0);
    assert_int_equal(p.permutation.rows, 1);
    assert_int_equal(p.permutation.offset, 0);
    assert_int_equal(p.permutation.count, 1000);
    assert_int_equal(p.permutation.stride, 1);
    assert_int_equal(p.dtype, SHUF__DTYPE__DTYPE_U32);
    assert_int_equal(shuf__request_shape(&p).width, 4);
    assert_int_equal(shuf__request_shape(&p).bytes, 4000);
}

static void every_field_is_parsed(void **state)
{
    (void)state;
    struct shuf__result_message r;
    set_slice(&r, 1000, 3, 2, 996);
    r.permutation.seed = UINT64_MAX;
    r.permutation.epoch = UINT64_MAX - 1;
    r.permute.epochs = 5;
    r.permute.dtype = SHUF__DTYPE__DTYPE_I64;
    struct shuf__request p = expect_parsed(&r);
    assert_int_equal(p.permutation.seed, UINT64_MAX);
    assert_int_equal(p.permutation.epoch, UINT64_MAX - 1);
    assert_int_equal(p.permutation.rows, 5);
    assert_int_equal(p.permutation.offset, 3);
    assert_int_equal(p.permutation.count, 2);
    assert_int_equal(p.permutation.stride, 996);
    assert_int_equal(p.dtype, SHUF__DTYPE__DTYPE_I64);
    assert_int_equal(shuf__request_shape(&p).bytes, 80);
}

/* A single value needs no stride. The daemon replaces the stride by 1, because a large one could
 * overflow. */
static void stride_of_one_value_is_ignored(void **state)
{
    (void)state;
    struct shuf__result_message r;
    set_slice(&r, 1000, 999, 1, UINT64_MAX);
    assert_int_equal(expect_parsed(&r).permutation.stride, 1);
    assert_int_equal(expect_parsed(&r).permutation.count, 1);
}

static void n_is_limited(void **state)
{
    (void)state;
    struct shuf__result_message r;
    set_whole(&r, 1);
    assert_int_equal(expect_parsed(&r).permutation.count, 1);
    set_slice(&r, BIT(62), BIT(62) - 1, 1, 1);
    assert_int_equal(expect_parsed(&r).permutation.offset, BIT(62) - 1);
    set_whole(&r, 0);
    expect_refused(&r, SHUF_INVALID, "n 0: expected 1 to 2^62 (4611686018427387904)");
    set_whole(&r, BIT(62) + 1);
    expect_refused(&r, SHUF_INVALID,
                   "n 4611686018427387905: expected 1 to 2^62 (4611686018427387904)");
    set_whole(&r, UINT64_MAX);
    expect_refused(&r, SHUF_INVALID,
                   "n 18446744073709551615: expected 1 to 2^62 (4611686018427387904)");
}

static void dtype_is_chosen_and_checked(void **state)
{
    (void)state;
    static const struct {
        uint64_t n;
        Shuf__Dtype requested, chosen;
        unsigned width;
    } rows[] = {
        {BIT(32), SHUF__DTYPE__DTYPE_AUTO, SHUF__DTYPE__DTYPE_U32, 4}, /* n - 1 fits */
        {BIT(32) + 1, SHUF__DTYPE__DTYPE_AUTO, SHUF__DTYPE__DTYPE_U64, 8},
        {BIT(32), SHUF__DTYPE__DTYPE_U32, SHUF__DTYPE__DTYPE_U32, 4},
        {10, SHUF__DTYPE__DTYPE_U64, SHUF__DTYPE__DTYPE_U64, 8},
        {10, SHUF__DTYPE__DTYPE_I64, SHUF__DTYPE__DTYPE_I64, 8},
        {BIT(60), SHUF__DTYPE__DTYPE_I64, SHUF__DTYPE__DTYPE_I64, 8},
    };
    struct shuf__result_message r;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        set_slice(&r, rows[i].n, 0, 1, 1);
        r.permute.dtype = rows[i].requested;
        struct shuf__request p = expect_parsed(&r);
        assert_int_equal(p.dtype, rows[i].chosen);
        assert_int_equal(shuf__request_shape(&p).width, rows[i].width);
    }
    r.permute.dtype = SHUF__DTYPE__DTYPE_U32;
    expect_refused(
        &r, SHUF_INVALID,
        "dtype u32: too small for n = 1152921504606846976, expected u64 or i64 above 2^32");
    r.permute.dtype = (Shuf__Dtype)9;
    expect_refused(&r, SHUF_INVALID, "dtype 9: expected u32, u64 or i64");
}

static void slices_are_parsed_and_checked(void **state)
{
    (void)state;
    struct shuf__result_message r;
    set_slice(&r, 1000, 1, 333, 3);
    struct shuf__request p = expect_parsed(&r);
    assert_int_equal(p.permutation.offset, 1);
    assert_int_equal(p.permutation.count, 333);
    assert_int_equal(p.permutation.stride, 3);
    assert_int_equal(shuf__request_shape(&p).bytes, 1332);
    set_slice(&r, 1000, 1, 334, 3);
    expect_refused(&r, SHUF_INVALID,
                   "count 334: expected at most 333 from offset 1 with stride 3 in n = 1000");
    set_slice(&r, 1000, 0, 1001, 1);
    expect_refused(&r, SHUF_INVALID,
                   "count 1001: expected at most 1000 from offset 0 with stride 1 in n = 1000");
    set_slice(&r, 1000, 999, 2, UINT64_MAX);
    expect_refused(
        &r, SHUF_INVALID,
        "count 2: expected at most 1 from offset 999 with stride 18446744073709551615 in "
        "n = 1000");
    set_slice(&r, 1000, 1000, 1, 1);
    expect_refused(&r, SHUF_INVALID, "offset 1000: expected less than n = 1000");
    set_slice(&r, 1000, 0, 0, 1);
    expect_refused(&r, SHUF_INVALID, "count 0: expected at least 1");
    set_slice(&r, 1000, 0, 1, 0);
    expect_refused(&r, SHUF_INVALID, "stride 0: expected at least 1");
}

/* In these slices count * stride overflows, so the check must not multiply. */
static void slices_do_not_overflow(void **state)
{
    (void)state;
    struct shuf__result_message r;
    set_slice(&r, BIT(62), 5, BIT(33), BIT(33));
    expect_refused(
        &r, SHUF_INVALID,
        "count 8589934592: expected at most 536870912 from offset 5 with stride 8589934592 in "
        "n = 4611686018427387904");
    set_slice(&r, BIT(62), 5, UINT64_MAX, UINT64_MAX);
    expect_refused(&r, SHUF_INVALID,
                   "count 18446744073709551615: expected at most 1 from offset 5 with stride "
                   "18446744073709551615 in n = 4611686018427387904");
}

/* One row of shard.txt: n, world, rank, drop_last, count, step, length, positions. */
static void check_shard_row(const char *line)
{
    uint64_t n, world, rank, drop_last, all, step, length, position;
    int used, more;
    assert_int_equal(sscanf(line,
                            "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64
                            "%" SCNu64 "%n",
                            &n, &world, &rank, &drop_last, &all, &step, &length, &used),
                     7);
    struct shuf__result_message r;
    set_shard(&r, n, rank, world, drop_last != 0);
    assert_int_equal(expect_parsed(&r).permutation.count, all);
    r.shard.step = step;
    assert_int_equal(expect_parsed(&r).permutation.count, all - step);
    r.shard.count = length;
    const struct shuf__permutation p = expect_parsed(&r).permutation;
    assert_int_equal(p.count, length ? length : all - step);
    assert_in_range(p.offset, 0, n - 1);
    for (uint64_t i = 0; i < length; i++, used += more) {
        assert_int_equal(sscanf(line + used, "%" SCNu64 "%n", &position, &more), 1);
        assert_int_equal((p.offset + i * p.stride) % n, position);
        if (i + 1 < length) /* only the last value may wrap */
            assert_in_range(p.offset + i * p.stride, 0, n - 1);
    }
    assert_int_equal(line[used], '\0');
}

static void shards_match_distributed_sampler(void **state)
{
    (void)state;
    FILE *table = golden_open("shard.txt");
    unsigned rows = 0;
    for (const char *line; (line = golden_line(table)) != NULL; rows++)
        check_shard_row(line);
    fclose(table);
    assert_in_range(rows, 300, 20000);
}

static void wrong_steps_are_refused(void **state)
{
    (void)state;
    struct shuf__result_message r;
    set_shard(&r, 1000, 3, 8, false);
    r.shard.step = 126;
    expect_refused(
        &r, SHUF_INVALID,
        "step 126: expected at most 125, the length of a shard of n = 1000 with world = 8");
    r.shard.step = 100;
    r.shard.count = 26;
    expect_refused(&r, SHUF_INVALID,
                   "count 26: expected at most 25 from step 100 of the 125 values of a "
                   "shard");
    r.shard.count = UINT64_MAX;
    expect_refused(&r, SHUF_INVALID,
                   "count 18446744073709551615: expected at most 25 from step 100 of "
                   "the 125 values of a shard");
    r.shard.step = 125; /* the end: no value is left, as in [125:] */
    r.shard.count = 0;
    assert_int_equal(expect_parsed(&r).permutation.count, 0);
    r.shard.count = 1;
    expect_refused(&r, SHUF_INVALID,
                   "count 1: expected at most 0 from step 125 of the 125 values of a "
                   "shard");
    set_shard(&r, 3, 7, 8, true); /* a shard without values */
    r.shard.step = 1;
    expect_refused(&r, SHUF_INVALID,
                   "step 1: expected at most 0, the length of a shard of n = 3 with world = 8");
    set_shard(&r, BIT(62), BIT(61) - 1, BIT(61), false);
    r.shard.step = 1;
    const struct shuf__permutation p = expect_parsed(&r).permutation;
    assert_int_equal(p.offset, BIT(62) - 1);
    assert_int_equal(p.count, 1);
    r.shard.step = UINT64_MAX;
    expect_refused(&r, SHUF_INVALID,
                   "step 18446744073709551615: expected at most 2, the length of a shard of n = "
                   "4611686018427387904 with world = 2305843009213693952");
}

/* Without padding each value belongs to one rank. With padding all ranks have the same number of
 * values. */
static void ranks_partition_the_values(void **state)
{
    (void)state;
    random_start("ranks_partition_the_values");
    for (int i = 0; i < 500; i++) {
        uint64_t n = random_size(2000), world = random_size(100), taken = 0;
        unsigned char *seen = calloc(1, n);
        assert_non_null(seen);
        for (uint64_t rank = 0; rank < world; rank++) {
            struct shuf__result_message r;
            set_shard(&r, n, rank, world, true);
            struct shuf__request p = expect_parsed(&r);
            assert_int_equal(p.permutation.count, n / world);
            for (uint64_t k = 0; k < p.permutation.count; k++, taken++)
                assert_int_equal(seen[p.permutation.offset + k * p.permutation.stride]++, 0);
            set_shard(&r, n, rank, world, false);
            assert_int_equal(expect_parsed(&r).permutation.count, (n + world - 1) / world);
        }
        assert_int_equal(taken, n / world * world);
        free(seen);
    }
}

static void wrong_shards_are_refused(void **state)
{
    (void)state;
    struct shuf__result_message r;
    set_shard(&r, 10, 0, 0, false);
    expect_refused(&r, SHUF_INVALID, "world 0: expected 1 to 2^62");
    set_shard(&r, 10, 0, BIT(62) + 1, false);
    expect_refused(&r, SHUF_INVALID, "world 4611686018427387905: expected 1 to 2^62");
    set_shard(&r, 10, 4, 4, false);
    expect_refused(&r, SHUF_INVALID, "rank 4: expected less than world = 4");
    set_shard(&r, BIT(62), BIT(62) - 1, BIT(62), false);
    struct shuf__request p = expect_parsed(&r);
    assert_int_equal(p.permutation.offset, BIT(62) - 1);
    assert_int_equal(p.permutation.count, 1);
}

static void sizes_above_2_63_are_refused(void **state)
{
    (void)state;
    struct shuf__result_message r;
    set_whole(&r, BIT(59)); /* 2^62 bytes: too large for any machine, but a valid size */
    const struct shuf__request large = expect_parsed(&r);
    assert_int_equal(shuf__request_shape(&large).bytes, BIT(62));
    set_whole(&r, BIT(60));
    expect_refused(&r, SHUF_NO_MEMORY,
                   "n 1152921504606846976: 1 x 1152921504606846976 values pass 2^63 bytes, "
                   "expected a smaller slice or fewer epochs");
    set_whole(&r, 1000);
    r.permute.epochs = UINT64_MAX;
    expect_refused(&r, SHUF_NO_MEMORY,
                   "n 1000: 18446744073709551615 x 1000 values pass 2^63 "
                   "bytes, expected a smaller slice or fewer epochs");
    set_whole(&r, BIT(32));
    r.permute.epochs = BIT(32); /* the product is 2^64, which overflows to zero */
    expect_refused(&r, SHUF_NO_MEMORY,
                   "n 4294967296: 4294967296 x 4294967296 values pass 2^63 bytes, "
                   "expected a smaller slice or fewer epochs");
}

/* A batch of rows without values is valid for any number of rows. */
static void empty_shards_are_valid(void **state)
{
    (void)state;
    struct shuf__result_message r;
    set_shard(&r, 3, 7, 8, true);
    r.permute.epochs = UINT64_MAX;
    struct shuf__request p = expect_parsed(&r);
    assert_int_equal(p.permutation.count, 0);
    assert_int_equal(shuf__request_shape(&p).bytes, 0);
    assert_in_range(p.permutation.offset, 0, 2);
}

static void first_wrong_field_is_named(void **state)
{
    (void)state;
    struct shuf__result_message r;
    set_slice(&r, 0, 9, 0, 0);
    r.permute.dtype = (Shuf__Dtype)9;
    expect_refused(&r, SHUF_INVALID, "n 0: expected 1 to 2^62 (4611686018427387904)");
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
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(every_field_is_parsed),
        cmocka_unit_test(n_is_limited),
        cmocka_unit_test(dtype_is_chosen_and_checked),
        cmocka_unit_test(slices_are_parsed_and_checked),
        cmocka_unit_test(slices_do_not_overflow),
        cmocka_unit_test(shards_match_distributed_sampler),
        cmocka_unit_test(ranks_partition_the_values),
        cmocka_unit_test(wrong_shards_are_refused),
        cmocka_unit_test(wrong_steps_are_refused),
        cmocka_unit_test(sizes_above_2_63_are_refused),
        cmocka_unit_test(empty_shards_are_valid),
        cmocka_unit_test(first_wrong_field_is_named),
        cmocka_unit_test(stride_of_one_value_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
