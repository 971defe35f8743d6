/* SPDX-License-Identifier: MIT
 *
 * Requests for streams and for the plan of an exchange, of both sides or one-sided: the defaults,
 * both ends of the range of each field, the parts of the ranks, the size and the type of the
 * result, and the message of every error.
 */
#include "result_message.h"
#include "support/cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Streams ---- */

#define BIT(k) (UINT64_C(1) << (k))

static struct shuf__result_message gauss(uint64_t count)
{
    struct shuf__result_message request;
    shuf__result_message_init(&request, SHUF__RESULT__WHAT_STREAM);
    request.stream.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS;
    request.stream.count = count;
    request.stream.std = 1;
    return request;
}

static struct shuf__result_message uniform(uint64_t count)
{
    struct shuf__result_message request;
    shuf__result_message_init(&request, SHUF__RESULT__WHAT_STREAM);
    request.stream.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_UNIFORM;
    request.stream.count = count;
    return request;
}

static shuf_status parse_message(const struct shuf__result_message *m,
                                 struct shuf__request *request, struct shuf__error *error)
{
    struct shuf__result_message linked = *m;
    return shuf__parse_result(shuf__result_message_link(&linked), request, error);
}

static struct shuf__request expect_parsed(const struct shuf__result_message *request)
{
    struct shuf__request parsed;
    struct shuf__error error = {0};
    if (parse_message(request, &parsed, &error) != SHUF_OK)
        fail_msg("%s", error.text);
    return parsed;
}

static struct shuf__shape parsed_shape(const struct shuf__result_message *request)
{
    const struct shuf__request parsed = expect_parsed(request);
    return shuf__request_shape(&parsed);
}

static void expect_refused(const struct shuf__result_message *request, shuf_status status,
                           const char *text)
{
    struct shuf__request parsed;
    struct shuf__error error = {0};
    assert_int_equal(parse_message(request, &parsed, &error), status);
    assert_int_equal(error.status, status);
    assert_string_equal(error.text, text);
}

static void defaults_are_filled_in(void **state)
{
    (void)state;
    struct shuf__result_message request = gauss(10);
    request.stream.seed = UINT64_MAX;
    request.stream.stream = UINT64_MAX - 1;
    request.stream.offset = 3;
    request.stream.mean = -0.5;
    struct shuf__request parsed = expect_parsed(&request);
    assert_int_equal(parsed.stream.distribution, SHUF_DISTRIBUTION_GAUSS);
    assert_int_equal(parsed.dtype, SHUF__DTYPE__DTYPE_F64);
    assert_true(parsed.stream.seed == UINT64_MAX && parsed.stream.stream == UINT64_MAX - 1);
    assert_true(parsed.stream.offset == 3 && parsed.stream.count == 10);
    assert_true(parsed.stream.mean == -0.5 && parsed.stream.std == 1);
    assert_true(shuf__request_shape(&parsed).width == 8 &&
                shuf__request_shape(&parsed).bytes == 80);
    request = uniform(10);
    parsed = expect_parsed(&request);
    assert_int_equal(parsed.stream.distribution, SHUF_DISTRIBUTION_UNIFORM);
    assert_int_equal(parsed.dtype, SHUF__DTYPE__DTYPE_F64);
    assert_true(parsed.stream.mean == 0 && parsed.stream.std == 0);
}

static void distributions_are_checked(void **state)
{
    (void)state;
    struct shuf__result_message request = gauss(10);
    request.stream.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_NONE;
    expect_refused(&request, SHUF_INVALID,
                   "distribution 0: expected one of 1 (gauss), 2 (uniform), "
                   "4 (exponential), 5 (bernoulli), 6 (integers)");
    request.stream.distribution = (Shuf__Distribution)3;
    expect_refused(&request, SHUF_INVALID,
                   "distribution 3: expected one of 1 (gauss), 2 (uniform), "
                   "4 (exponential), 5 (bernoulli), 6 (integers)");
    request.stream.distribution = (Shuf__Distribution)-1;
    expect_refused(&request, SHUF_INVALID,
                   "distribution -1: expected one of 1 (gauss), 2 (uniform), "
                   "4 (exponential), 5 (bernoulli), 6 (integers)");
}

