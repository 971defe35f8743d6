/* SPDX-License-Identifier: MIT
 *
 * Runs the tests on a stream, as run.c does on permutations. Threads take chunks in order, and each
 * counts for itself. Every fourth chunk is also compared with that of the next stream, and another
 * with that of the next seed.
 */
#include "stream.h"

#include "input.h"
#include "progress.h"
#include "run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Sums are in units of 2^-32. The rounding is negligible beside the noise of the sums. */
typedef __int128 fixed;
#define FIXED_ONE 4294967296.0

struct work {
    const struct shuf__stream_task *task;
    struct shuf__input input;
    bool relatives;
    size_t counts, sums; /* of all tests together */
    uint64_t next, done; /* values; `next` and the fields below change by one thread at a time */
    bool stop, bad_values;
    shuf_status status;
    struct shuf__error *error;
    uint64_t *count, *histogram;
    fixed *sum;
    struct shuf__quality_progress progress;
};

/* The memory of a thread. */
struct desk {
    unsigned char *raw;
    double *value, *z, *spread, *by_block, *by_place, *relative, *scratch;
    uint64_t *count;
    double *chunk_sum;
    fixed *sum;
    uint64_t histogram[SHUF__HISTOGRAM_CELLS];
    struct shuf__chunk chunk;
};

static bool wanted(const struct work *work, int test)
{
    const struct shuf__stream_task *task = work->task;
    return task->tests >> test & 1 && shuf__stream_applies(shuf__stream_tests[test], task->law,
                                                           task->origin->generator != NULL);
}

static void size_up(struct work *work)
{
    for (int i = 0; shuf__stream_tests[i]; i++)
        if (wanted(work, i)) {
            work->counts += shuf__stream_tests[i]->counts;
            work->sums += shuf__stream_tests[i]->sums;
            work->relatives |= shuf__stream_tests[i]->relatives;
        }
}

static void fail(struct work *work, shuf_status status, const struct shuf__error *error)
{
    work->stop = true;
    if (status == SHUF_CANCELLED || work->status != SHUF_OK)
        return; /* an interrupt is not a failure; or an earlier failure exists */
    work->status = status;
    *work->error = *error;
}

/* ---- Values ---------------------------------------------------------------------- */

static shuf_status read_raw(struct work *work, struct desk *desk, struct shuf__error *error)
{
    const shuf_dtype dtype = work->task->origin->dtype;
    const unsigned width = shuf__dtype_bytes(dtype);
    struct shuf__chunk *chunk = &desk->chunk;
    size_t got;
    shuf_status status =
        shuf__input_read(&work->input, desk->raw, chunk->count * width, &got, error);
    work->bad_values |= status == SHUF_INVALID;
    if (status != SHUF_OK)
        return status;
    chunk->count = got / width;
    if (got % width == 0)
        return SHUF_OK;
    work->bad_values = true;
    return shuf__fail(error, SHUF_INVALID,
                      "value %" PRIu64 ": ends after %zu byte%s: expected %u bytes of %s",
                      chunk->first + chunk->count, got % width, shuf__plural(got % width), width,
                      shuf__dtype_name(dtype));
}

static void generate(const struct work *work, struct desk *desk)
{
    const struct shuf__stream_origin *origin = work->task->origin;
    const struct shuf__chunk *chunk = &desk->chunk;
    const size_t whole =
        (chunk->count + SHUF__SUPERBLOCK - 1) / SHUF__SUPERBLOCK * SHUF__SUPERBLOCK;
    origin->generator->fill(origin->seed, origin->stream, origin->dtype, chunk->first, whole,
                            desk->value);
    if (chunk->relation != SHUF__ALONE)
        origin->generator->fill(origin->seed + (chunk->relation == SHUF__NEXT_SEED),
                                origin->stream + (chunk->relation == SHUF__NEXT_STREAM),
                                origin->dtype, chunk->first, whole, desk->relative);
}

/* Standardises `count` values. Returns the index of the first value outside the law's range, or
 * `count`. */
static size_t standardise(const struct shuf__stream_law *law, const double *value, size_t count,
                          double *z)
{
    for (size_t i = 0; i < count; i++) {
        const double x = value[i];
        if (law->uniform ? !(x >= 0 && x <= 1) : !isfinite(x))
            return i;
        z[i] = law->uniform ? (x - 0.5) * sqrt(12) : fmin(fmax(x, -SHUF__Z_MOST), SHUF__Z_MOST);
    }
    return count;
}

