/* SPDX-License-Identifier: MIT
 *
 * See device_run.h. Divides the work into parts and requests each part from the device.
 */
#include "device_run.h"
#include "clock.h"
#include "device.h"
#include "generator.h"
#include "provenance.h"
#include "run.h"
#include "stream.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Products over all sets of positions ---- */

/* The matrix has each set of positions several times. The code uses each set once: in the column of
 * its two least positions. Centred cosines of different sets are uncorrelated. For each size of
 * sets, the best set is judged as the best of many. */

enum { FREQUENCIES = 12, SIZES = 6, LEAST_BLOCKS = 100000 };

/* The numbers of the tested frequencies: 1, 1.5, ..., 4.5, and some larger ones. */
static const unsigned frequency[FREQUENCIES] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 15, 19, 27};

struct best {
    double z, t;
    uint64_t count;
};

static void take(struct best *best, double z, double t)
{
    best->count++;
    if (fabs(z) > fabs(best->z)) {
        best->z = z;
        best->t = t;
    }
}

/* Reads the means of products. Rows are single values, pairs and triples; columns are pairs. The
 * code takes only products of a pair and later positions. */
static void read_gram(const double *gram, double blocks, double t, struct best best[SIZES])
{
    const double scale = 1 / sqrt(blocks);
    unsigned column = 0;
    for (unsigned p = 0; p < 32; p++)
        for (unsigned q = p + 1; q < 32; q++, column++) {
            const double *row = gram + column;
            for (unsigned r = 0; r < 32; r++, row += SHUF__DEVICE_PAIRS)
                if (r > q)
                    take(&best[3], *row * scale, t);
            for (unsigned r = 0; r < 32; r++)
                for (unsigned s = r + 1; s < 32; s++, row += SHUF__DEVICE_PAIRS)
                    if (r > q)
                        take(&best[4], *row * scale, t);
            for (unsigned r = 0; r < 32; r++)
                for (unsigned s = r + 1; s < 32; s++)
                    for (unsigned u = s + 1; u < 32; u++, row += SHUF__DEVICE_PAIRS)
                        if (r > q)
                            take(&best[5], *row * scale, t);
        }
}

/* Adds the first `values` values, at frequency `number`, to the matrix. Adds their number to *done.
 */
static shuf_status add_all(struct shuf__device *device, const struct shuf__device_stream *request,
                           unsigned number, uint64_t values, double *gram, uint64_t *done,
                           struct shuf__error *error)
{
    struct shuf__device_stream part = *request;
    shuf_status status = SHUF_OK;
    *done = 0;
    while (*done < values && status == SHUF_OK && !shuf__interrupted()) {
        const uint64_t left = values - *done;
        part.first = *done;
        part.count = left < SHUF__DEVICE_UNIT ? left : SHUF__DEVICE_UNIT;
        status =
            shuf__device_count_subsets(device, &part, (number + 1) * SHUF__FREQUENCY,
                                       request->mean[number], request->scale[number], gram, error);
        *done += part.count;
    }
    return status;
}

/* Whether the mean of a product of SIZES - 1 cosines over so many blocks is nearly normal. */
static bool are_enough(const struct shuf__stream_run_options *options, unsigned number,
                       double blocks)
{
    const double kurtosis = pow(options->law->cosine[number].fourth, SIZES - 1);
    return blocks >= LEAST_BLOCKS && kurtosis <= 0.01 * blocks;
}

static void find(const struct best best[SIZES], uint64_t values, unsigned frequencies,
                 struct shuf__findings *findings)
{
    findings->test = "subsets";
    for (unsigned k = 3; k < SIZES; k++) {
        const double one = fmin(shuf__normal_p(best[k].z), 1 - 1e-15);
        if (best[k].count > 0)
            shuf__find(findings, 0, best[k].z, 0, -expm1((double)best[k].count * log1p(-one)),
                       "%u of %.3g, %u t, %.3g", k, (double)values, frequencies, best[k].t);
    }
}

