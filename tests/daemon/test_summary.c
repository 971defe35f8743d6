/* SPDX-License-Identifier: MIT
 *
 * Results of a real daemon: summaries alone need memory for one tile, not for the whole result; the
 * values do not depend on who computes them; a small result costs about its own size in memory.
 */
#include "shuf.h"
#include "shuf/fingerprint.h"
#include "shuf/primefold.h"
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/golden.h"
#include "support/wire.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Summaries ---- */

/* The memory is smaller than each result below, so a client gets values only in parts. */
static int start(void **state)
{
    static struct harness h;
    wire_start(&h, harness_backend, "host_memory = 16Mi\ndevice_memory = 16Mi\n");
    *state = &h;
    return 0;
}

static int stop(void **state)
{
    return harness_stop(*state) ? 0 : -1;
}

static uint64_t value_of(const void *values, unsigned width, uint64_t i)
{
    uint64_t value = 0;
    memcpy(&value, (const char *)values + i * width, width);
    return value;
}

static void expect_summary(const shuf_result *result, const void *values)
{
    const shuf_shape *shape = &result->shape;
    const unsigned width = (unsigned)shape->width;
    const uint64_t count = shape->rows * shape->count;
    uint64_t *wide = malloc(count * sizeof *wide);
    assert_non_null(wide);
    for (uint64_t i = 0; i < count; i++)
        wide[i] = value_of(values, width, i);
    assert_true(result->fingerprint == golden_fingerprint(wide, count));
    assert_int_equal(result->n_first, SHUF_SAMPLES);
    assert_int_equal(result->n_last, SHUF_SAMPLES);
    assert_memory_equal(result->first, wide, sizeof result->first);
    assert_memory_equal(result->last, wide + count - SHUF_SAMPLES, sizeof result->last);
    free(wide);
}

static void check_permutation(shuf *handle, const shuf_request *request)
{
    shuf_shape shape;
    shuf_result result;
    assert_int_equal(shuf_shape_of(request, &shape, NULL, 0), SHUF_OK);
    void *values = malloc(shape.bytes);
    assert_non_null(values);
    client_expect_ok(handle, shuf_summarize(handle, request, &result));
    assert_false(result.shared);
    client_expect_ok(handle, shuf_copy(handle, request, values, shape.bytes, NULL));
    expect_summary(&result, values);
    free(values);
}

static void summaries_of_permutations_match(void **state)
{
    enum { N = TEST_SANITIZED ? 5000003 : 17000003 };
    const shuf_request requests[] = {
        {.permutation = {.n = N, .seed = 7}},
        {.permutation = {.n = N, .seed = 7, .dtype = SHUF_I64}},
        {.permutation = {.algorithm = "philox24", .n = N, .seed = 7}},
        {.permutation = {.algorithm = "lcg", .n = N, .seed = 7, .dtype = SHUF_U64}},
        {.permutation =
             {.n = N, .view = SHUF_VIEW_SLICE, .offset = 5, .stride = 3, .count = N / 3 - 2}},
        /* the last value is at the front of the permutation */
        {.permutation = {.n = N, .view = SHUF_VIEW_SHARD, .rank = 3, .world = 4}},
        {.permutation = {.n = 100, .seed = 7, .epochs = 60001}}, /* a tile has many rows */
        {.permutation = {.n = 9000001, .seed = 7, .epoch = UINT64_MAX, .epochs = 2}},
        {.permutation = {.n = UINT64_C(1) << 40,
                         .view = SHUF_VIEW_SLICE,
                         .offset = 1,
                         .stride = 99991,
                         .count = 3000001}},
    };
    shuf *handle = client_open_at(*state);
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        check_permutation(handle, &requests[i]);
    shuf_close(handle);
}

/* The last tile has only one to five values, so the last values of the summary may come from two
 * tiles. */
static void last_values_come_from_two_tiles(void **state)
{
    /* the values of a tile on a CPU, whose least and best sizes are equal */
    enum { TILE = 2 << 20 };
    shuf *handle = client_open_at(*state);
    for (uint64_t more = 1; more <= 5; more++) {
        const shuf_request request = {.permutation = {.n = 8 * TILE + more, .seed = more}};
        check_permutation(handle, &request);
    }
    shuf_close(handle);
}