static void methods_are_checked(void **state)
{
    (void)state;
    struct shuf__result_message request = gauss(10), other = uniform(10);
    request.stream.method = SHUF__METHOD__METHOD_BOX_MULLER;
    request.stream.mean = -0.0;
    assert_int_equal(expect_parsed(&request).stream.distribution, SHUF_DISTRIBUTION_BOX_MULLER);
    assert_true(expect_parsed(&request).stream.std == 1 &&
                !signbit(expect_parsed(&request).stream.mean));
    request.stream.dtype = SHUF__DTYPE__DTYPE_U32;
    expect_refused(&request, SHUF_INVALID, "dtype u32: expected f64, f32, f16 or bf16 with gauss");
    request.stream.method = (Shuf__Method)2;
    expect_refused(&request, SHUF_INVALID, "method 2: expected 0 (table) or 1 (box-muller)");
    request.stream.method = (Shuf__Method)-1;
    expect_refused(&request, SHUF_INVALID, "method -1: expected 0 (table) or 1 (box-muller)");
    other.stream.method = SHUF__METHOD__METHOD_BOX_MULLER;
    expect_refused(&other, SHUF_INVALID,
                   "method box-muller: expected none with uniform, only gauss has it");
    other.stream.method = (Shuf__Method)2;
    expect_refused(&other, SHUF_INVALID, "method 2: expected 0 (table) or 1 (box-muller)");
}

static void wire_numbers_match(void **state)
{
    (void)state;
    assert_int_equal(shuf__wire_distribution(SHUF_DISTRIBUTION_BOX_MULLER),
                     SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS);
    assert_int_equal(shuf__wire_distribution(SHUF_DISTRIBUTION_UNIFORM),
                     SHUF__DISTRIBUTION__DISTRIBUTION_UNIFORM);
    assert_int_equal(shuf__wire_method(SHUF_DISTRIBUTION_BOX_MULLER),
                     SHUF__METHOD__METHOD_BOX_MULLER);
    assert_int_equal(shuf__wire_method(SHUF_DISTRIBUTION_GAUSS), SHUF__METHOD__METHOD_TABLE);
}

/* The width of each value in bytes, by type and distribution; 0: the distribution does not have the
 * type. */
