/* SPDX-License-Identifier: MIT
 *
 * Streams of numbers by libshuf from a real daemon, on the backend of the command line: every kind
 * with all its values by every transport, and moments compared with a plain computation. Some
 * daemons are killed while they send.
 */
#include "shuf.h"
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/draws.h"
#include "support/golden.h"
#include "support/harness.h"
#include "support/random.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The kinds of streams ---- */

static const struct kind {
    shuf_distribution distribution;
    shuf_dtype dtype;
    shuf_method method;
} kinds[] = {
    {SHUF_GAUSS, SHUF_F64, SHUF_TABLE},       {SHUF_GAUSS, SHUF_F32, SHUF_TABLE},
    {SHUF_GAUSS, SHUF_F16, SHUF_TABLE},       {SHUF_GAUSS, SHUF_BF16, SHUF_TABLE},
    {SHUF_GAUSS, SHUF_F64, SHUF_BOX_MULLER},  {SHUF_GAUSS, SHUF_F32, SHUF_BOX_MULLER},
    {SHUF_GAUSS, SHUF_F16, SHUF_BOX_MULLER},  {SHUF_GAUSS, SHUF_BF16, SHUF_BOX_MULLER},
    {SHUF_UNIFORM, SHUF_F64, SHUF_TABLE},     {SHUF_UNIFORM, SHUF_F32, SHUF_TABLE},
    {SHUF_UNIFORM, SHUF_U32, SHUF_TABLE},     {SHUF_UNIFORM, SHUF_U64, SHUF_TABLE},
    {SHUF_EXPONENTIAL, SHUF_F64, SHUF_TABLE}, {SHUF_EXPONENTIAL, SHUF_F32, SHUF_TABLE},
    {SHUF_BERNOULLI, SHUF_U32, SHUF_TABLE},   {SHUF_BERNOULLI, SHUF_U64, SHUF_TABLE},
    {SHUF_INTEGERS, SHUF_U32, SHUF_TABLE},    {SHUF_INTEGERS, SHUF_U64, SHUF_TABLE},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static uint64_t bits_of(const shuf_request *request, uint64_t i)
{
    return draw_bits(
        &(struct draw){.distribution = request->numbers.method == SHUF_BOX_MULLER
                                           ? SHUF_DISTRIBUTION_BOX_MULLER
                                           : (enum shuf__distribution)request->numbers.distribution,
                       .dtype = request->numbers.dtype,
                       .seed = request->numbers.seed,
                       .stream = request->numbers.stream,
                       .index = request->numbers.offset + i,
                       .mean = request->numbers.mean,
                       .std = request->numbers.std,
                       .bound = request->numbers.bound});
}

static uint64_t bits_at(const void *values, unsigned width, uint64_t i)
{
    uint64_t bits = 0; /* the value has the low bytes: the machine is little-endian */
    memcpy(&bits, (const char *)values + i * width, width);
    return bits;
}

static bool values_are_right(const shuf_request *request, const void *values)
{
    const unsigned width = draw_width(request->numbers.dtype);
    for (uint64_t i = 0; i < request->numbers.count; i++)
        if (bits_at(values, width, i) != bits_of(request, i)) {
            fprintf(stderr, "value %" PRIu64 " from %" PRIu64 " of kind %d, %d\n", i,
                    request->numbers.offset, (int)request->numbers.distribution,
                    (int)request->numbers.dtype);
            return false;
        }
    return true;
}

/* A random part of a stream. Its offset has a random order of magnitude. */
static shuf_request random_numbers(int kind, uint64_t limit)
{
    shuf_request request = {.kind = SHUF_NUMBERS,
                            .numbers = {
                                .distribution = kinds[kind].distribution,
                                .method = kinds[kind].method,
                                .seed = random_u64(),
                                .stream = random_u64(),
                                .offset = random_below(UINT64_C(1) << 61) >> random_below(61),
                                .count = random_size(limit),
                                .dtype = kinds[kind].dtype,
                            }};
    shuf_numbers *n = &request.numbers;
    draw_parameters(n->distribution, (double)random_below(2000) / 7 + 1, &n->mean, &n->std,
                    &n->bound);
    if (n->distribution == SHUF_GAUSS) {
        n->mean -= 100;
        n->std = ldexp(1.1, (int)random_below(20) - 10);
    }
    return request;
}

static bool draw_and_check(shuf *handle, const shuf_request *request)
{
    shuf_shape shape;
    shuf_result result;
    assert_int_equal(shuf_shape_of(request, &shape, NULL, 0), SHUF_OK);
    assert_true(shape.rows == 1 && shape.count == request->numbers.count &&
                shape.dtype == request->numbers.dtype);
    assert_int_equal(shape.bytes, request->numbers.count * shape.width);
    void *out = malloc(shape.bytes);
    bool right = shuf_copy(handle, request, out, shape.bytes, &result) == SHUF_OK &&
                 values_are_right(request, out) &&
                 result.distribution == request->numbers.distribution &&
                 result.method == request->numbers.method && result.algorithm[0] == '\0';
    if (!right)
        fprintf(stderr, "%s\n", shuf_message(handle));
    free(out);
    return right;
}

/* ---- Values ---- */

static void random_parts_match_reference(void **state)
{
    (void)state;
    shuf *handle = client_open();
    random_start("random_parts_match_reference");
    for (int i = 0; i < 20 * KINDS; i++) {
        const shuf_request request = random_numbers(i % KINDS, 5000);
        assert_true(draw_and_check(handle, &request));
    }
    shuf_close(handle);
}

/* Offsets that are no multiples of 32 or 1024, one beyond 2^40, and the last values of a stream. */
static void large_offsets_match_reference(void **state)
{
    (void)state;
    static const uint64_t offsets[] = {1, 33, 1025, (UINT64_C(1) << 40) + 3 * 1024 + 37,
                                       (UINT64_C(1) << 62) - 2000};
    shuf *handle = client_open();
    for (int i = 0; i < KINDS; i++)
        for (size_t k = 0; k < sizeof offsets / sizeof *offsets; k++) {
            shuf_request request = {.kind = SHUF_NUMBERS,
                                    .numbers = {.distribution = kinds[i].distribution,
                                                .method = kinds[i].method,
                                                .seed = 7,
                                                .stream = 3,
                                                .offset = offsets[k],
                                                .count = 2000,
                                                .dtype = kinds[i].dtype}};
            draw_parameters(kinds[i].distribution, 2, &request.numbers.mean, &request.numbers.std,
                            &request.numbers.bound);
            assert_true(draw_and_check(handle, &request));
        }
    shuf_close(handle);
}

static shuf_dtype dtype_of(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].dtype == draw_dtype(name))
            return kinds[i].dtype;
    return SHUF_AUTO;
}

