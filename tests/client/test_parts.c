/* SPDX-License-Identifier: MIT
 *
 * Results that are larger than the memory of the daemon. libshuf requests them in parts, and gives
 * the values and the summary of the whole result. A second daemon has memory for the whole.
 */
#include "shuf.h"
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/sanitized.h"
#include "support/wire.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char small[] = "host_memory = 16Mi\ndevice_memory = 16Mi\n";

static struct harness narrow; /* the other daemon is harness_shared */

static int start_both(void **state)
{
    wire_start(&narrow, harness_backend, small);
    return harness_start_shared(state);
}

static int stop_both(void **state)
{
    const bool stopped = harness_stop(&narrow);
    return harness_stop_shared(state) == 0 && stopped ? 0 : -1;
}

/* ---- Both daemons give the same values ---- */

static shuf_shape shape_of(const shuf_request *r)
{
    shuf_shape shape;
    assert_int_equal(shuf_shape_of(r, &shape, NULL, 0), SHUF_OK);
    return shape;
}

static void copy_values(shuf *handle, const shuf_request *r, void *out, size_t bytes,
                        shuf_result *result)
{
    client_expect_ok(handle, shuf_copy(handle, r, out, bytes, result));
}

static void summarize(shuf *handle, const shuf_request *r, shuf_result *result)
{
    client_expect_ok(handle, shuf_summarize(handle, r, result));
}

struct compared {
    const char *expected;
    uint64_t bytes; /* bytes received so far */
    uint64_t end;   /* the callback stops the call at this byte */
    uint64_t width; /* bytes of a value, if chunks have whole values; 0: chunks have any size */
};

static bool compare_chunk(void *context, const void *bytes, size_t size)
{
    struct compared *c = context;
    assert_memory_equal(bytes, c->expected + c->bytes, size);
    if (c->width > 0)
        assert_int_equal(size % c->width, 0);
    c->bytes += size;
    return c->bytes < c->end;
}

static void check_close(double a, double b)
{
    assert_true(fabs(a - b) <= 1e-9 * (1 + fabs(b)));
}

static void check_shape(const shuf_shape *got, const shuf_shape *reference)
{
    assert_int_equal(got->rows, reference->rows);
    assert_int_equal(got->count, reference->count);
    assert_int_equal(got->dtype, reference->dtype);
    assert_int_equal(got->width, reference->width);
    assert_int_equal(got->bytes, reference->bytes);
}

static void check_result(const shuf_result *got, const shuf_result *reference)
{
    check_shape(&got->shape, &reference->shape);
    assert_string_equal(got->algorithm, reference->algorithm);
    assert_string_equal(got->backend, reference->backend);
    assert_int_equal(got->distribution, reference->distribution);
    assert_int_equal(got->method, reference->method);
    assert_int_equal(got->fingerprint, reference->fingerprint);
    assert_int_equal(got->n_first, reference->n_first);
    assert_int_equal(got->n_last, reference->n_last);
    assert_memory_equal(got->first, reference->first, sizeof got->first);
    assert_memory_equal(got->last, reference->last, sizeof got->last);
    assert_true(got->device_ns > 0);
    check_close(got->moments.mean, reference->moments.mean);
    check_close(got->moments.variance, reference->moments.variance);
    check_close(got->moments.skewness, reference->moments.skewness);
    check_close(got->moments.kurtosis, reference->moments.kurtosis);
    assert_true(got->moments.least == reference->moments.least);
    assert_true(got->moments.largest == reference->moments.largest);
}

/* A sink gets whole values in each chunk. */
static void check_sink(shuf *handle, const shuf_request *r, const char *expected)
{
    const shuf_shape shape = shape_of(r);
    struct compared c = {expected, 0, UINT64_MAX, shape.width};
    shuf_result result;
    client_expect_ok(handle, shuf_each(handle, r, compare_chunk, &c, &result));
    assert_int_equal(c.bytes, shape.bytes);
    assert_int_equal(result.shape.bytes, shape.bytes);
}