/* Sorts values by block. The 32 values of a block are in pairs, 64 apart. */
static void arrange(struct desk *desk)
{
    for (size_t i = 0; i + SHUF__SUPERBLOCK <= desk->chunk.count; i += SHUF__SUPERBLOCK)
        for (unsigned r = 0; r < SHUF__SUPERBLOCK; r++) {
            const unsigned place = r / 64 * 2 + r % 2, block = r % 64 / 2;
            desk->by_block[i + SHUF__BLOCK * block + place] = desk->spread[i + r];
            desk->by_place[i + SHUF__BLOCK * place + block] = desk->z[i + r];
        }
    desk->chunk.blocks = desk->chunk.count / SHUF__SUPERBLOCK * SHUF__BLOCK;
}

static shuf_status make_values(const struct work *work, struct desk *desk,
                               struct shuf__error *error)
{
    const struct shuf__stream_origin *origin = work->task->origin;
    struct shuf__chunk *chunk = &desk->chunk;
    if (origin->generator)
        generate(work, desk);
    else
        shuf__dtype_decode(origin->dtype, desk->raw, chunk->count, desk->value);
    const size_t bad = standardise(chunk->law, desk->value, chunk->count, desk->z);
    if (bad < chunk->count)
        return shuf__fail(error, SHUF_INVALID, "value %" PRIu64 ": %g: expected a %s",
                          chunk->first + bad, desk->value[bad],
                          chunk->law->uniform ? "number from 0 to 1" : "finite number");
    if (chunk->relation != SHUF__ALONE)
        standardise(chunk->law, desk->relative, chunk->count, desk->relative);
    shuf__law_spread(chunk->law, desk->z, chunk->count, chunk->first, desk->spread);
    arrange(desk);
    return SHUF_OK;
}

/* ---- Threads --------------------------------------------------------------------- */

static enum shuf__stream_relation relation_of(const struct work *work, uint64_t index)
{
    if (!work->relatives || index % 2 != 0)
        return SHUF__ALONE;
    return index % 4 == 0 ? SHUF__NEXT_STREAM : SHUF__NEXT_SEED;
}

/* Takes the next chunk; false if there is none. One thread at a time calls it. */
static bool take(struct work *work, struct desk *desk)
{
    const uint64_t left = work->task->samples - work->next;
    struct shuf__chunk *chunk = &desk->chunk;
    struct shuf__error error;
    if (shuf__run_interrupted() || work->stop || left == 0)
        return false;
    chunk->first = work->next;
    chunk->count = left < SHUF__CHUNK ? (size_t)left : SHUF__CHUNK;
    chunk->relation = relation_of(work, work->next / SHUF__CHUNK);
    if (!work->task->origin->generator) {
        const size_t asked = chunk->count;
        const shuf_status status = read_raw(work, desk, &error);
        if (status != SHUF_OK) {
            fail(work, status, &error);
            return false;
        }
        work->stop = chunk->count < asked;
    }
    work->next += chunk->count;
    shuf__quality_progress_show(&work->progress, work->next);
    return chunk->count > 0;
}

static void draw_histogram(struct desk *desk)
{
    for (size_t i = 0; i < desk->chunk.count; i++) {
        const double cell = (desk->z[i] - SHUF__HISTOGRAM_LOW) * (1 / SHUF__HISTOGRAM_WIDTH);
        if (cell >= 0 && cell < SHUF__HISTOGRAM_CELLS)
            desk->histogram[(unsigned)cell]++;
    }
}

static void count(const struct work *work, struct desk *desk)
{
    uint64_t *counts = desk->count;
    double *sums = desk->chunk_sum;
    for (size_t i = 0; i < work->sums; i++)
        sums[i] = 0;
    for (int i = 0; shuf__stream_tests[i]; i++)
        if (wanted(work, i)) {
            shuf__stream_tests[i]->add(&desk->chunk, counts, sums);
            counts += shuf__stream_tests[i]->counts;
            sums += shuf__stream_tests[i]->sums;
        }
    for (size_t i = 0; i < work->sums; i++)
        desk->sum[i] += (fixed)(desk->chunk_sum[i] * FIXED_ONE);
    draw_histogram(desk);
}

static void work_at(struct work *work, struct desk *desk)
{
    for (;;) {
        struct shuf__error error;
        bool more;
#pragma omp critical(shuf_stream)
        more = take(work, desk);
        if (!more)
            return;
        const shuf_status status = make_values(work, desk, &error);
        if (status == SHUF_OK)
            count(work, desk);
#pragma omp critical(shuf_stream)
        {
            work->bad_values |= status == SHUF_INVALID;
            if (status != SHUF_OK)
                fail(work, status, &error);
            else
                work->done += desk->chunk.count;
        }
        if (status != SHUF_OK)
            return;
    }
}