static shuf_request numbers_of(const struct golden_stream *row)
{
    const enum shuf__distribution law = draw_distribution(row->distribution);
    const bool box_muller = law == SHUF_DISTRIBUTION_BOX_MULLER;
    const bool uniform = law == SHUF_DISTRIBUTION_UNIFORM;
    return (shuf_request){.kind = SHUF_NUMBERS,
                          .numbers = {
                              .distribution = box_muller ? SHUF_GAUSS : (shuf_distribution)law,
                              .method = box_muller ? SHUF_BOX_MULLER : SHUF_TABLE,
                              .seed = row->seed,
                              .stream = row->stream,
                              .offset = row->offset,
                              .count = row->count,
                              .mean = row->mean,
                              .std = uniform ? 0 : row->std,
                              .bound = row->bound,
                              .dtype = dtype_of(row->dtype),
                              .fingerprint = true,
                          }};
}

/* The transports of the backend come first. */
static const shuf_transport transports[] = {SHUF_INLINE, SHUF_MEMFD, SHUF_CUDA_FD, SHUF_CUDA_IPC};

static int transport_count(void)
{
    return harness_is_cuda() ? 4 : 2;
}

static void take(shuf *handle, const shuf_request *request, shuf_transport transport,
                 shuf_lease **lease)
{
    const shuf_lease_options options = {.transports = transport};
    if (shuf_lease_take(handle, request, &options, lease) != SHUF_OK)
        fail_msg("%s: %s", shuf_transport_name(transport), shuf_message(handle));
    assert_int_equal((*lease)->transport, transport);
}

