/* SPDX-License-Identifier: MIT
 *
 * Streams on the backend of the command line, in every kind of memory: each value against the
 * inline C, the golden table, sums and cancelling.
 */
#include "support/cmocka_all.h"
#include "support/computation.h"
#include "support/draws.h"
#include "support/golden.h"
#include "support/random.h"

#include "shuf/stream.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The kinds of streams. */
static const struct {
    enum shuf__distribution distribution;
    shuf_dtype dtype;
} kinds[] = {
    {SHUF_DISTRIBUTION_GAUSS, SHUF_F64},       {SHUF_DISTRIBUTION_GAUSS, SHUF_F32},
    {SHUF_DISTRIBUTION_GAUSS, SHUF_F16},       {SHUF_DISTRIBUTION_GAUSS, SHUF_BF16},
    {SHUF_DISTRIBUTION_UNIFORM, SHUF_U32},     {SHUF_DISTRIBUTION_UNIFORM, SHUF_U64},
    {SHUF_DISTRIBUTION_UNIFORM, SHUF_F32},     {SHUF_DISTRIBUTION_UNIFORM, SHUF_F64},
    {SHUF_DISTRIBUTION_BOX_MULLER, SHUF_F64},  {SHUF_DISTRIBUTION_BOX_MULLER, SHUF_F32},
    {SHUF_DISTRIBUTION_BOX_MULLER, SHUF_F16},  {SHUF_DISTRIBUTION_BOX_MULLER, SHUF_BF16},
    {SHUF_DISTRIBUTION_EXPONENTIAL, SHUF_F64}, {SHUF_DISTRIBUTION_EXPONENTIAL, SHUF_F32},
    {SHUF_DISTRIBUTION_BERNOULLI, SHUF_U32},   {SHUF_DISTRIBUTION_BERNOULLI, SHUF_U64},
    {SHUF_DISTRIBUTION_INTEGERS, SHUF_U32},    {SHUF_DISTRIBUTION_INTEGERS, SHUF_U64},
};

enum { KINDS = sizeof kinds / sizeof kinds[0], SUPER = 1024 };

static struct shuf__computation computation_of(int kind, uint64_t offset, uint64_t count)
{
    struct shuf__computation computation = computation_stream(
        kinds[kind].distribution, kinds[kind].dtype, 7 + (uint64_t)kind, 3, offset, count);
    struct shuf__stream *s = &computation.request.stream;
    draw_parameters(s->distribution, 2.5, &s->mean, &s->std, &s->bound);
    return computation;
}

static void check_golden(const struct golden_stream *row)
{
    struct shuf__computation computation =
        computation_stream(draw_distribution(row->distribution), draw_dtype(row->dtype), row->seed,
                           row->stream, row->offset, row->count);
    uint64_t fingerprint;
    computation.request.stream.mean = row->mean;
    computation.request.stream.std = row->std;
    computation.request.stream.bound = row->bound;
    uint64_t *values = computation_run(&computation, &fingerprint);
    assert_memory_equal(values, row->bits, row->shown * sizeof *values);
    assert_int_equal(fingerprint, row->fingerprint);
    free(values);
}

static void golden_table_matches(void **state)
{
    (void)state;
    struct golden_stream row;
    unsigned rows = 0;
    FILE *table = golden_open("streams.txt");
    for (; golden_next_stream(table, &row); rows++)
        check_golden(&row);
    fclose(table);
    assert_in_range(rows, 200, 10000);
}

static void slices_near_superblocks_match(void **state)
{
    (void)state;
    static const uint64_t offsets[] = {0, 1, 31, 63, 64, 1000, 1023, 1024, 1025};
    static const uint64_t counts[] = {1, 2, 3, 63, 65, 1023, 1024, 1025, 3000};
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
            const struct shuf__computation computation =
                computation_of(kind, offsets[i], counts[i]);
            computation_check(&computation);
        }
}

