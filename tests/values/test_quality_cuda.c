/* SPDX-License-Identifier: MIT
 *
 * shuf-quality gets the same counts on a GPU as on the CPU. Whole numbers are equal, and sums of
 * cosines are equal up to rounding. Exits with 77 without a GPU.
 */
#include "device.h"
#include "device_run.h"
#include "generator.h"
#include "stream.h"
#include "support/cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Permutations ---- */

static struct shuf__findings judge_rows(uint32_t n, uint64_t samples, bool vary_seed, bool device)
{
    const struct shuf__origin origin = {.type = &shuf__source_generator,
                                        .generator = &shuf__generator_primefold,
                                        .rounds = shuf__generator_primefold.rounds,
                                        .seed = 7,
                                        .vary_seed = vary_seed};
    struct shuf__run_options options = {
        .origin = &origin, .n = n, .samples = samples, .threads = 2};
    struct shuf__findings findings = {.alpha = 0.001};
    struct shuf__outcome outcome;
    struct shuf__error error;
    for (int i = 0; shuf__tests[i].name; i++)
        if (strcmp(shuf__tests[i].name, "parallelograms") == 0)
            options.tests = UINT32_C(1) << i;
    const shuf_status status =
        device ? shuf__run_on_device("cuda", &options, &findings, &outcome, &error)
               : shuf__run(&options, &findings, &outcome, &error);
    if (status != SHUF_OK)
        fail_msg("%s", error.text);
    assert_int_equal(outcome.rows, samples);
    return findings;
}

static void cuda_rows_have_same_findings(void **state)
{
    (void)state;
    static const struct {
        uint32_t n;
        uint64_t samples;
        bool vary_seed;
    } rows[] = {{32, 300, false},  {97, 1000, false}, {256, 60, true},
                {1000, 70, false}, {65537, 9, false}, {1 << 20, 3, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shuf__findings on_cpu =
            judge_rows(rows[i].n, rows[i].samples, rows[i].vary_seed, false);
        struct shuf__findings on_device =
            judge_rows(rows[i].n, rows[i].samples, rows[i].vary_seed, true);
        assert_int_equal(on_cpu.count, on_device.count);
        for (size_t f = 0; f < on_cpu.count; f++)
            if (on_cpu.finding[f].statistic != on_device.finding[f].statistic ||
                on_cpu.finding[f].p != on_device.finding[f].p)
                fail_msg("n = %u, %s: %.17g: expected %.17g", rows[i].n, on_cpu.finding[f].detail,
                         on_device.finding[f].statistic, on_cpu.finding[f].statistic);
        shuf__findings_free(&on_cpu);
        shuf__findings_free(&on_device);
    }
}

/* ---- Streams ---- */

enum { VALUES = 3 << 17 };

static struct shuf__findings judge_stream(const struct shuf__stream_generator *generator,
                                          shuf_dtype dtype, bool device)
{
    static struct shuf__stream_outcome outcome;
    struct shuf__stream_law law;
    struct shuf__error error;
    struct shuf__findings findings = {.alpha = 0.001};
    const struct shuf__stream_origin origin = {
        .generator = generator, .dtype = dtype, .seed = 7, .stream = 3};
    assert_int_equal(shuf__stream_law_make(&law, false, dtype, &error), SHUF_OK);
    struct shuf__stream_run_options options = {
        .origin = &origin, .law = &law, .samples = VALUES, .threads = 2};
    for (int i = 0; shuf__stream_tests[i]; i++)
        if (shuf__stream_tests[i] == &shuf__stream_lattice ||
            shuf__stream_tests[i] == &shuf__stream_cosines ||
            shuf__stream_tests[i] == &shuf__stream_signs ||
            shuf__stream_tests[i] == &shuf__stream_places ||
            (shuf__stream_tests[i] == &shuf__stream_ties && law.rounded))
            options.tests |= UINT32_C(1) << i;
    const shuf_status status =
        device ? shuf__stream_run_on_device("cuda", &options, 0, &findings, &outcome, &error)
               : shuf__stream_run(&options, &findings, &outcome, &error);
    if (status != SHUF_OK)
        fail_msg("%s", error.text);
    assert_int_equal(outcome.values, VALUES);
    shuf__stream_law_free(&law);
    return findings;
}

/* Finds the equal finding in the other list. The device has its tests in another order. */
static const struct shuf__finding *find_equal(const struct shuf__findings *all,
                                              const struct shuf__finding *like)
{
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->finding[i].test, like->test) == 0 &&
            strncmp(all->finding[i].detail, like->detail, 14) == 0 &&
            (strcmp(like->test, "cosines") == 0 ||
             strcmp(all->finding[i].detail, like->detail) == 0))
            return &all->finding[i];
    fail_msg("%s, %s: not found on the device", like->test, like->detail);
    return NULL;
}