static void check_moments(const shuf_moments *moments, const double *values, uint64_t count)
{
    double sum = 0, squares = 0, least = values[0], largest = values[0];
    for (uint64_t i = 0; i < count; i++) {
        sum += values[i];
        least = fmin(least, values[i]);
        largest = fmax(largest, values[i]);
    }
    const double mean = sum / (double)count;
    for (uint64_t i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    assert_true(fabs(moments->mean - mean) < 1e-9);
    assert_true(fabs(moments->variance - squares / (double)count) < 1e-9);
    assert_true(moments->least == least && moments->largest == largest);
}

static void summaries_of_streams_match(void **state)
{
    enum { COUNT = 9000017 };
    double *values = malloc(COUNT * sizeof *values);
    shuf_result result;
    shuf *handle = client_open_at(*state);
    assert_non_null(values);
    for (int i = 0; i < 3; i++) {
        const shuf_request request = {.kind = SHUF_NUMBERS,
                                      .numbers = {.distribution = i < 2 ? SHUF_GAUSS : SHUF_UNIFORM,
                                                  .method = i == 1 ? SHUF_BOX_MULLER : SHUF_TABLE,
                                                  .seed = 7,
                                                  .offset = 12345,
                                                  .count = COUNT,
                                                  .std = i < 2,
                                                  .moments = true}};
        client_expect_ok(handle, shuf_summarize(handle, &request, &result));
        client_expect_ok(handle, shuf_copy(handle, &request, values, COUNT * sizeof *values, NULL));
        expect_summary(&result, values);
        check_moments(&result.moments, values, COUNT);
    }
    shuf_close(handle);
    free(values);
}

/* Returns the number of pages that the daemon has touched for the first time. */
static uint64_t page_faults(const struct harness *h)
{
    char path[64];
    uint64_t faults = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)h->pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %" SCNu64, &faults), 1);
    fclose(file);
    return faults;
}

/* A result of 400 MB in memory would touch 100 000 pages. */
static void summary_allocates_no_result(void **state)
{
    const struct harness *h = *state;
    shuf_result result;
    shuf *handle = client_open_at(h);
    const shuf_request request = {.permutation = {.n = 100000000, .seed = 7}};
    const uint64_t before = page_faults(h);
    client_expect_ok(handle, shuf_summarize(handle, &request, &result));
    assert_true(page_faults(h) - before < 20000);
    assert_true(wire_status(h).memory_used <= 16 << 20);
    assert_true(result.device_ns > 0);
    shuf_close(handle);
}

/* A cached result already has its summary. A small result is computed, and stays in the cache. */
static void summary_uses_cached_result(void **state)
{
    const struct harness *h = *state;
    shuf_result result;
    shuf_lease *lease = NULL;
    shuf *handle = client_open_at(h);
    const shuf_request large = {.permutation = {.n = 3000000, .seed = 9}},
                       small = {.permutation = {.n = 1000, .seed = 9}};
    client_expect_ok(handle, shuf_lease_take(handle, &large, NULL, &lease));
    client_expect_ok(handle, shuf_summarize(handle, &large, &result));
    assert_true(result.shared);
    shuf_lease_release(handle, &lease);
    client_expect_ok(handle, shuf_summarize(handle, &small, &result));
    client_expect_ok(handle, shuf_summarize(handle, &small, &result));
    assert_true(result.shared);
    shuf_close(handle);
}

/* ---- Every host_results gives the golden values ---- */

static struct harness h;
static struct wire *w;

/* The values, and their fingerprint. */
static uint32_t *expect(uint64_t n, uint64_t *fingerprint)
{
    const shuf_primefold f = shuf_primefold_make(n, 7, 0);
    uint32_t *values = malloc(n * sizeof *values);
    assert_non_null(values);
    *fingerprint = 0;
    for (uint64_t i = 0; i < n; i++) {
        values[i] = (uint32_t)shuf_primefold_forward(&f, i);
        *fingerprint += shuf_fingerprint_term(i, values[i]);
    }
    return values;
}

static void check_copy(uint64_t n, const uint32_t *expected)
{
    uint32_t *values = malloc(n * sizeof *values);
    struct shuf__result_message permute = wire_permutation(n, SHUF__TRANSPORT__TRANSPORT_INLINE);
    assert_non_null(values);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_OK, "");
    wire_read_payload(w, values, n * sizeof *values);
    assert_memory_equal(values, expected, n * sizeof *values);
    free(values);
}