/* Positions at which the number of a block has more than 32 bits, and positions at the end of the
 * stream. */
static void large_offsets_match(void **state)
{
    (void)state;
    static const uint64_t ends[] = {UINT64_C(1) << 34, UINT64_C(1) << 33, UINT64_C(1) << 37,
                                    (UINT64_C(1) << 40) + 12345, SHUF_STREAM_MAX};
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
            struct shuf__computation computation = computation_of(kind, ends[i] - 1500, 1500);
            computation_check(&computation);
            computation.request.stream.offset = ends[i] - 1027;
            computation.request.stream.count = ends[i] < SHUF_STREAM_MAX ? 2054 : 1027;
            computation_check(&computation);
        }
}

static void random_slices_match(void **state)
{
    (void)state;
    random_start("random_slices_match");
    for (int i = 0; i < 60; i++) {
        struct shuf__computation computation = computation_of(i % KINDS, 0, random_size(20000));
        struct shuf__stream *s = &computation.request.stream;
        s->offset = random_below(SHUF_STREAM_MAX - s->count) >> random_below(60);
        s->seed = random_u64();
        s->stream = random_u64();
        computation_check(&computation);
    }
}

/* Enough values for every thread and thread block of the backend, from an odd position and from an
 * even one. */
static void streams_of_many_values_match(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (uint64_t offset = 76; offset < 78; offset++) {
            const struct shuf__computation computation =
                computation_of(kind, offset, 150 * SUPER + 3);
            computation_check(&computation);
        }
}

static void parameters_are_applied(void **state)
{
    (void)state;
    static const struct {
        enum shuf__parameters parameters;
        double mean, std;
        uint64_t bound;
    } values[] = {
        {SHUF__MEAN_AND_STD, -0.0, 1, 0},
        {SHUF__MEAN_AND_STD, 1e6, 1e-3, 0},
        {SHUF__MEAN_AND_STD, -2.5, 0x1p-100, 0},
        {SHUF__MEAN_AND_STD, 0x1p100, 0x1p100, 0},
        {SHUF__MEAN_AND_STD, 3, 1 / 3.0, 0},
        {SHUF__MEAN_AND_STD, 0, 0x1p-100, 0},
        {SHUF__MEAN, 1, 0, 0},
        {SHUF__MEAN, 1 / 3.0, 0, 0},
        {SHUF__MEAN, 0x1p100, 0, 0},
        {SHUF__MEAN, 0x1p-100, 0, 0},
        {SHUF__PROBABILITY, 0, 0, 0},
        {SHUF__PROBABILITY, 1, 0, 0},
        {SHUF__PROBABILITY, 0.5, 0, 0},
        {SHUF__PROBABILITY, 0x1p-63, 0, 0},
        {SHUF__PROBABILITY, 0x1p-64, 0, 0},
        {SHUF__PROBABILITY, 1 - 0x1p-53, 0, 0},
        {SHUF__PROBABILITY, 0.9, 0, 0},
        {SHUF__PROBABILITY, 0.25, 0, 0},
        {SHUF__BOUND, 0, 0, 1},
        {SHUF__BOUND, 0, 0, 2},
        {SHUF__BOUND, 0, 0, 1000},
        {SHUF__BOUND, 0, 0, (UINT64_C(1) << 31) + 1},
        {SHUF__BOUND, 0, 0, UINT32_MAX},
        {SHUF__BOUND, 0, 0, UINT64_C(1) << 32},
        {SHUF__BOUND, 0, 0, (UINT64_C(1) << 32) + 1},
        {SHUF__BOUND, 0, 0, UINT64_C(1) << 63},
        {SHUF__BOUND, 0, 0, (UINT64_C(1) << 63) + 1},
        {SHUF__BOUND, 0, 0, UINT64_MAX},
    };
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            struct shuf__computation computation = computation_of(kind, 5, 2100);
            struct shuf__stream *s = &computation.request.stream;
            s->mean = values[i].mean;
            s->std = values[i].std;
            s->bound = values[i].bound;
            if (shuf__distribution_parameters(s->distribution) == values[i].parameters &&
                (s->bound <= UINT64_C(1) << 32 || computation.request.dtype == SHUF_U64))
                computation_check(&computation);
        }
}