static void expect_same_stream(const struct shuf__stream_generator *generator)
{
    for (shuf_dtype dtype = SHUF_F64; dtype <= SHUF_BF16; dtype++) {
        struct shuf__findings on_cpu = judge_stream(generator, dtype, false);
        struct shuf__findings on_device = judge_stream(generator, dtype, true);
        assert_int_equal(on_cpu.count, on_device.count);
        for (size_t i = 0; i < on_cpu.count; i++) {
            const struct shuf__finding *a = &on_cpu.finding[i], *b = find_equal(&on_device, a);
            const double most = strcmp(a->test, "cosines") == 0 ? 0.01 : 0;
            if (!(fabs(a->statistic - b->statistic) <= most))
                fail_msg("%s %s: %s, %s: %.17g: expected %.17g", generator->name,
                         shuf__dtype_name(dtype), a->test, a->detail, b->statistic, a->statistic);
        }
        shuf__findings_free(&on_cpu);
        shuf__findings_free(&on_device);
    }
}

static void cuda_streams_have_same_findings(void **state)
{
    (void)state;
    expect_same_stream(&shuf__stream_gauss);
    expect_same_stream(&shuf__stream_box_muller);
}

static struct shuf__device *open_device(void)
{
    struct shuf__device *device;
    struct shuf__error error;
    if (shuf__device_open("cuda", &device, &error) != SHUF_OK)
        return NULL;
    return device;
}

/* Counts the words of the tests `signs` and `digits` on the CPU. The values may begin anywhere in
 * the stream. */
static void count_on_cpu(const struct shuf__stream_law *law, uint64_t first, size_t count,
                         uint64_t *signs, uint64_t *places)
{
    double *value = malloc(3 * count * sizeof *value), *spread = value + count;
    double *by_block = value + 2 * count;
    assert_non_null(value);
    shuf__stream_gauss.fill(7, 3, law->dtype, first, count, value);
    shuf__law_spread(law, value, count, first, spread);
    for (size_t i = 0; i < count; i++)
        by_block[i / 1024 * 1024 + i % 64 / 2 * 32 + i % 1024 / 64 * 2 + i % 2] = spread[i];
    const struct shuf__chunk chunk = {.law = law,
                                      .first = first,
                                      .count = count,
                                      .blocks = count / 32,
                                      .value = value,
                                      .by_block = by_block};
    shuf__stream_signs.add(&chunk, signs, NULL);
    if (!law->rounded)
        shuf__stream_places.add(&chunk, places, NULL);
    free(value);
}

static void count_on_device(struct shuf__device *device, const struct shuf__stream_law *law,
                            uint64_t first, size_t count, uint64_t *signs, uint64_t *places)
{
    struct shuf__error error;
    const struct shuf__device_stream parameters = {.seed = 7,
                                                   .stream = 3,
                                                   .first = first,
                                                   .count = count,
                                                   .dtype = shuf__dtype_name(law->dtype),
                                                   .digits = shuf__dtype_digits(law->dtype),
                                                   .scale4 = 1 / sqrt(4 * law->spread_variance),
                                                   .scale8 = 1 / sqrt(8 * law->spread_variance),
                                                   .edges = law->transformed.edge,
                                                   .signs = signs,
                                                   .places = law->rounded ? NULL : places};
    if (shuf__device_count_stream(device, &parameters, &error) != SHUF_OK)
        fail_msg("%s", error.text);
}

static void expect_same_counts(shuf_dtype dtype, const struct shuf__stream_test *test,
                               const uint64_t *on_cpu, const uint64_t *on_device)
{
    for (size_t i = 0; i + 1 < test->counts; i++)
        if (on_cpu[i] != on_device[i])
            fail_msg("%s, %s, word %zu: %llu: expected %llu", shuf__dtype_name(dtype), test->name,
                     i, (unsigned long long)on_device[i], (unsigned long long)on_cpu[i]);
}

/* The device adds the counts of a second part of the stream to those of the first. */
static void cuda_counts_equal_cpu_counts(void **state)
{
    (void)state;
    enum { SIGNS = SHUF__DEVICE_CELLS * SHUF__DEVICE_SIGNS };
    enum { PLACES = SHUF__DEVICE_RELATION * SHUF__DEVICE_RELATIONS };
    static const uint64_t first[] = {0, UINT64_C(12345) << 10}, count[] = {9 << 10, 3 << 18};
    struct shuf__device *device = open_device();
    assert_non_null(device);
    assert_int_equal(shuf__stream_signs.counts, SIGNS + 1);
    assert_int_equal(shuf__stream_places.counts, PLACES + 1);
    for (shuf_dtype dtype = SHUF_F64; dtype <= SHUF_BF16; dtype++) {
        uint64_t signs[2][SIGNS + 1] = {{0}}, places[2][PLACES + 1] = {{0}};
        struct shuf__stream_law law;
        struct shuf__error error;
        assert_int_equal(shuf__stream_law_make(&law, false, dtype, &error), SHUF_OK);
        for (int part = 0; part < 2; part++) {
            count_on_cpu(&law, first[part], count[part], signs[0], places[0]);
            count_on_device(device, &law, first[part], count[part], signs[1], places[1]);
        }
        expect_same_counts(dtype, &shuf__stream_signs, signs[0], signs[1]);
        expect_same_counts(dtype, &shuf__stream_places, places[0], places[1]);
        shuf__stream_law_free(&law);
    }
    shuf__device_close(device);
}