static void check_lease(uint64_t n, const uint32_t *expected)
{
    const Shuf__ResultReply *reply = wire_lease(w, n, 7, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    const uint64_t lease = reply->lease, block = reply->block, bytes = reply->block_bytes;
    const void *values = wire_map(w, bytes);
    assert_memory_equal(values, expected, n * sizeof *expected);
    wire_unmap(values, bytes);
    wire_release(w, lease, block);
}

static void check_summary(uint64_t n, uint64_t fingerprint)
{
    struct shuf__result_message permute = wire_permutation(n, SHUF__TRANSPORT__TRANSPORT_NONE);
    permute.delivery.fingerprint = true;
    wire_send_result(w, &permute);
    assert_int_equal(wire_expect(w, SHUF_OK, "")->result->fingerprint, fingerprint);
}

static void values_are_equal_everywhere(void **state)
{
    static const char *const places[] = {"auto", "host", "device"};
    static const uint64_t sizes[] = {1, 1000, 5000, 100000, 3000000};
    (void)state;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        const char *extra[] = {"--host-results", places[p], "--cache-time", "0", NULL};
        assert_true(harness_start(&h, harness_backend, extra));
        w = wire_greet(&h);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            uint64_t fingerprint;
            uint32_t *expected = expect(sizes[i], &fingerprint);
            check_summary(sizes[i], fingerprint);
            check_copy(sizes[i], expected);
            check_lease(sizes[i], expected);
            free(expected);
        }
        wire_close(w);
        assert_true(harness_stop(&h));
    }
}

/* ---- Small results: a user with thousands of them leaves room for others ---- */

#define MI (UINT64_C(1) << 20)
#define MEMFD SHUF__TRANSPORT__TRANSPORT_MEMFD

enum { LEASES = 512 };

static int start_small(void **state)
{
    (void)state;
    wire_start(&h, harness_backend, "host_memory = 16Mi\nclients = 16\n");
    w = wire_greet(&h);
    return 0;
}

static int stop_small(void **state)
{
    (void)state;
    wire_close(w);
    return harness_stop(&h) ? 0 : -1;
}

/* A block below 2 MiB has whole pages. Only a few sizes exist between two powers of two, so that
 * blocks can be reused. */
static void block_size_is_near_result_size(void **state)
{
    (void)state;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t n[] = {1, 1000, 1024, 1025, 10000, 100000, 262144, 500000, 524287};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        const Shuf__ResultReply *reply = wire_lease(w, n[i], 7, MEMFD);
        assert_in_range(reply->block_bytes, 4 * n[i], 4 * n[i] + 4 * n[i] / 8 + page - 1);
        wire_release(w, reply->lease, reply->block);
    }
    const Shuf__ResultReply *reply = wire_lease(w, 524288, 7, MEMFD);
    assert_int_equal(reply->block_bytes, 2 * MI);
    wire_release(w, reply->lease, reply->block);
}

static void many_leases_take_little_memory(void **state)
{
    (void)state;
    uint64_t blocks[LEASES];
    for (uint64_t i = 0; i < LEASES; i++) {
        const Shuf__ResultReply *reply = wire_lease(w, 1000, 100 + i, MEMFD);
        blocks[i] = reply->block;
        for (uint64_t j = 0; j < i; j++)
            assert_true(blocks[j] != blocks[i]);
    }
    assert_in_range(wire_status(&h).host_used, LEASES * UINT64_C(4000), 8 * MI);
    struct wire *other = wire_greet(&h);
    const Shuf__ResultReply *reply = wire_lease(other, MI, 1, MEMFD);
    assert_int_equal(reply->block_bytes, 4 * MI);
    wire_check_alive(other);
    wire_close(other);
}

/* The number of idle blocks has a limit, because each of them has a descriptor. */
static void number_of_idle_blocks_is_limited(void **state)
{
    (void)state;
    enum { SIZES = 40, EACH = 64, MOST = 2048 };
    for (uint64_t i = 0; i < SIZES * EACH; i++) {
        const Shuf__ResultReply *reply = wire_lease(w, 1 + 1024 * (i % 16), 1000 + i, MEMFD);
        wire_release(w, reply->lease, reply->block);
    }
    assert_in_range(wire_status(&h).blocks, 1, MOST + 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(summaries_of_permutations_match),
        cmocka_unit_test(last_values_come_from_two_tiles),
        cmocka_unit_test(summaries_of_streams_match),
        cmocka_unit_test(summary_allocates_no_result),
        cmocka_unit_test(summary_uses_cached_result),
    };
    const struct CMUnitTest other_tests[] = {
        cmocka_unit_test(values_are_equal_everywhere),
        cmocka_unit_test_setup_teardown(block_size_is_near_result_size, start_small, stop_small),
        cmocka_unit_test_setup_teardown(many_leases_take_little_memory, start_small, stop_small),
        cmocka_unit_test_setup_teardown(number_of_idle_blocks_is_limited, start_small, stop_small),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, start, stop) +
           cmocka_run_group_tests(other_tests, NULL, NULL);
}