static void check_row(shuf *handle, const struct golden_stream *row, const shuf_lease *lease)
{
    const unsigned width = lease->result.shape.width;
    assert_int_equal(lease->result.fingerprint, row->fingerprint);
    for (unsigned i = 0; i < row->shown; i++) {
        uint64_t bits = 0;
        assert_int_equal(shuf_lease_read(handle, lease, i * width, width, &bits), SHUF_OK);
        assert_int_equal(bits, row->bits[i]);
        if (i < lease->result.n_first)
            assert_int_equal(lease->result.first[i], row->bits[i]);
    }
}

/* The golden table by every transport of the backend. */
static void golden_table_matches(void **state)
{
    (void)state;
    int rows = 0;
    struct golden_stream row;
    shuf_lease *leases[4] = {NULL};
    shuf *handle = client_open();
    FILE *table = golden_open("streams.txt");
    for (; golden_next_stream(table, &row); rows++) {
        const shuf_request request = numbers_of(&row);
        for (int i = 0; i < transport_count(); i++) {
            take(handle, &request, transports[i], &leases[i]);
            check_row(handle, &row, leases[i]);
        }
    }
    assert_true(rows > 20);
    fclose(table);
    shuf_close(handle);
}

/* ---- Moments ---- */

static double value_at(const shuf_request *request, const void *values, uint64_t i)
{
    const shuf_dtype dtype = request->numbers.dtype;
    return draw_value(dtype, bits_at(values, draw_width(dtype), i));
}

static double central_moment(const shuf_request *request, const void *values, double mean,
                             int power)
{
    double sum = 0;
    for (uint64_t i = 0; i < request->numbers.count; i++)
        sum += pow(value_at(request, values, i) - mean, power);
    return sum / (double)request->numbers.count;
}

static void expect_near(double got, double expected, double scale)
{
    if (!(fabs(got - expected) <= 1e-9 * scale))
        fail_msg("%.17g, expected %.17g", got, expected);
}

static void check_moments(const shuf_request *request, const void *values, const shuf_moments *m)
{
    const double mean = central_moment(request, values, 0, 1),
                 m2 = central_moment(request, values, mean, 2);
    double least = value_at(request, values, 0), largest = least;
    for (uint64_t i = 1; i < request->numbers.count; i++) {
        least = fmin(least, value_at(request, values, i));
        largest = fmax(largest, value_at(request, values, i));
    }
    expect_near(m->mean, mean, fabs(mean) + sqrt(m2));
    expect_near(m->variance, m2, m2);
    expect_near(m->skewness, central_moment(request, values, mean, 3) / (m2 * sqrt(m2)), 1);
    expect_near(m->kurtosis, central_moment(request, values, mean, 4) / (m2 * m2), 1);
    assert_true(m->least == least && m->largest == largest);
}

static void moments_match_values(void **state)
{
    (void)state;
    shuf *handle = client_open();
    random_start("moments_match_values");
    for (int i = 0; i < 2 * KINDS; i++) {
        shuf_request request = random_numbers(i % KINDS, 30000);
        shuf_result result, summary;
        shuf_shape shape;
        request.numbers.count += 100; /* enough values to differ */
        if (request.numbers.distribution == SHUF_GAUSS)
            request.numbers.mean = 3 * request.numbers.std;
        request.numbers.moments = true;
        assert_int_equal(shuf_shape_of(&request, &shape, NULL, 0), SHUF_OK);
        void *values = malloc(shape.bytes);
        assert_int_equal(shuf_copy(handle, &request, values, shape.bytes, &result), SHUF_OK);
        check_moments(&request, values, &result.moments);
        assert_int_equal(result.fingerprint, 0);
        assert_int_equal(shuf_summarize(handle, &request, &summary), SHUF_OK);
        assert_memory_equal(&summary.moments, &result.moments, sizeof result.moments);
        assert_true(summary.fingerprint != 0 && summary.n_first == SHUF_SAMPLES);
        assert_memory_equal(summary.first, result.first, sizeof summary.first);
        free(values);
    }
    shuf_close(handle);
}

/* A single value has no spread: the moments that divide by the variance are NaN. */
static void moments_of_one_value(void **state)
{
    (void)state;
    shuf_request request = {
        .kind = SHUF_NUMBERS,
        .numbers = {.distribution = SHUF_GAUSS, .count = 1, .std = 2, .moments = true}};
    shuf_result result;
    double value;
    shuf *handle = client_open();
    assert_int_equal(shuf_copy(handle, &request, &value, sizeof value, &result), SHUF_OK);
    assert_true(result.moments.least == value && result.moments.largest == value);
    assert_true(fabs(result.moments.mean - value) < 1e-12 && result.moments.variance == 0);
    assert_true(isnan(result.moments.skewness) && isnan(result.moments.kurtosis));
    request.numbers.moments = false;
    assert_int_equal(shuf_copy(handle, &request, &value, sizeof value, &result), SHUF_OK);
    assert_true(result.moments.mean == 0 && result.moments.least == 0);
    shuf_close(handle);
}