/* Compares two kinds of sums with plain loops: those of the norms, whose tests need many values,
 * and those of products over sets of values. */
static void cuda_sums_match_plain_loops(void **state)
{
    (void)state;
    enum { COUNT = 1 << 16 };
    struct shuf__stream_law law;
    struct shuf__error error;
    struct shuf__device *device = open_device();
    double *value = malloc(COUNT * sizeof *value), expected[SHUF__DEVICE_NORMS] = {0};
    double norms[SHUF__DEVICE_NORMS] = {0};
    uint64_t count[1] = {0};
    double *by_place = malloc(COUNT * sizeof *by_place);
    assert_non_null(device);
    assert_true(value && by_place);
    assert_int_equal(shuf__stream_law_make(&law, false, SHUF_F64, &error), SHUF_OK);
    shuf__stream_gauss.fill(7, 3, SHUF_F64, 0, COUNT, value);
    for (size_t i = 0; i < COUNT; i++)
        by_place[i / 1024 * 1024 + (i % 1024 / 64 * 2 + i % 2) * 32 + i % 64 / 2] = value[i];
    const struct shuf__chunk chunk = {
        .law = &law, .count = COUNT, .blocks = COUNT / 32, .by_place = by_place};
    shuf__stream_norms.add(&chunk, count, expected);
    const struct shuf__device_stream parameters = {.seed = 7,
                                                   .stream = 3,
                                                   .count = COUNT,
                                                   .dtype = "f64",
                                                   .digits = 53,
                                                   .square_mean = law.mean[1],
                                                   .square_scale = 1 / sqrt(32 * law.variance[1]),
                                                   .fourth_mean = law.fourth_mean,
                                                   .fourth_variance = law.fourth_variance,
                                                   .norms = norms};
    assert_int_equal(shuf__device_count_stream(device, &parameters, &error), SHUF_OK);
    for (unsigned p = 0; p < SHUF__DEVICE_NORMS; p++)
        if (!(fabs(norms[p] - expected[p]) <= 1e-6 * (1 + fabs(expected[p]))))
            fail_msg("norm %u: %.17g: expected %.17g", p, norms[p], expected[p]);

    const struct shuf__cosine *cosine = &law.cosine[2];
    const double scale = 1 / sqrt(cosine->variance), t = 3 * SHUF__FREQUENCY;
    double *gram = calloc((size_t)SHUF__DEVICE_FACTORS * SHUF__DEVICE_PAIRS, sizeof *gram);
    assert_non_null(gram);
    if (shuf__device_count_subsets(device, &parameters, t, cosine->mean, scale, gram, &error) !=
        SHUF_OK)
        print_message("%s\n", error.text);
    /* products of values 0 and 1 with 2, with 2 and 3, and with 2 to 4; they are in the first
     * column */
    else {
        double one = 0, two = 0, three = 0;
        for (size_t i = 0; i < COUNT; i += 1024)
            for (unsigned b = 0; b < 32; b++) {
                double c[5];
                for (unsigned p = 0; p < 5; p++)
                    c[p] = (cos(t * by_place[i + 32 * p + b]) - cosine->mean) * scale;
                one += c[0] * c[1] * c[2];
                two += c[0] * c[1] * c[2] * c[3];
                three += c[0] * c[1] * c[2] * c[3] * c[4];
            }
        /* the rows of the sets (2, 3) and (2, 3, 4) */
        const size_t pair = 32 + 61, triple = 32 + 496 + 465 + 435;
        assert_true(fabs(gram[2 * SHUF__DEVICE_PAIRS] - one) < 1);
        assert_true(fabs(gram[pair * SHUF__DEVICE_PAIRS] - two) < 1);
        assert_true(fabs(gram[triple * SHUF__DEVICE_PAIRS] - three) < 1);
    }
    free(gram);
    free(value);
    free(by_place);
    shuf__stream_law_free(&law);
    shuf__device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuda_rows_have_same_findings),
        cmocka_unit_test(cuda_streams_have_same_findings),
        cmocka_unit_test(cuda_counts_equal_cpu_counts),
        cmocka_unit_test(cuda_sums_match_plain_loops),
    };
    struct shuf__device *device = open_device();
    if (!device)
        return 77;
    shuf__device_close(device);
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