static void dtypes_are_checked(void **state)
{
    (void)state;
    static const struct {
        Shuf__Dtype dtype;
        unsigned gauss, uniform;
        const char *name;
    } rows[] = {
        {SHUF__DTYPE__DTYPE_U32, 0, 4, "u32"},   {SHUF__DTYPE__DTYPE_U64, 0, 8, "u64"},
        {SHUF__DTYPE__DTYPE_I64, 0, 0, "i64"},   {SHUF__DTYPE__DTYPE_F64, 8, 8, "f64"},
        {SHUF__DTYPE__DTYPE_F32, 4, 4, "f32"},   {SHUF__DTYPE__DTYPE_F16, 2, 0, "f16"},
        {SHUF__DTYPE__DTYPE_BF16, 2, 0, "bf16"}, {(Shuf__Dtype)8, 0, 0, "8"},
        {(Shuf__Dtype)-5, 0, 0, "-5"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[96];
        struct shuf__result_message g = gauss(7), u = uniform(7);
        g.stream.dtype = u.stream.dtype = rows[i].dtype;
        snprintf(text, sizeof text, "dtype %s: expected f64, f32, f16 or bf16 with gauss",
                 rows[i].name);
        if (rows[i].gauss == 0)
            expect_refused(&g, SHUF_INVALID, text);
        else
            assert_true(parsed_shape(&g).width == rows[i].gauss &&
                        parsed_shape(&g).bytes == 7 * rows[i].gauss);
        snprintf(text, sizeof text, "dtype %s: expected u32, u64, f64 or f32 with uniform",
                 rows[i].name);
        if (rows[i].uniform == 0)
            expect_refused(&u, SHUF_INVALID, text);
        else
            assert_true(parsed_shape(&u).width == rows[i].uniform &&
                        (int)expect_parsed(&u).dtype == (int)rows[i].dtype);
    }
}

static void offset_and_count_are_checked(void **state)
{
    (void)state;
    struct shuf__result_message request = gauss(0);
    expect_refused(&request, SHUF_INVALID, "count 0: expected at least 1");
    request.stream.offset = BIT(62);
    expect_refused(&request, SHUF_INVALID, "offset 4611686018427387904: expected less than 2^62");
    request = uniform(1);
    request.stream.offset = BIT(62) - 1;
    assert_true(expect_parsed(&request).stream.offset == BIT(62) - 1);
    request.stream.count = 2;
    expect_refused(
        &request, SHUF_INVALID,
        "count 2: expected at most 1 from offset 4611686018427387903, as a stream has 2^62 values");
    request.stream.offset = 1;
    request.stream.count = UINT64_MAX;
    expect_refused(
        &request, SHUF_INVALID,
        "count 18446744073709551615: expected at most 4611686018427387903 from offset 1, as a "
        "stream has 2^62 values");
}

static void sizes_are_limited(void **state)
{
    (void)state;
    struct shuf__result_message request = gauss(BIT(60));
    expect_refused(&request, SHUF_NO_MEMORY,
                   "count 1152921504606846976: so many f64 pass 2^63 bytes, expected fewer");
    request.stream.count--;
    assert_true(parsed_shape(&request).bytes == BIT(63) - 8);
    request.stream.count = BIT(62);
    request.stream.dtype = SHUF__DTYPE__DTYPE_BF16;
    expect_refused(&request, SHUF_NO_MEMORY,
                   "count 4611686018427387904: so many bf16 pass 2^63 bytes, expected fewer");
}

static void check_mean(double mean, const char *words)
{
    char text[96];
    struct shuf__result_message request = gauss(1);
    request.stream.mean = mean;
    snprintf(text, sizeof text, "mean %s: expected -2^100 to 2^100 (1.26765e+30)", words);
    expect_refused(&request, SHUF_INVALID, text);
}

static void means_are_limited(void **state)
{
    (void)state;
    struct shuf__result_message request = gauss(1);
    request.stream.mean = 0x1p100;
    assert_true(expect_parsed(&request).stream.mean == 0x1p100);
    request.stream.mean = -0x1p100;
    assert_true(expect_parsed(&request).stream.mean == -0x1p100);
    request.stream.mean = -0.0; /* equal to a mean of 0, so it is the same request */
    assert_false(signbit(expect_parsed(&request).stream.mean));
    check_mean(nextafter(0x1p100, INFINITY), "1.26765e+30");
    check_mean(-1e31, "-1e+31");
    check_mean((double)INFINITY, "inf");
    check_mean((double)NAN, "nan");
}

static void check_std(double std, const char *words)
{
    char text[96];
    struct shuf__result_message request = gauss(1);
    request.stream.std = std;
    snprintf(text, sizeof text, "std %s: expected 2^-100 (7.88861e-31) to 2^100 (1.26765e+30)",
             words);
    expect_refused(&request, SHUF_INVALID, text);
}

static void deviations_are_limited(void **state)
{
    (void)state;
    struct shuf__result_message request = gauss(1);
    request.stream.std = 0x1p-100;
    assert_true(expect_parsed(&request).stream.std == 0x1p-100);
    request.stream.std = 0x1p100;
    assert_true(expect_parsed(&request).stream.std == 0x1p100);
    check_std(0, "0"); /* std has no default */
    check_std(-1, "-1");
    check_std(nextafter(0x1p-100, 0), "7.88861e-31");
    check_std(1e31, "1e+31");
    check_std((double)INFINITY, "inf");
    check_std((double)NAN, "nan");
}

/* The largest number of a stream of f16 must be finite, so mean and std have a limit. */
static void mean_and_std_of_f16_are_limited(void **state)
{
    (void)state;
    struct shuf__result_message request = gauss(1);
    request.stream.dtype = SHUF__DTYPE__DTYPE_F16;
    request.stream.std = 4094;
    assert_true(expect_parsed(&request).stream.std == 4094);
    request.stream.mean = 1;
    expect_refused(
        &request, SHUF_INVALID,
        "dtype f16: expected |mean| + 16 std of at most 65504, not 65505 (mean 1, std 4094)");
    request.stream.mean = -70000;
    request.stream.std = 1;
    expect_refused(
        &request, SHUF_INVALID,
        "dtype f16: expected |mean| + 16 std of at most 65504, not 70016 (mean -70000, std 1)");
    request.stream.dtype = SHUF__DTYPE__DTYPE_BF16;
    assert_int_equal(parsed_shape(&request).width, 2);
}

static struct shuf__result_message of_mean(enum shuf__distribution distribution, double mean)
{
    struct shuf__result_message request = uniform(1);
    request.stream.distribution = (Shuf__Distribution)distribution;
    request.stream.mean = mean;
    return request;
}

static void means_of_other_distributions_are_checked(void **state)
{
    (void)state;
    static const struct {
        enum shuf__distribution distribution;
        double mean;
        const char *text;
    } rows[] = {
        {SHUF_DISTRIBUTION_EXPONENTIAL, 0,
         "mean 0: expected 2^-100 (7.88861e-31) to 2^100 (1.26765e+30) with exponential"},
        {SHUF_DISTRIBUTION_EXPONENTIAL, 2e30,
         "mean 2e+30: expected 2^-100 (7.88861e-31) to 2^100 (1.26765e+30) with exponential"},
        {SHUF_DISTRIBUTION_EXPONENTIAL, (double)NAN,
         "mean nan: expected 2^-100 (7.88861e-31) to 2^100 (1.26765e+30) with exponential"},
        {SHUF_DISTRIBUTION_BERNOULLI, -0.5,
         "mean -0.5: expected a probability, 0 to 1, with bernoulli"},
        {SHUF_DISTRIBUTION_BERNOULLI, 1.5,
         "mean 1.5: expected a probability, 0 to 1, with bernoulli"},
        {SHUF_DISTRIBUTION_BERNOULLI, (double)NAN,
         "mean nan: expected a probability, 0 to 1, with bernoulli"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct shuf__result_message request = of_mean(rows[i].distribution, rows[i].mean);
        expect_refused(&request, SHUF_INVALID, rows[i].text);
    }
    struct shuf__result_message good = of_mean(SHUF_DISTRIBUTION_EXPONENTIAL, 0x1p-100);
    assert_int_equal(expect_parsed(&good).dtype, SHUF_F64);
    good.stream.dtype = SHUF__DTYPE__DTYPE_F16;
    expect_refused(&good, SHUF_INVALID, "dtype f16: expected f64 or f32 with exponential");
    good.stream.std = 1;
    expect_refused(&good, SHUF_INVALID, "std 1: expected 0 with exponential");
    good = of_mean(SHUF_DISTRIBUTION_BERNOULLI, -0.0);
    assert_int_equal(expect_parsed(&good).dtype, SHUF_U32);
    assert_false(signbit(expect_parsed(&good).stream.mean));
    good.stream.mean = 1;
    assert_true(expect_parsed(&good).stream.mean == 1);
    good.stream.dtype = SHUF__DTYPE__DTYPE_F64;
    expect_refused(&good, SHUF_INVALID, "dtype f64: expected u32 or u64 with bernoulli");
}

static void bounds_are_checked(void **state)
{
    (void)state;
    static const struct {
        Shuf__Dtype dtype;
        uint64_t bound;
        shuf_dtype parsed; /* SHUF_AUTO: refused with `text` */
        const char *text;
    } rows[] = {
        {SHUF__DTYPE__DTYPE_AUTO, 1, SHUF_U32, NULL},
        {SHUF__DTYPE__DTYPE_AUTO, BIT(32), SHUF_U32, NULL},
        {SHUF__DTYPE__DTYPE_AUTO, BIT(32) + 1, SHUF_U64, NULL},
        {SHUF__DTYPE__DTYPE_U64, 1, SHUF_U64, NULL},
        {SHUF__DTYPE__DTYPE_U64, UINT64_MAX, SHUF_U64, NULL},
        {SHUF__DTYPE__DTYPE_AUTO, 0, SHUF_AUTO, "bound 0: expected 1 to 2^32 with dtype u32"},
        {SHUF__DTYPE__DTYPE_U64, 0, SHUF_AUTO, "bound 0: expected 1 to 2^64 - 1 with dtype u64"},
        {SHUF__DTYPE__DTYPE_U32, BIT(32) + 1, SHUF_AUTO,
         "bound 4294967297: expected 1 to 2^32 with dtype u32"},
        {SHUF__DTYPE__DTYPE_I64, 5, SHUF_AUTO, "dtype i64: expected u32 or u64 with integers"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shuf__result_message request = of_mean(SHUF_DISTRIBUTION_INTEGERS, 0);
        request.stream.bound = rows[i].bound;
        request.stream.dtype = rows[i].dtype;
        if (rows[i].parsed == SHUF_AUTO)
            expect_refused(&request, SHUF_INVALID, rows[i].text);
        else
            assert_true(expect_parsed(&request).dtype == rows[i].parsed &&
                        expect_parsed(&request).stream.bound == rows[i].bound);
    }
    struct shuf__result_message of_integers = of_mean(SHUF_DISTRIBUTION_INTEGERS, 1);
    of_integers.stream.bound = 5;
    expect_refused(&of_integers, SHUF_INVALID, "mean 1: expected 0 with integers");
}

static void unused_fields_are_refused(void **state)
{
    (void)state;
    struct shuf__result_message request = uniform(1);
    request.stream.bound = 5;
    expect_refused(&request, SHUF_INVALID, "bound 5: expected 0 with uniform");
    request.stream.std = 1;
    expect_refused(&request, SHUF_INVALID, "std 1: expected 0 with uniform");
    request.stream.mean = (double)NAN;
    expect_refused(&request, SHUF_INVALID, "mean nan: expected 0 with uniform");
}

static void distributions_have_names(void **state)
{
    (void)state;
    assert_string_equal(shuf__distribution_name(SHUF_DISTRIBUTION_GAUSS), "gauss");
    assert_string_equal(shuf__distribution_name(SHUF_DISTRIBUTION_UNIFORM), "uniform");
    assert_string_equal(shuf__distribution_name(SHUF_DISTRIBUTION_BOX_MULLER), "box-muller");
    assert_string_equal(shuf__distribution_name(SHUF_DISTRIBUTION_EXPONENTIAL), "exponential");
    assert_string_equal(shuf__distribution_name(SHUF_DISTRIBUTION_BERNOULLI), "bernoulli");
    assert_string_equal(shuf__distribution_name(SHUF_DISTRIBUTION_INTEGERS), "integers");
    assert_string_equal(shuf__distribution_name(0), "none");
    assert_string_equal(shuf__distribution_name(77), "none");
    assert_string_equal(shuf__dtype_name(SHUF__DTYPE__DTYPE_AUTO), "auto");
    assert_null(shuf__dtype_name((Shuf__Dtype)99));
}

/* ---- Exchanges ---- */

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

static void expect_plan_refused(const struct shuf__result_message *m, const char *words)
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
    expect_plan_refused(&m, "input: 2 sizes, expected world = 3, or none");
    m.exchange.n_input = 3;
    m.exchange.output = sizes;
    m.exchange.n_output = 1;
    expect_plan_refused(&m, "output: 1 size, expected world = 3, or none");
    m.exchange.output = wraps; /* their sum mod 2^64 is n */
    m.exchange.n_output = 3;
    expect_plan_refused(&m, "output[0] 11: expected at most 10, the rest of n = 10");
    m = message(10, 0, SHUF__RANKS_EQUAL + 1);
    expect_plan_refused(&m, "world 1048577: expected 1 to 1048576");
    m = message(SHUF__N_MAX + 1, 0, 1);
    expect_plan_refused(&m, "n 4611686018427387905: expected 1 to 2^62");
    m = message(10, 0, 1);
    m.permutation.algorithm = (char *)(uintptr_t) "lcg";
    expect_plan_refused(&m,
                        "algorithm lcg: expected primefold, which computes any position by itself");
    m = message(10, 0, 1);
    m.permutation.key = (char *)(uintptr_t) "training";
    m.permutation.seed = 7;
    expect_plan_refused(&m, "seed 7: expected 0 with key training");
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
    expect_plan_refused(&m, words);
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
    expect_plan_refused(&m, "world 65: expected at most 64 for a one-sided plan");
    m.exchange.world = 0;
    expect_plan_refused(&m, "world 0: expected 1 to 1048576");
    m = one_sided(10, 64, 64, UNIT);
    expect_plan_refused(&m, "rank 64: expected less than world = 64");
    m = one_sided((UINT64_C(1) << 38) + 1, 63, 64, UNIT);
    expect_plan_refused(&m, "input of rank 0, 4294967297 records: expected at most 2^32 for a "
                            "one-sided plan");
    m = one_sided(SHUF__N_MAX, 0, 1, UNIT);
    expect_plan_refused(&m, "input of rank 0, 4611686018427387904 records: expected at most 2^32");
    m = one_sided(RANK_MOST + 4, 0, 3, UNIT);
    m.exchange.input = input;
    m.exchange.n_input = 3;
    expect_plan_refused(&m, "input of rank 1, 4294967297 records: expected at most 2^32");
    m = one_sided(10, 0, 3, UNIT);
    m.exchange.input = wraps; /* their sum mod 2^64 is n */
    m.exchange.n_input = 3;
    expect_plan_refused(&m, "input[0] 11: expected at most 10, the rest of n = 10");
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
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(distributions_are_checked),
        cmocka_unit_test(methods_are_checked),
        cmocka_unit_test(wire_numbers_match),
        cmocka_unit_test(dtypes_are_checked),
        cmocka_unit_test(offset_and_count_are_checked),
        cmocka_unit_test(sizes_are_limited),
        cmocka_unit_test(means_are_limited),
        cmocka_unit_test(deviations_are_limited),
        cmocka_unit_test(mean_and_std_of_f16_are_limited),
        cmocka_unit_test(means_of_other_distributions_are_checked),
        cmocka_unit_test(bounds_are_checked),
        cmocka_unit_test(unused_fields_are_refused),
        cmocka_unit_test(distributions_have_names),
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