/* ---- Sinks, and daemons that are lost ---- */

struct collector {
    uint8_t *bytes;
    size_t size, stop_at; /* 0: never */
    size_t kill_at[3];    /* ascending; 0: no more */
    unsigned kills;
};

static bool collect(void *context, const void *bytes, size_t size)
{
    struct collector *c = context;
    memcpy(c->bytes + c->size, bytes, size);
    c->size += size;
    if (c->kill_at[c->kills] != 0 && c->size >= c->kill_at[c->kills]) {
        c->kills++;
        harness_kill(&harness_shared, SIGKILL);
        return harness_restart(&harness_shared);
    }
    return c->stop_at == 0 || c->size < c->stop_at;
}

static const shuf_request streamed = {.kind = SHUF_NUMBERS,
                                      .numbers = {.distribution = SHUF_GAUSS,
                                                  .seed = 7,
                                                  .offset = 12345,
                                                  .count = 500003,
                                                  .mean = 1,
                                                  .std = 0.5,
                                                  .dtype = SHUF_F64}};
enum { STREAMED_BYTES = 500003 * 8 };

/* Each byte arrives once and in order, although three daemons sent parts of the result. */
static void draw_each_continues_after_killed_daemons(void **state)
{
    (void)state;
    shuf *handle = client_open();
    struct collector c = {.bytes = malloc(STREAMED_BYTES), .kill_at = {1, 2000001}};
    shuf_result result;
    assert_int_equal(shuf_each(handle, &streamed, collect, &c, &result), SHUF_OK);
    assert_int_equal(c.kills, 2);
    assert_int_equal(c.size, STREAMED_BYTES);
    assert_true(values_are_right(&streamed, c.bytes));
    assert_string_equal(result.backend, harness_backend);
    free(c.bytes);
    shuf_close(handle);
}

static void sink_cancels_draw_each(void **state)
{
    (void)state;
    shuf *handle = client_open();
    struct collector c = {.bytes = malloc(STREAMED_BYTES), .stop_at = 1000000};
    client_expect(handle, shuf_each(handle, &streamed, collect, &c, NULL), SHUF_CANCELLED,
                  "of 4000024 bytes");
    assert_true(c.size >= c.stop_at && c.size < STREAMED_BYTES);
    assert_int_equal(shuf_each(handle, &streamed, NULL, NULL, NULL), SHUF_OK);
    free(c.bytes);
    shuf_close(handle);
}

static void draw_continues_after_killed_daemons(void **state)
{
    (void)state;
    shuf *handle = client_open();
    random_start("draw_continues_after_killed_daemons");
    for (int i = 0; i < KINDS; i++) {
        const shuf_request request = random_numbers(i, 5000);
        harness_kill(&harness_shared, SIGKILL);
        assert_true(harness_restart(&harness_shared));
        assert_true(draw_and_check(handle, &request));
    }
    shuf_close(handle);
}

/* ---- Leases ---- */

static void check_lease(shuf *handle, const shuf_request *request, const shuf_lease *lease)
{
    const uint64_t bytes = lease->result.shape.bytes;
    void *copy = malloc(bytes);
    assert_int_equal(shuf_lease_read(handle, lease, 0, bytes, copy), SHUF_OK);
    assert_true(values_are_right(request, copy));
    if (lease->device_id[0] == '\0')
        assert_memory_equal(lease->data, copy, bytes);
    free(copy);
}

/* A lease is exchanged for a lease of another kind, also between numbers and permutations, in one
 * round trip. */