/* Every call gives the same values and the same summary from both daemons. */
static void check_request(const shuf_request *r)
{
    shuf *parts = client_open_at(&narrow), *whole = client_open_at(&harness_shared);
    const size_t bytes = shape_of(r).bytes;
    char *expected = malloc(bytes), *got = malloc(bytes);
    shuf_result reference, result;
    assert_true(expected && got && bytes > 16 << 20);
    copy_values(whole, r, expected, bytes, NULL);
    summarize(whole, r, &reference);
    copy_values(parts, r, got, bytes, NULL);
    assert_memory_equal(got, expected, bytes);
    check_sink(parts, r, expected);
    check_sink(whole, r, expected);
    summarize(parts, r, &result);
    check_result(&result, &reference);
    free(expected);
    free(got);
    shuf_close(whole);
    shuf_close(parts);
}

static void permutations_in_parts_match(void **state)
{
    (void)state;
    static const shuf_request cases[] = {
        {.permutation = {.n = 7000003, .seed = 7}},
        {.permutation = {.n = 7000003, .seed = 7, .epoch = 2, .algorithm = "philox24"}},
        {.permutation =
             {.n = 7000003, .seed = 7, .epoch = 2, .algorithm = "lcg", .dtype = SHUF_I64}},
        {.permutation = {.n = UINT64_C(1) << 40,
                         .seed = 1,
                         .view = SHUF_VIEW_SLICE,
                         .offset = 5,
                         .count = 3000000,
                         .stride = 1000}},
        /* the last value of this shard is at the front of the permutation */
        {.permutation = {.n = 10000001, .seed = 3, .view = SHUF_VIEW_SHARD, .rank = 1, .world = 2}},
        /* rows that are larger than a part, and rows that are smaller */
        {.permutation = {.n = 3000000, .seed = 9, .epoch = UINT64_MAX - 1, .epochs = 3}},
        {.permutation = {.n = 70001,
                         .seed = 9,
                         .epochs = 100,
                         .view = SHUF_VIEW_SHARD,
                         .rank = 2,
                         .world = 2 + 1,
                         .dtype = SHUF_U64}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_request(&cases[i]);
}

static void numbers_in_parts_match(void **state)
{
    (void)state;
    static const shuf_request cases[] = {
        {.kind = SHUF_NUMBERS,
         .numbers = {.distribution = SHUF_GAUSS,
                     .seed = 7,
                     .offset = 77,
                     .count = 3000001,
                     .std = 2,
                     .mean = 1,
                     .moments = true}},
        {.kind = SHUF_NUMBERS,
         .numbers = {.distribution = SHUF_GAUSS,
                     .method = SHUF_BOX_MULLER,
                     .seed = 7,
                     .count = 9000001,
                     .std = 1,
                     .dtype = SHUF_BF16,
                     .moments = true}},
        {.kind = SHUF_NUMBERS,
         .numbers = {.distribution = SHUF_UNIFORM,
                     .seed = 7,
                     .stream = 3,
                     .count = 5000000,
                     .dtype = SHUF_F32,
                     .moments = true}},
        {.kind = SHUF_NUMBERS,
         .numbers = {.distribution = SHUF_UNIFORM, .seed = 7, .count = 5000000, .dtype = SHUF_U32}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_request(&cases[i]);
}

/* ---- Whole values, fingerprints, the end of a call ---- */

/* libshuf reads the frame of a reply together with the first bytes of the payload. These bytes may
 * end inside a value. */
static void small_results_have_whole_values(void **state)
{
    (void)state;
    shuf *handle = client_open_at(&harness_shared);
    static const shuf_dtype dtypes[] = {SHUF_F64, SHUF_F32, SHUF_BF16};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        for (uint64_t count = 1; count < 200000; count = count * 3 + 1) {
            const shuf_request numbers = {.kind = SHUF_NUMBERS,
                                          .numbers = {.distribution = SHUF_GAUSS,
                                                      .std = 1,
                                                      .seed = 100000000 + count,
                                                      .count = count,
                                                      .dtype = dtypes[i]}};
            char *expected = malloc(shape_of(&numbers).bytes);
            copy_values(handle, &numbers, expected, shape_of(&numbers).bytes, NULL);
            check_sink(handle, &numbers, expected);
            free(expected);
        }
    shuf_close(handle);
}

/* libshuf computes the fingerprint while it receives the values. */
static void fingerprint_comes_with_values(void **state)
{
    (void)state;
    const shuf_request p = {.permutation = {.n = 7000003, .seed = 8, .fingerprint = true}};
    shuf *parts = client_open_at(&narrow), *whole = client_open_at(&harness_shared);
    char *got = malloc(shape_of(&p).bytes);
    shuf_result result, reference;
    summarize(whole, &p, &reference);
    copy_values(parts, &p, got, shape_of(&p).bytes, &result);
    check_result(&result, &reference);
    free(got);
    shuf_close(whole);
    shuf_close(parts);
}

/* A part of a large result is in the cache as the result of a slice. A request for that slice gets
 * the slice's own fingerprint, not that of the large result. */
static void slice_of_a_part_has_own_fingerprint(void **state)
{
    (void)state;
    const shuf_request all = {.permutation = {.n = 7000003, .seed = 9}};
    shuf_request slice = {
        .permutation = {
            .n = 7000003, .seed = 9, .view = SHUF_VIEW_SLICE, .stride = 1, .count = 1 << 19}};
    shuf *parts = client_open_at(&narrow), *whole = client_open_at(&harness_shared);
    shuf_result result, reference;
    shuf_request first = slice;
    first.permutation.count = 699050; /* the first part: a sixth of 16 MiB */
    summarize(parts, &first, &result);
    summarize(parts, &all, &result);
    assert_false(result.shared); /* only the first part is in the cache */
    for (slice.permutation.offset = 0;
         slice.permutation.offset + slice.permutation.count < all.permutation.n;
         slice.permutation.offset += slice.permutation.count) {
        summarize(whole, &slice, &reference);
        summarize(parts, &slice, &result);
        assert_int_equal(result.fingerprint, reference.fingerprint);
    }
    shuf_close(whole);
    shuf_close(parts);
}

static void sink_stops_the_parts(void **state)
{
    (void)state;
    const shuf_request p = {.permutation = {.n = 7000003, .seed = 7}};
    shuf *parts = client_open_at(&narrow), *whole = client_open_at(&harness_shared);
    char *expected = malloc(shape_of(&p).bytes);
    copy_values(whole, &p, expected, shape_of(&p).bytes, NULL);
    struct compared c = {expected, 0, 12 << 20, 0};
    assert_int_equal(shuf_each(parts, &p, compare_chunk, &c, NULL), SHUF_CANCELLED);
    assert_true(c.bytes >= c.end && c.bytes < c.end + (1 << 20));
    char message[80];
    snprintf(message, sizeof message, "stopped by its sink after %" PRIu64 " of 28000012 bytes",
             c.bytes);
    assert_string_equal(shuf_message(parts), message);
    c = (struct compared){expected, 0, UINT64_MAX, 0};
    client_expect_ok(parts,
                     shuf_each(parts, &p, compare_chunk, &c, NULL)); /* the handle still works */
    assert_int_equal(c.bytes, shape_of(&p).bytes);
    free(expected);
    shuf_close(whole);
    shuf_close(parts);
}

static bool cancel_at_once(void *context, const void *bytes, size_t size)
{
    (void)bytes;
    (void)size;
    shuf_cancel(context);
    return true;
}

/* The sink has returned true, so the message does not say that it has stopped the call. */
static void cancellation_keeps_its_reason(void **state)
{
    (void)state;
    const shuf_request p = {.permutation = {.n = 7000003, .seed = 7}};
    shuf *parts = client_open_at(&narrow);
    assert_int_equal(shuf_each(parts, &p, cancel_at_once, parts, NULL), SHUF_CANCELLED);
    assert_string_equal(shuf_message(parts), "handle: another thread cancelled its calls");
    shuf_close(parts);
}

/* ---- Memory ---- */

static double requests_with(const char *kind, const char *status)
{
    char sample[80];
    snprintf(sample, sizeof sample, "shufd_requests_total{kind=\"%s\",status=\"%s\"}", kind,
             status);
    char *text = metrics_read(&narrow);
    const double count = strstr(text, sample) ? metrics_value(text, sample) : 0;
    free(text);
    return count;
}

/* Expects that the daemon counts the call for the whole result as divided, and no refusal. */
static void expect_division(shuf *parts, const char *kind, const shuf_request *r)
{
    const double divided = requests_with(kind, "DIVIDED"),
                 refused = requests_with(kind, "NO_MEMORY") + requests_with(kind, "BUSY");
    char *values = malloc(shape_of(r).bytes);
    copy_values(parts, r, values, shape_of(r).bytes, NULL);
    free(values);
    assert_true(requests_with(kind, "DIVIDED") > divided);
    assert_true(requests_with(kind, "NO_MEMORY") + requests_with(kind, "BUSY") == refused);
}

/* The daemon counts and logs a refusal only if the client does not request parts. */
static void division_is_no_refusal(void **state)
{
    (void)state;
    static char log[65536];
    const shuf_request p = {.permutation = {.n = 7000009, .seed = 7}};
    const shuf_request numbers = {
        .kind = SHUF_NUMBERS,
        .numbers = {.distribution = SHUF_UNIFORM, .count = 7000009, .seed = 7, .dtype = SHUF_U32}};
    shuf *parts = client_open_at(&narrow);
    expect_division(parts, "permute", &p);
    expect_division(parts, "stream", &numbers);
    shufd_read(narrow.log, log, sizeof log);
    assert_null(strstr(log, "NO_MEMORY"));
    const double refused = requests_with("permute", "NO_MEMORY");
    shuf_lease *lease = NULL;
    assert_int_equal(shuf_lease_take(parts, &p, NULL, &lease), SHUF_NO_MEMORY);
    assert_true(requests_with("permute", "NO_MEMORY") == refused + 1);
    shufd_await(narrow.log, log, sizeof log, "NO_MEMORY");
    shuf_close(parts);
}

/* A lease needs memory for the whole result. So does a call without a sink, which only caches the
 * result. */
static void lease_needs_memory_for_all(void **state)
{
    (void)state;
    const shuf_request p = {.permutation = {.n = 7000003, .seed = 7}};
    shuf *parts = client_open_at(&narrow);
    shuf_lease *lease = NULL;
    assert_int_equal(shuf_lease_take(parts, &p, NULL, &lease), SHUF_NO_MEMORY);
    assert_non_null(strstr(shuf_message(parts), "the limit is "));
    assert_int_equal(shuf_each(parts, &p, NULL, NULL, NULL), SHUF_NO_MEMORY);
    shuf_close(parts);
}

/* The leases of another client leave only a few MiB. The values and the summary still arrive, in
 * parts. */
static void parts_fit_beside_other_results(void **state)
{
    (void)state;
    const shuf_request held = {.permutation = {.n = 2000000, .seed = 1}},
                       p = {.permutation = {.n = 7000003, .seed = 7}};
    shuf_result result, reference;
    shuf *other = client_open_at(&narrow), *parts = client_open_at(&narrow),
         *whole = client_open_at(&harness_shared);
    char *expected = malloc(shape_of(&p).bytes);
    shuf_lease *lease = NULL;
    const shuf_lease_options own = {.transports =
                                        strcmp(harness_backend, "cpu") ? SHUF_CUDA_FD : SHUF_MEMFD};
    client_expect_ok(other, shuf_lease_take(other, &held, &own, &lease));
    copy_values(whole, &p, expected, shape_of(&p).bytes, NULL);
    struct compared c = {expected, 0, UINT64_MAX, 0};
    client_expect_ok(parts, shuf_each(parts, &p, compare_chunk, &c, NULL));
    assert_int_equal(c.bytes, shape_of(&p).bytes);
    summarize(whole, &p, &reference);
    summarize(parts, &p, &result);
    check_result(&result, &reference);
    free(expected);
    shuf_close(other);
    shuf_close(whole);
    shuf_close(parts);
}

static void *close_later(void *handle)
{
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    shuf_close(handle);
    return NULL;
}

/* Leases of another client use all memory and end after a while. The call waits for them. A GPU
 * needs memory too for a summary of a windowed order. */
static void parts_wait_for_memory(void **state)
{
    (void)state;
    const shuf_request held = {.permutation = {.n = 4000000, .seed = 1}},
                       p = {.permutation = {.n = 7000003, .seed = 7, .chunk = 1000, .window = 50}};
    shuf *other = client_open_at(&narrow), *parts = client_open_at(&narrow),
         *whole = client_open_at(&harness_shared);
    shuf_lease *lease = NULL;
    shuf_result result, reference;
    pthread_t thread;
    const shuf_lease_options own = {.transports =
                                        strcmp(harness_backend, "cpu") ? SHUF_CUDA_FD : SHUF_MEMFD};
    summarize(whole, &p, &reference);
    client_expect_ok(other, shuf_lease_take(other, &held, &own, &lease));
    shuf_set_reconnect(parts, 0);
    assert_int_equal(shuf_summarize(parts, &p, &result), SHUF_BUSY);
    shuf_set_reconnect(parts, 60000);
    assert_int_equal(pthread_create(&thread, NULL, close_later, other), 0);
    summarize(parts, &p, &result);
    check_result(&result, &reference);
    pthread_join(thread, NULL);
    shuf_close(whole);
    shuf_close(parts);
}

/* ---- Records ---- */

static shuf_status stream_records(shuf *handle, const shuf_records *records, const char *in,
                                  struct compared *c, shuf_result *result)
{
    return shuf_shuffle_each(handle, records, in, records->n * records->record, compare_chunk, c,
                             result);
}

/* The daemon has no memory for the records, so libshuf moves them. */
static void check_records(const shuf_records *records)
{
    const size_t bytes = records->n * records->record;
    shuf *parts = client_open_at(&narrow), *whole = client_open_at(&harness_shared);
    char *in = malloc(bytes), *expected = malloc(bytes), *got = malloc(bytes);
    shuf_result reference, result;
    assert_true(in && expected && got);
    for (size_t i = 0; i < bytes; i++)
        in[i] = (char)(i * 0x9E3779B97F4A7C15u >> 40);
    client_expect_ok(whole, shuf_shuffle(whole, records, in, expected, bytes, &reference));
    client_expect_ok(parts, shuf_shuffle(parts, records, in, got, bytes, &result));
    assert_memory_equal(got, expected, bytes);
    check_shape(&result.shape, &reference.shape);
    assert_string_equal(result.algorithm, reference.algorithm);
    assert_int_equal(result.n_first + result.n_last + result.fingerprint, 0);
    struct compared c = {expected, 0, UINT64_MAX, records->record};
    if (records->inverse) {
        assert_int_equal(stream_records(parts, records, in, &c, NULL), SHUF_INVALID);
        assert_non_null(strstr(shuf_message(parts), "inverse 1: expected 0"));
    } else {
        assert_int_equal(shuf_shuffle_each(parts, records, NULL, bytes, NULL, NULL, NULL),
                         SHUF_INVALID);
        assert_string_equal(shuf_message(parts), "in NULL: expected the records");
        client_expect_ok(parts, stream_records(parts, records, in, &c, &result));
        assert_int_equal(c.bytes, bytes);
        check_shape(&result.shape, &reference.shape);
        c = (struct compared){expected, 0, bytes / 2, 0};
        assert_int_equal(stream_records(parts, records, in, &c, NULL), SHUF_CANCELLED);
        assert_true(c.bytes < bytes);
    }
    free(in);
    free(expected);
    free(got);
    shuf_close(whole);
    shuf_close(parts);
}

static void shuffled_records_match(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 3, 4, 8, 100, 65536, 1500001};
    for (size_t i = TEST_SANITIZED ? 3 : 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int inverse = 0; inverse < 2; inverse++)
            check_records(&(shuf_records){.algorithm = i % 2 ? "philox24" : NULL,
                                          .n = (20 << 20) / sizes[i] + 1,
                                          .record = sizes[i],
                                          .seed = 7,
                                          .epoch = i,
                                          .inverse = inverse});
}

static void wrong_records_are_refused(void **state)
{
    (void)state;
    shuf *handle = client_open_at(&narrow);
    const shuf_records r = {.n = 10, .record = 2};
    char in[20] = "";
    struct compared c = {in, 0, UINT64_MAX, 0};
    assert_int_equal(shuf_shuffle_each(handle, &r, in, 19, compare_chunk, &c, NULL), SHUF_INVALID);
    assert_non_null(strstr(shuf_message(handle), "bytes 19: expected at least 20"));
    assert_int_equal(shuf_shuffle_each(handle, &r, NULL, 20, compare_chunk, &c, NULL),
                     SHUF_INVALID);
    assert_non_null(strstr(shuf_message(handle), "in NULL"));
    assert_int_equal(shuf_shuffle_each(handle, &r, in, 20, NULL, &c, NULL), SHUF_INVALID);
    assert_non_null(strstr(shuf_message(handle), "sink NULL"));
    shuf_close(handle);
}

/* ---- The budget and the caller's own leases ---- */

static void idle_limit_is_below_the_budget(void **state)
{
    (void)state;
    shuf_daemon daemon;
    shuf *handle = client_open_at(&narrow);
    client_expect_ok(handle, shuf_daemon_status(handle, &daemon));
    assert_int_equal(daemon.host_limit, 16 << 20);
    assert_int_equal(daemon.host_idle_limit, 16 << 20);
    shuf_close(handle);
}

/* The daemon acquires memory only when the computation begins. The caller may release its own lease
 * before that. */
static void prefetch_waits_for_release(void **state)
{
    (void)state;
    const shuf_request held = {.permutation = {.n = 3 << 20, .seed = 71}},
                       next = {.permutation = {.n = 3 << 20, .seed = 72}};
    shuf *handle = client_open_at(&narrow);
    shuf_lease *lease = NULL, *other = NULL;
    client_expect_ok(handle, shuf_lease_take(handle, &held, NULL, &lease));
    client_expect_ok(handle, shuf_prefetch(handle, &next, NULL));
    assert_int_equal(shuf_lease_take(handle, &next, NULL, &other), SHUF_BUSY);
    assert_non_null(strstr(shuf_message(handle), "12 MiB of 16 MiB are held by this user's own "
                                                 "leases and requests (host_memory): release a "
                                                 "lease"));
    assert_null(strstr(shuf_message(handle), "try again"));
    client_expect_ok(handle, shuf_lease_release(handle, &lease));
    client_expect_ok(handle, shuf_lease_take(handle, &next, NULL, &other));
    shuf_close(handle);
}

/* ---- Events ---- */

struct events {
    unsigned parts, others;
    uint64_t done;
};

static void note_event(void *context, shuf_event event, uint64_t done, uint64_t all)
{
    struct events *e = context;
    if (event != SHUF_EVENT_PART) {
        e->others++;
        return;
    }
    assert_true(done > e->done && done <= all && all == 7000003 * 4);
    e->done = done;
    e->parts++;
}

/* The number of requests that shared a finished result or a running computation. */
static uint64_t count_shared(shuf *handle)
{
    shuf_daemon daemon;
    client_expect_ok(handle, shuf_daemon_status(handle, &daemon));
    return daemon.hits + daemon.joined;
}

static void parts_are_observed(void **state)
{
    (void)state;
    const shuf_request p = {.permutation = {.n = 7000003, .seed = 7}};
    struct events e = {.parts = 0};
    const size_t bytes = p.permutation.n * sizeof(uint32_t);
    void *values = malloc(bytes);
    shuf *handle = client_open_at(&narrow);
    assert_non_null(values);
    shuf_set_observer(handle, note_event, &e);
    const uint64_t before = count_shared(handle);
    client_expect_ok(handle, shuf_copy(handle, &p, values, bytes, NULL));
    assert_true(e.parts > 2 && e.others == 0 && e.done == bytes);
    assert_true(count_shared(handle) - before >= e.parts); /* each part was prefetched */
    shuf_set_observer(handle, NULL, NULL);
    client_expect_ok(handle, shuf_copy(handle, &p, values, bytes, NULL));
    assert_int_equal(e.done, bytes);
    shuf_close(handle);
    free(values);
}

/* ---- A daemon that hangs during a result ---- */

enum { TIMEOUT_MS = 5000 }; /* far longer than the computation of a part */

struct hang_state {
    unsigned parts, lost;
};

/* Stops the daemon at the second part. Counts losses, because a call that loses its daemon would
 * wait again. */
static void hang_after_two_parts(void *context, shuf_event event, uint64_t done, uint64_t all)
{
    struct hang_state *h = context;
    (void)done;
    (void)all;
    h->lost += event == SHUF_EVENT_LOST;
    if (event != SHUF_EVENT_PART || ++h->parts != 2)
        return;
    assert_true(harness_pause(&narrow));
}

static void one_timeout_ends_all_parts(void **state)
{
    (void)state;
    const shuf_request p = {.permutation = {.n = 7000003, .seed = 70}};
    const size_t bytes = p.permutation.n * sizeof(uint32_t);
    void *values = malloc(bytes);
    shuf *handle = client_open_at(&narrow);
    struct hang_state hanging = {.parts = 0};
    shuf_set_observer(handle, hang_after_two_parts, &hanging);
    shuf_set_timeout(handle, TIMEOUT_MS);
    assert_int_equal(shuf_copy(handle, &p, values, bytes, NULL), SHUF_TIMEOUT);
    assert_non_null(strstr(shuf_message(handle), "did nothing for 5000 ms"));
    assert_int_equal(hanging.parts, 2);
    assert_int_equal(hanging.lost, 0);
    assert_int_equal(kill(narrow.pid, SIGCONT), 0);
    shuf_close(handle);
    free(values);
}

/* ---- A daemon that dies during a result ---- */

static bool kill_once(void *context, const void *bytes, size_t size)
{
    struct compared *c = context;
    const uint64_t before = c->bytes;
    compare_chunk(c, bytes, size);
    if (before < 5 << 20 && c->bytes >= 5 << 20) {
        harness_kill(&narrow, SIGKILL);
        assert_true(harness_restart(&narrow));
    }
    return true;
}

static void parts_continue_after_killed_daemon(void **state)
{
    (void)state;
    const shuf_request p = {.permutation = {.n = 7000003, .seed = 7}};
    shuf *parts = client_open_at(&narrow), *whole = client_open_at(&harness_shared);
    char *expected = malloc(shape_of(&p).bytes);
    copy_values(whole, &p, expected, shape_of(&p).bytes, NULL);
    struct compared c = {expected, 0, UINT64_MAX, sizeof(uint32_t)};
    client_expect_ok(parts, shuf_each(parts, &p, kill_once, &c, NULL));
    assert_int_equal(c.bytes, shape_of(&p).bytes);
    free(expected);
    shuf_close(whole);
    shuf_close(parts);
}

/* Each new daemon has less memory, so the rest of the part is requested in smaller parts. */
static const struct {
    uint64_t at; /* bytes received when the daemon is replaced */
    const char *config;
} shrinking[] = {
    {3 << 20, "host_memory = 16Mi\ndevice_memory = 16Mi\n"},
    {10 << 20, "host_memory = 4Mi\ndevice_memory = 4Mi\n"},
    {17 << 20, "host_memory = 2Mi\ndevice_memory = 2Mi\n"},
};

enum { SHRINKING = sizeof shrinking / sizeof *shrinking };

static void replace_daemon(const char *config)
{
    char path[HARNESS_PATH + 8];
    snprintf(path, sizeof path, "%s/conf", narrow.directory);
    shufd_write(path, config);
    harness_kill(&narrow, SIGKILL);
    assert_true(harness_restart(&narrow));
}

static bool replace_by_smaller_daemon(void *context, const void *bytes, size_t size)
{
    struct compared *c = context;
    const uint64_t before = c->bytes;
    compare_chunk(c, bytes, size);
    for (int i = 0; i < SHRINKING; i++)
        if (before < shrinking[i].at && c->bytes >= shrinking[i].at)
            replace_daemon(shrinking[i].config);
    return true;
}

static void parts_continue_at_smaller_daemons(void **state)
{
    (void)state;
    const shuf_request p = {.permutation = {.n = 7000003, .seed = 7}};
    replace_daemon("host_memory = 64Mi\ndevice_memory = 64Mi\n"); /* memory for the whole result */
    shuf *parts = client_open_at(&narrow), *whole = client_open_at(&harness_shared);
    char *expected = malloc(shape_of(&p).bytes);
    shuf_result result, reference;
    copy_values(whole, &p, expected, shape_of(&p).bytes, NULL);
    summarize(whole, &p, &reference);
    struct compared c = {expected, 0, UINT64_MAX, 0};
    shuf_request with_summary = p;
    with_summary.permutation.fingerprint = true;
    client_expect_ok(parts,
                     shuf_each(parts, &with_summary, replace_by_smaller_daemon, &c, &result));
    assert_int_equal(c.bytes, shape_of(&p).bytes);
    check_result(&result, &reference);
    replace_daemon(small);
    free(expected);
    shuf_close(whole);
    shuf_close(parts);
}

static void count_parts(void *context, shuf_event event, uint64_t done, uint64_t all)
{
    (void)done;
    (void)all;
    *(unsigned *)context += event == SHUF_EVENT_PART;
}

/* The daemon would not keep so large a result, so the summary takes little memory and, on a CPU,
 * has progress. */
static void summary_of_a_result_that_is_not_kept(void **state)
{
    (void)state;
    const shuf_request p = {.permutation = {.n = 140000003, .seed = 7}}; /* 560 MB */
    shuf_result result, reference;
    unsigned parts = 0;
    replace_daemon("host_memory = 512Mi\nhost_cache = 16Mi\n"
                   "device_memory = 512Mi\ndevice_cache = 16Mi\n");
    shuf *handle = client_open_at(&narrow), *whole = client_open_at(&harness_shared);
    client_expect_ok(whole, shuf_summarize(whole, &p, &reference));
    shuf_set_observer(handle, count_parts, &parts);
    client_expect_ok(handle, shuf_summarize(handle, &p, &result));
    if (strcmp(harness_backend, "cpu") == 0)
        assert_true(parts > 1);
    check_result(&result, &reference);
    shuf_close(whole);
    shuf_close(handle);
    replace_daemon(small);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_limit_is_below_the_budget),
        cmocka_unit_test(prefetch_waits_for_release),
        cmocka_unit_test(permutations_in_parts_match),
        cmocka_unit_test(numbers_in_parts_match),
        cmocka_unit_test(small_results_have_whole_values),
        cmocka_unit_test(fingerprint_comes_with_values),
        cmocka_unit_test(slice_of_a_part_has_own_fingerprint),
        cmocka_unit_test(sink_stops_the_parts),
        cmocka_unit_test(cancellation_keeps_its_reason),
        cmocka_unit_test(division_is_no_refusal),
        cmocka_unit_test(lease_needs_memory_for_all),
        cmocka_unit_test(parts_fit_beside_other_results),
        cmocka_unit_test(parts_wait_for_memory),
        cmocka_unit_test(shuffled_records_match),
        cmocka_unit_test(wrong_records_are_refused),
        cmocka_unit_test(parts_are_observed),
        cmocka_unit_test(one_timeout_ends_all_parts),
        cmocka_unit_test(parts_continue_after_killed_daemon),
        cmocka_unit_test(parts_continue_at_smaller_daemons),
        cmocka_unit_test(summary_of_a_result_that_is_not_kept),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, start_both, stop_both);
}