static bool set_up(const struct work *work, struct desk *desk)
{
    double **const arrays[] = {&desk->value,    &desk->z,        &desk->spread, &desk->by_block,
                               &desk->by_place, &desk->relative, &desk->scratch};
    bool all = true;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i] = malloc(2 * SHUF__CHUNK * sizeof **arrays[i]);
        all &= *arrays[i] != NULL;
    }
    desk->raw = malloc(SHUF__CHUNK * sizeof *desk->value);
    desk->count = calloc(work->counts + 1, sizeof *desk->count);
    desk->chunk_sum = calloc(work->sums + 1, sizeof *desk->chunk_sum);
    desk->sum = calloc(work->sums + 1, sizeof *desk->sum);
    desk->chunk = (struct shuf__chunk){.law = work->task->law,
                                       .value = desk->value,
                                       .z = desk->z,
                                       .spread = desk->spread,
                                       .by_block = desk->by_block,
                                       .by_place = desk->by_place,
                                       .relative = desk->relative,
                                       .scratch = desk->scratch};
    return all && desk->raw && desk->count && desk->chunk_sum && desk->sum;
}

static void clear(struct desk *desk)
{
    void *const arrays[] = {desk->value,    desk->z,         desk->spread,  desk->by_block,
                            desk->by_place, desk->relative,  desk->scratch, desk->raw,
                            desk->count,    desk->chunk_sum, desk->sum,     desk};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
}

static void add_up(struct work *work, const struct desk *desk)
{
    for (size_t i = 0; i < work->counts; i++)
        work->count[i] += desk->count[i];
    for (size_t i = 0; i < work->sums; i++)
        work->sum[i] += desk->sum[i];
    for (size_t i = 0; i < SHUF__HISTOGRAM_CELLS; i++)
        work->histogram[i] += desk->histogram[i];
}

static void work_by_all(struct work *work)
{
#pragma omp parallel num_threads(work->task->threads)
    {
        struct desk *desk = calloc(1, sizeof *desk);
        if (desk && set_up(work, desk)) {
            work_at(work, desk);
#pragma omp critical(shuf_stream)
            add_up(work, desk);
        } else {
            struct shuf__error error;
            shuf__fail(&error, SHUF_NO_MEMORY, "no memory");
#pragma omp critical(shuf_stream)
            fail(work, SHUF_NO_MEMORY, &error);
        }
        if (desk)
            clear(desk);
    }
}

/* ---- The verdict ----------------------------------------------------------------- */

static shuf_status judge(const struct work *work, struct shuf__findings *findings)
{
    const uint64_t *counts = work->count;
    double *sum = calloc(work->sums + 1, sizeof *sum), *sums = sum;
    if (!sum)
        return shuf__fail(work->error, SHUF_NO_MEMORY, "no memory");
    for (size_t i = 0; i < work->sums; i++)
        sum[i] = (double)work->sum[i] / FIXED_ONE;
    for (int i = 0; shuf__stream_tests[i]; i++)
        if (wanted(work, i)) {
            const struct shuf__stream_test *test = shuf__stream_tests[i];
            findings->test = test->name;
            test->judge(work->task->law, work->done, counts, sums, findings);
            counts += test->counts;
            sums += test->sums;
        }
    free(sum);
    return SHUF_OK;
}

static shuf_status run(struct work *work, struct shuf__findings *findings,
                       struct shuf__stream_outcome *outcome)
{
    shuf__quality_progress_start(&work->progress);
    work_by_all(work);
    shuf__quality_progress_end(&work->progress);
    if (work->status == SHUF_OK && work->done > 0)
        work->status = judge(work, findings);
    outcome->values = work->done;
    outcome->bad_values = work->bad_values;
    outcome->seconds = shuf__quality_progress_seconds(&work->progress);
    outcome->interrupted = shuf__run_interrupted() && work->done < work->task->samples;
    return work->status;
}

shuf_status shuf__stream_run(const struct shuf__stream_task *task, struct shuf__findings *findings,
                             struct shuf__stream_outcome *outcome, struct shuf__error *error)
{
    struct work work = {
        .task = task,
        .error = error,
        .histogram = outcome->histogram,
        .progress = {.enabled = task->progress, .all = task->samples, .unit = "values"},
    };
    shuf_status status = SHUF_OK;
    *outcome = (struct shuf__stream_outcome){0};
    size_up(&work);
    if (!task->origin->generator)
        status = shuf__input_open(&work.input, task->origin->input, error);
    if (status != SHUF_OK)
        return status;
    work.count = calloc(work.counts + 1, sizeof *work.count);
    work.sum = calloc(work.sums + 1, sizeof *work.sum);
    status = work.count && work.sum ? run(&work, findings, outcome)
                                    : shuf__fail(error, SHUF_NO_MEMORY, "no memory");
    if (!task->origin->generator)
        shuf__input_close(&work.input);
    free(work.count);
    free(work.sum);
    return status;
}
