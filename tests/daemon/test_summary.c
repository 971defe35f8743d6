/* SPDX-License-Identifier: MIT
 *
 * Requests for a summary alone. They need memory for one tile, not for the whole result, and give
 * the summary of the whole result.
 */
#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/golden.h"
#include "support/wire.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static shuf *open_handle(const struct harness *h)
{
    shuf *handle;
    assert_int_equal(shuf_connect(&handle, h->socket), SHUF_OK);
    return handle;
}

static void expect_ok(const shuf *handle, shuf_status status)
{
    if (status != SHUF_OK)
        fail_msg("%s: %s", shuf_status_name(status), shuf_message(handle));
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
    expect_ok(handle, shuf_summarize(handle, request, &result));
    assert_false(result.shared);
    expect_ok(handle, shuf_copy(handle, request, values, shape.bytes, NULL));
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
    shuf *handle = open_handle(*state);
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
    shuf *handle = open_handle(*state);
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
    shuf *handle = open_handle(*state);
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
        expect_ok(handle, shuf_summarize(handle, &request, &result));
        expect_ok(handle, shuf_copy(handle, &request, values, COUNT * sizeof *values, NULL));
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
    shuf *handle = open_handle(h);
    const shuf_request request = {.permutation = {.n = 100000000, .seed = 7}};
    const uint64_t before = page_faults(h);
    expect_ok(handle, shuf_summarize(handle, &request, &result));
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
    shuf *handle = open_handle(h);
    const shuf_request large = {.permutation = {.n = 3000000, .seed = 9}},
                       small = {.permutation = {.n = 1000, .seed = 9}};
    expect_ok(handle, shuf_lease_take(handle, &large, NULL, &lease));
    expect_ok(handle, shuf_summarize(handle, &large, &result));
    assert_true(result.shared);
    shuf_lease_release(handle, &lease);
    expect_ok(handle, shuf_summarize(handle, &small, &result));
    expect_ok(handle, shuf_summarize(handle, &small, &result));
    assert_true(result.shared);
    shuf_close(handle);
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(summaries_of_permutations_match),
        cmocka_unit_test(last_values_come_from_two_tiles),
        cmocka_unit_test(summaries_of_streams_match),
        cmocka_unit_test(summary_allocates_no_result),
        cmocka_unit_test(summary_uses_cached_result),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