/* ---- Sums ---- */

static struct shuf__sums plain_sums(const struct shuf__computation *computation,
                                    const uint64_t *values, double centre, double scale)
{
    struct shuf__sums s = {.least = INFINITY, .largest = -INFINITY};
    for (uint64_t i = 0; i < computation->request.stream.count; i++) {
        const double x = draw_value(computation->request.dtype, values[i]),
                     z = (x - centre) * scale;
        for (int k = 0; k < 4; k++)
            s.power[k] += pow(z, k + 1);
        s.least = fmin(s.least, x);
        s.largest = fmax(s.largest, x);
    }
    return s;
}

static void check_sums(int kind, uint64_t count)
{
    struct shuf__computation computation = computation_of(kind, 99, count);
    struct shuf__block block;
    struct shuf__error error = {0};
    struct shuf__sums sums;
    const bool normal = shuf__distribution_is_normal(computation.request.stream.distribution);
    if (normal) {
        computation.request.stream.mean = 1000;
        computation.request.stream.std = 3;
    }
    const shuf_dtype dtype = computation.request.dtype;
    const bool whole = dtype == SHUF_U32 || dtype == SHUF_U64;
    const double centre = whole ? ldexp(1, (int)computation_width(&computation) * 8 - 1)
                          : computation.request.stream.mean != 0 ? computation.request.stream.mean
                                                                 : 0.5;
    const double scale = normal ? 1 / 3.0 : 1 / centre;
    uint64_t *values = computation_run(&computation, NULL);
    const struct shuf__sums expected = plain_sums(&computation, values, centre, scale);
    computation_alloc(computation_bytes(&computation), &block);
    computation_fill(&computation, &block);
    assert_int_equal(
        backend->ops->sums(backend, &block, dtype, count, centre, scale, &sums, &error), SHUF_OK);
    for (int k = 0; k < 4; k++)
        assert_true(fabs(sums.power[k] - expected.power[k]) < 1e-9 * (double)count);
    assert_true(sums.least == expected.least && sums.largest == expected.largest);
    backend->ops->free(backend, &block);
    free(values);
}

static void sums_match_values(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 2, 1000, 16384, 16385, 100001};
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            check_sums(kind, counts[i]);
}

/* ---- Cancelling ---- */

static bool always(void *context)
{
    (void)context;
    return true;
}

static void streams_are_cancelled(void **state)
{
    (void)state;
    struct shuf__block block;
    struct shuf__error error = {0};
    uint64_t ns;
    for (int kind = 0; kind < KINDS; kind++) {
        struct shuf__computation computation = computation_of(kind, 0, 1 << 22);
        computation.cancelled = always;
        computation_alloc(computation_bytes(&computation), &block);
        assert_int_equal(shuf__backend_compute(backend, &computation, &block, &ns, &error),
                         SHUF_CANCELLED);
        assert_non_null(strstr(error.text, shuf__request_name(&computation.request)));
        backend->ops->free(backend, &block);
    }
}

static void empty_stream_is_computed(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        const struct shuf__computation computation = computation_of(kind, 12, 0);
        free(computation_run(&computation, NULL));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_table_matches),
        cmocka_unit_test(slices_near_superblocks_match),
        cmocka_unit_test(large_offsets_match),
        cmocka_unit_test(random_slices_match),
        cmocka_unit_test(streams_of_many_values_match),
        cmocka_unit_test(parameters_are_applied),
        cmocka_unit_test(sums_match_values),
        cmocka_unit_test(streams_are_cancelled),
        cmocka_unit_test(empty_stream_is_computed),
    };
    return computation_main(argc, argv, tests);
}