shuf_status shuf__device_judge_subsets(struct shuf__device *device,
                                       const struct shuf__stream_run_options *options,
                                       const struct shuf__device_stream *request, uint64_t values,
                                       struct shuf__findings *findings, struct shuf__error *error)
{
    const size_t size = (size_t)SHUF__DEVICE_FACTORS * SHUF__DEVICE_PAIRS;
    struct best best[SIZES] = {{0}};
    shuf_status status = SHUF_OK;
    unsigned taken = 0;
    values = values / SHUF__SUPERBLOCK * SHUF__SUPERBLOCK;
    double *gram = malloc(size * sizeof *gram);
    if (!gram)
        return shuf__fail(error, SHUF_NO_MEMORY, "no memory");
    for (unsigned f = 0; f < FREQUENCIES && status == SHUF_OK && !shuf__interrupted(); f++) {
        uint64_t done;
        memset(gram, 0, size * sizeof *gram);
        if (options->progress)
            fprintf(stderr, "\rsubsets: %u of %d frequencies \033[K", f, FREQUENCIES);
        status = add_all(device, request, frequency[f], values, gram, &done, error);
        const double blocks = (double)(done / SHUF__BLOCK);
        if (status == SHUF_OK && done == values && are_enough(options, frequency[f], blocks)) {
            read_gram(gram, blocks, (frequency[f] + 1) * SHUF__FREQUENCY, best);
            taken++;
        }
    }
    free(gram);
    if (status == SHUF_OK)
        find(best, values, taken, findings);
    return status;
}

/* ---- Permutations ---- */

static const struct shuf__test *parallelograms(uint32_t selected)
{
    for (int i = 0; shuf__tests[i].name; i++)
        if (strcmp(shuf__tests[i].name, "parallelograms") == 0 && selected >> i & 1)
            return &shuf__tests[i];
    return NULL;
}

/* The distances of the rows, the counts at these distances, and the words of the test. */
struct rows {
    uint32_t *distance;
    struct shuf__parallelograms *counted;
    uint64_t *words;
};

static shuf_status count_rows(struct shuf__device *device, const struct shuf__run_options *options,
                              uint64_t first, uint64_t count, struct rows *rows,
                              struct shuf__error *error)
{
    const struct shuf__origin *origin = options->origin;
    const uint32_t n = options->n, distances = shuf__parallelogram_distances(n);
    const uint64_t modulus = shuf__parallelogram_modulus(n, shuf__origin_modulus(origin, n));
    const struct shuf__device_rows request = {
        .algorithm = origin->generator->name,
        .n = n,
        .modulus = modulus,
        .seed = origin->seed + (origin->vary_seed ? first : 0),
        .epoch = origin->epoch + (origin->vary_seed ? 0 : first),
        .rows = count,
        .vary_seed = origin->vary_seed,
        .distances = distances,
        .distance = rows->distance};
    for (uint64_t i = 0; i < count * distances; i++) {
        rows->distance[i] =
            shuf__parallelogram_distance(n, first + i / distances, (uint32_t)(i % distances));
        rows->counted[i] = shuf__parallelogram_places(n, rows->distance[i]);
    }
    const shuf_status status = shuf__device_count_rows(device, &request, rows->counted, error);
    for (uint64_t r = 0; r < count && status == SHUF_OK; r++)
        shuf__parallelograms_take(n, modulus, first + r, rows->counted + r * distances,
                                  rows->words);
    return status;
}

static shuf_status run_rows(struct shuf__device *device, const struct shuf__run_options *options,
                            struct rows *rows, struct shuf__outcome *outcome,
                            struct shuf__error *error)
{
    const uint64_t at_once = shuf__device_rows_at_once(options->n);
    struct shuf__quality_progress progress = {
        .enabled = options->progress, .all = options->samples, .unit = "rows"};
    shuf_status status = SHUF_OK;
    shuf__quality_progress_start(&progress);
    while (outcome->rows < options->samples && status == SHUF_OK && !shuf__interrupted()) {
        const uint64_t left = options->samples - outcome->rows;
        const uint64_t count = left < at_once ? left : at_once;
        status = count_rows(device, options, outcome->rows, count, rows, error);
        outcome->rows += status == SHUF_OK ? count : 0;
        shuf__quality_progress_show(&progress, outcome->rows);
    }
    outcome->interrupted = outcome->rows < options->samples;
    return status;
}

shuf_status shuf__run_on_device(const char *spec, const struct shuf__run_options *options,
                                struct shuf__findings *findings, struct shuf__outcome *outcome,
                                struct shuf__error *error)
{
    const struct shuf__test *test = parallelograms(options->tests);
    const uint64_t start_ns = shuf__clock_ns();
    const uint64_t most =
        shuf__device_rows_at_once(options->n) * shuf__parallelogram_distances(options->n);
    struct shuf__device *device;
    struct rows rows;
    *outcome = (struct shuf__outcome){0};
    if (!test || options->n < test->least)
        return SHUF_OK;
    shuf_status status = shuf__device_open(spec, &device, error);
    if (status != SHUF_OK)
        return status;
    shuf__provenance_device("cuda", shuf__device_name(device));
    rows.distance = malloc(most * sizeof *rows.distance);
    rows.counted = malloc(most * sizeof *rows.counted);
    rows.words = calloc(test->words(options->n), sizeof *rows.words);
    status = rows.distance && rows.counted && rows.words
                 ? run_rows(device, options, &rows, outcome, error)
                 : shuf__fail(error, SHUF_NO_MEMORY, "no memory");
    findings->test = test->name;
    if (status == SHUF_OK && outcome->rows > 0)
        test->judge(options->n, rows.words, findings);
    outcome->seconds = (double)(shuf__clock_ns() - start_ns) / 1e9;
    free(rows.distance);
    free(rows.counted);
    free(rows.words);
    shuf__device_close(device);
    return status;
}