static void leases_are_exchanged_for_other_kinds(void **state)
{
    (void)state;
    random_start("leases_are_exchanged_for_other_kinds");
    for (int t = 0; t < transport_count(); t++) {
        const shuf_lease_options options = {.transports = transports[t]};
        const shuf_request permutation = {.permutation = {.n = 1000, .seed = 1}};
        shuf *handle = client_open();
        shuf_lease *lease = NULL;
        for (int i = 0; i < 3 * KINDS; i++) {
            const shuf_request request = random_numbers(i % KINDS, 100000);
            take(handle, &request, transports[t], &lease);
            check_lease(handle, &request, lease);
            if (i % 3 == 0)
                assert_int_equal(shuf_lease_take(handle, &permutation, &options, &lease), SHUF_OK);
        }
        assert_int_equal(shuf_lease_release(handle, &lease), SHUF_OK);
        shuf_close(handle);
    }
}

static void lease_outlives_the_daemon(void **state)
{
    (void)state;
    const shuf_request request = {
        .kind = SHUF_NUMBERS,
        .numbers = {
            .distribution = SHUF_GAUSS, .seed = 9, .count = 30000, .std = 1, .dtype = SHUF_F32}};
    shuf *handle = client_open();
    for (int t = 0; t < transport_count(); t++) {
        shuf_lease *lease = NULL;
        take(handle, &request, transports[t], &lease);
        harness_kill(&harness_shared, SIGKILL);
        check_lease(handle, &request, lease);
        assert_true(harness_restart(&harness_shared));
        take(handle, &request, transports[t], &lease);
        check_lease(handle, &request, lease);
        assert_int_equal(shuf_lease_release(handle, &lease), SHUF_OK);
    }
    shuf_close(handle);
}

static void prefetched_result_is_taken(void **state)
{
    (void)state;
    const shuf_request request = {.kind = SHUF_NUMBERS,
                                  .numbers = {.distribution = SHUF_UNIFORM,
                                              .seed = 11,
                                              .count = 30000,
                                              .dtype = SHUF_U32,
                                              .moments = true}};
    for (int t = 1; t < transport_count(); t++) {
        const shuf_lease_options options = {.transports = transports[t]};
        shuf *handle = client_open();
        shuf_lease *lease = NULL;
        assert_int_equal(shuf_prefetch(handle, &request, &options), SHUF_OK);
        take(handle, &request, transports[t], &lease);
        assert_true(lease->shared);
        check_lease(handle, &request, lease);
        assert_true(lease->result.moments.kurtosis > 1.5 && lease->result.n_first == SHUF_SAMPLES);
        shuf_close(handle);
    }
}

/* Its strings are valid only here. */
static bool copy_entry(void *context, const shuf_lease_entry *e)
{
    assert_null(e->request.numbers.key);
    *(shuf_lease_entry *)context = *e;
    return true;
}

static void leases_are_listed(void **state)
{
    (void)state;
    const shuf_request request = {.kind = SHUF_NUMBERS,
                                  .numbers = {.distribution = SHUF_GAUSS,
                                              .seed = 1,
                                              .stream = 2,
                                              .offset = 3,
                                              .count = 4,
                                              .mean = 5.5,
                                              .std = 6.5,
                                              .dtype = SHUF_F16,
                                              .method = SHUF_BOX_MULLER}};
    shuf_lease_entry e = {.id = 0};
    shuf_lease *lease = NULL;
    shuf *handle = client_open();
    take(handle, &request, SHUF_MEMFD, &lease);
    assert_int_equal(shuf_leases(handle, copy_entry, &e), SHUF_OK);
    assert_int_equal(e.id, lease->id);
    assert_int_equal(e.request.kind, SHUF_NUMBERS);
    const shuf_numbers *s = &e.request.numbers;
    assert_int_equal(s->distribution, SHUF_GAUSS);
    assert_int_equal(s->method, SHUF_BOX_MULLER);
    assert_true(s->seed == 1 && s->stream == 2 && s->offset == 3 && s->count == 4);
    assert_true(e.count == 4 && e.rows == 1);
    assert_true(s->mean == 5.5 && s->std == 6.5 && s->dtype == SHUF_F16);
    shuf_close(handle);
}

/* ---- Mistakes ---- */

/* libshuf refuses these requests with the messages that the daemon would send; the handle still
 * works. */