/* ---- Streams ---- */

/* The tests that a device supports, and the indices of their words. */
enum { LATTICE, COSINES, NORMS, TIES, SIGNS, PLACES, KNOWN };

struct words {
    const struct shuf__stream_test *test;
    uint64_t *count;
    double *sum;
    bool is_selected;
};

static const struct shuf__stream_test *const known[KNOWN] = {
    &shuf__stream_lattice, &shuf__stream_cosines, &shuf__stream_norms,
    &shuf__stream_ties,    &shuf__stream_signs,   &shuf__stream_places};

static bool set_up(const struct shuf__stream_run_options *options, struct words words[KNOWN])
{
    bool all = true;
    for (int k = 0; k < KNOWN; k++) {
        words[k] = (struct words){.test = known[k]};
        for (int i = 0; shuf__stream_tests[i]; i++)
            words[k].is_selected |= shuf__stream_tests[i] == known[k] && options->tests >> i & 1;
        words[k].is_selected &= shuf__stream_applies(known[k], options->law, true);
        words[k].count = calloc(known[k]->counts + 1, sizeof *words[k].count);
        words[k].sum = calloc(known[k]->sums + 1, sizeof *words[k].sum);
        all &= words[k].count && words[k].sum;
    }
    words[TIES].is_selected &= options->law->rounded;
    return all;
}

/* Makes the request to the device, with the parameters of the law. */
static struct shuf__device_stream make_request(const struct shuf__stream_run_options *options,
                                               const struct words words[KNOWN],
                                               double mean[SHUF__FREQUENCIES],
                                               double scale[SHUF__FREQUENCIES])
{
    const struct shuf__stream_law *law = options->law;
    struct shuf__device_stream request = {.box_muller = options->origin->generator ==
                                                        &shuf__stream_box_muller,
                                          .seed = options->origin->seed,
                                          .stream = options->origin->stream,
                                          .dtype = shuf__dtype_name(law->dtype),
                                          .digits = shuf__dtype_digits(law->dtype),
                                          .frequencies = SHUF__FREQUENCIES,
                                          .frequency = SHUF__FREQUENCY,
                                          .mean = mean,
                                          .scale = scale,
                                          .square_mean = law->mean[1],
                                          .fourth_mean = law->fourth_mean,
                                          .fourth_variance = law->fourth_variance};
    for (unsigned k = 0; k < SHUF__FREQUENCIES; k++) {
        mean[k] = law->cosine[k].mean;
        scale[k] = 1 / sqrt(law->cosine[k].variance);
    }
    shuf__stream_lattice_steps(law->dtype, &request.least_step, &request.most_step);
    request.square_scale = 1 / sqrt(SHUF__BLOCK * law->variance[1]);
    request.odds = words[LATTICE].is_selected ? words[LATTICE].count : NULL;
    request.cosines = words[COSINES].is_selected ? words[COSINES].sum : NULL;
    request.norms = words[NORMS].is_selected ? words[NORMS].sum : NULL;
    request.ties = words[TIES].is_selected ? words[TIES].count : NULL;
    request.scale4 = 1 / sqrt(4 * law->spread_variance);
    request.scale8 = 1 / sqrt(8 * law->spread_variance);
    request.edges = law->transformed.edge;
    request.signs = words[SIGNS].is_selected ? words[SIGNS].count : NULL;
    request.places = words[PLACES].is_selected ? words[PLACES].count : NULL;
    return request;
}

static shuf_status run_stream(struct shuf__device *device,
                              const struct shuf__stream_run_options *options,
                              struct shuf__device_stream *request,
                              struct shuf__stream_outcome *outcome, struct shuf__error *error)
{
    const uint64_t all = options->samples / SHUF__SUPERBLOCK * SHUF__SUPERBLOCK;
    struct shuf__quality_progress progress = {
        .enabled = options->progress, .all = all, .unit = "values"};
    shuf_status status = SHUF_OK;
    shuf__quality_progress_start(&progress);
    while (outcome->values < all && status == SHUF_OK && !shuf__interrupted()) {
        const uint64_t left = all - outcome->values;
        request->first = outcome->values;
        request->count = left < SHUF__DEVICE_UNIT ? left : SHUF__DEVICE_UNIT;
        status = shuf__device_count_stream(device, request, error);
        outcome->values += status == SHUF_OK ? request->count : 0;
        shuf__quality_progress_show(&progress, outcome->values);
    }
    outcome->interrupted = outcome->values < all;
    return status;
}

/* The last word of a test is a number of blocks. There are two exceptions: `digits` has a number of
 * pairs there, and `ties` has no such word. */
static void judge(const struct shuf__stream_run_options *options, struct words words[KNOWN],
                  uint64_t values, struct shuf__findings *findings)
{
    for (int k = 0; k < KNOWN; k++) {
        if (!words[k].is_selected)
            continue;
        if (k != TIES)
            words[k].count[words[k].test->counts - 1] = values / (k == PLACES ? 2 : SHUF__BLOCK);
        findings->test = words[k].test->name;
        words[k].test->judge(options->law, values, words[k].count, words[k].sum, findings);
    }
}

shuf_status shuf__stream_run_on_device(const char *spec,
                                       const struct shuf__stream_run_options *options,
                                       uint64_t subsets, struct shuf__findings *findings,
                                       struct shuf__stream_outcome *outcome,
                                       struct shuf__error *error)
{
    const uint64_t start_ns = shuf__clock_ns();
    double mean[SHUF__FREQUENCIES], scale[SHUF__FREQUENCIES];
    struct words words[KNOWN];
    struct shuf__device *device;
    memset(outcome, 0, sizeof *outcome);
    shuf_status status = shuf__device_open(spec, &device, error);
    if (status != SHUF_OK)
        return status;
    shuf__provenance_device("cuda", shuf__device_name(device));
    if (set_up(options, words)) {
        struct shuf__device_stream request = make_request(options, words, mean, scale);
        status = run_stream(device, options, &request, outcome, error);
        if (status == SHUF_OK && outcome->values > 0)
            judge(options, words, outcome->values, findings);
        if (status == SHUF_OK && subsets > 0 && !shuf__interrupted())
            status =
                shuf__device_judge_subsets(device, options, &request, subsets, findings, error);
        outcome->interrupted |= subsets > 0 && shuf__interrupted();
    } else
        status = shuf__fail(error, SHUF_NO_MEMORY, "no memory");
    for (int k = 0; k < KNOWN; k++) {
        free(words[k].count);
        free(words[k].sum);
    }
    outcome->seconds = (double)(shuf__clock_ns() - start_ns) / 1e9;
    shuf__device_close(device);
    return status;
}

/* ---- Without CUDA ---- */

/* There is no device, so nothing but shuf__device_open() is called. */
#ifndef SHUF_QUALITY_CUDA

shuf_status shuf__device_open(const char *spec, struct shuf__device **device,
                              struct shuf__error *error)
{
    *device = NULL;
    return shuf__fail(error, SHUF_DEVICE, "--backend %.64s: this build has no CUDA", spec);
}

void shuf__device_close(struct shuf__device *device)
{
    (void)device;
}

const char *shuf__device_name(const struct shuf__device *device)
{
    (void)device;
    return "none";
}

uint64_t shuf__device_rows_at_once(uint32_t n)
{
    (void)n;
    return 1;
}

shuf_status shuf__device_count_rows(struct shuf__device *device,
                                    const struct shuf__device_rows *rows,
                                    struct shuf__parallelograms *counted, struct shuf__error *error)
{
    (void)device, (void)rows, (void)counted;
    return shuf__fail(error, SHUF_DEVICE, "this build has no CUDA");
}

shuf_status shuf__device_count_stream(struct shuf__device *device,
                                      const struct shuf__device_stream *stream,
                                      struct shuf__error *error)
{
    (void)device, (void)stream;
    return shuf__fail(error, SHUF_DEVICE, "this build has no CUDA");
}

shuf_status shuf__device_count_subsets(struct shuf__device *device,
                                       const struct shuf__device_stream *stream, double t,
                                       double mean, double scale, double *gram,
                                       struct shuf__error *error)
{
    (void)device, (void)stream, (void)t, (void)mean, (void)scale, (void)gram;
    return shuf__fail(error, SHUF_DEVICE, "this build has no CUDA");
}

#endif