static void wrong_parameters_are_refused(void **state)
{
    (void)state;
    const shuf_request good = {
        .kind = SHUF_NUMBERS,
        .numbers = {.distribution = SHUF_GAUSS, .count = 10, .std = 1, .dtype = SHUF_F64}};
    shuf_request none = {.kind = SHUF_NUMBERS, .numbers = {0}}, no_std = good, odd = good,
                 empty = good, far = good, half = good;
    shuf_request set = good, other = good, default_type = good;
    double out[10];
    char message[256];
    shuf_shape shape;
    shuf *handle = client_open();
    no_std.numbers.std = 0;
    odd.numbers.dtype = SHUF_I64;
    default_type.numbers.dtype = SHUF_AUTO;
    empty.numbers.count = 0;
    far.numbers.offset = UINT64_C(1) << 62;
    half.numbers.dtype = SHUF_F16;
    half.numbers.mean = 1e5;
    set.numbers.distribution = SHUF_UNIFORM;
    other.numbers.method = (shuf_method)5;
    client_expect(handle, shuf_copy(handle, &none, out, sizeof out, NULL), SHUF_INVALID,
                  "distribution 0");
    client_expect(handle, shuf_copy(handle, &no_std, out, sizeof out, NULL), SHUF_INVALID, "std 0");
    client_expect(handle, shuf_copy(handle, &odd, out, sizeof out, NULL), SHUF_INVALID,
                  "dtype i64");
    client_expect(handle, shuf_copy(handle, &empty, out, sizeof out, NULL), SHUF_INVALID,
                  "count 0");
    client_expect(handle, shuf_summarize(handle, &far, &(shuf_result){0}), SHUF_INVALID,
                  "offset 4611");
    client_expect(handle, shuf_prefetch(handle, &half, NULL), SHUF_INVALID, "dtype f16: expected");
    client_expect(handle, shuf_copy(handle, &set, out, sizeof out, NULL), SHUF_INVALID,
                  "std 1: expected 0 with uniform");
    client_expect(handle, shuf_copy(handle, &other, out, sizeof out, NULL), SHUF_INVALID,
                  "method 5: expected 0 (table) or 1 (box-muller)");
    client_expect(handle, shuf_copy(handle, &good, out, 79, NULL), SHUF_INVALID,
                  "bytes 79: expected at least 80 for 10 values of 8 bytes (f64)");
    client_expect(handle, shuf_copy(handle, &default_type, out, 40, NULL), SHUF_INVALID,
                  "bytes 40: expected at least 80 for 10 values of 8 bytes (f64, dtype auto; "
                  "SHUF_F32 has 4 bytes)");
    client_expect(handle, shuf_copy(handle, &good, NULL, 80, NULL), SHUF_INVALID, "out NULL");
    assert_int_equal(shuf_shape_of(&empty, &shape, message, sizeof message), SHUF_INVALID);
    assert_string_equal(message, "count 0: expected at least 1");
    assert_true(draw_and_check(handle, &good));
    shuf_close(handle);
}

static void result_above_limit_is_refused(void **state)
{
    (void)state;
    shuf_request request = {.kind = SHUF_NUMBERS,
                            .numbers = {.distribution = SHUF_UNIFORM, .count = UINT64_C(1) << 45}};
    shuf_lease *lease = NULL;
    shuf *handle = client_open();
    client_expect(handle, shuf_each(handle, &request, NULL, NULL, NULL), SHUF_NO_MEMORY, "256 TiB");
    client_expect(handle, shuf_lease_take(handle, &request, NULL, &lease), SHUF_NO_MEMORY,
                  "256 TiB");
    assert_null(lease);
    request.numbers.count = UINT64_C(1) << 60;
    client_expect(handle, shuf_summarize(handle, &request, &(shuf_result){0}), SHUF_NO_MEMORY,
                  "pass 2^63");
    shuf_close(handle);
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_parts_match_reference),
        cmocka_unit_test(large_offsets_match_reference),
        cmocka_unit_test(golden_table_matches),
        cmocka_unit_test(moments_match_values),
        cmocka_unit_test(moments_of_one_value),
        cmocka_unit_test(draw_each_continues_after_killed_daemons),
        cmocka_unit_test(sink_cancels_draw_each),
        cmocka_unit_test(draw_continues_after_killed_daemons),
        cmocka_unit_test(leases_are_exchanged_for_other_kinds),
        cmocka_unit_test(lease_outlives_the_daemon),
        cmocka_unit_test(prefetched_result_is_taken),
        cmocka_unit_test(leases_are_listed),
        cmocka_unit_test(wrong_parameters_are_refused),
        cmocka_unit_test(result_above_limit_is_refused),
    };
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
