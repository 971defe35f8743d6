/* SPDX-License-Identifier: MIT
 *
 * Runs the tests on a stream, as run.c does on permutations. Threads take chunks in order. Each
 * thread counts in words of its own. Of four chunks, one is also compared with the same chunk of
 * the next stream, and another one with the same chunk of the next seed.
 */
#include "run.h"
#include "stream.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- The tests ---- */

const struct shuf__stream_test *const shuf__stream_tests[] = {
    &shuf__stream_moments,
    &shuf__stream_bins,
    &shuf__stream_anderson_darling,
    &shuf__stream_tails,
    &shuf__stream_lags,
    &shuf__stream_pairs,
    &shuf__stream_walsh,
    &shuf__stream_squares,
    &shuf__stream_streams,
    &shuf__stream_low_bits,
    &shuf__stream_repeats,
    &shuf__stream_lattice,
    &shuf__stream_cosines,
    &shuf__stream_quads,
    &shuf__stream_signs,
    &shuf__stream_norms,
    &shuf__stream_places,
    &shuf__stream_round,
    &shuf__stream_ties,
    &shuf__stream_windows,
    &shuf__stream_mixed,
    &shuf__stream_quotients,
    NULL,
};

bool shuf__stream_applies(const struct shuf__stream_test *test, const struct shuf__stream_law *law,
                          bool relatives)
{
    const unsigned of = law->uniform ? SHUF__OF_UNIFORM : SHUF__OF_NORMAL;
    return test->of & of && (relatives || !test->relatives) &&
           !(law->rounded && test->of & SHUF__OF_FINE);
}

/* ---- Runs ---- */

/* Sums are integers, in units of 2^-32. The rounding is much smaller than the random variation of
 * the sums. */
typedef __int128 fixed;
#define FIXED_ONE 4294967296.0

struct run {
    const struct shuf__stream_run_options *options;
    struct shuf__input input;
    bool relatives;
    size_t counts, sums; /* of all tests together */
    /* From here on, only one thread at a time changes the fields. */
    uint64_t next, done; /* values that are taken, and values that are done */
    bool stop, bad_values;
    shuf_status status;
    struct shuf__error *error;
    uint64_t *count, *histogram;
    fixed *sum;
    struct shuf__quality_progress progress;
};

/* The buffers and counts of a thread. */
struct thread_state {
    unsigned char *raw;
    double *value, *z, *spread, *by_block, *by_place, *relative, *scratch;
    uint64_t *count;
    double *chunk_sum;
    fixed *sum;
    uint64_t histogram[SHUF__HISTOGRAM_CELLS];
    struct shuf__chunk chunk;
};

static bool is_selected(const struct run *run, int test)
{
    const struct shuf__stream_run_options *options = run->options;
    return options->tests >> test & 1 &&
           shuf__stream_applies(shuf__stream_tests[test], options->law,
                                options->origin->generator != NULL);
}

static void sum_sizes(struct run *run)
{
    for (int i = 0; shuf__stream_tests[i]; i++)
        if (is_selected(run, i)) {
            run->counts += shuf__stream_tests[i]->counts;
            run->sums += shuf__stream_tests[i]->sums;
            run->relatives |= shuf__stream_tests[i]->relatives;
        }
}

static void fail(struct run *run, shuf_status status, const struct shuf__error *error)
{
    run->stop = true;
    if (status == SHUF_CANCELLED || run->status != SHUF_OK)
        return; /* an interrupt is not a failure, and only the first failure is kept */
    run->status = status;
    *run->error = *error;
}

/* ---- Values ---- */

static shuf_status read_raw(struct run *run, struct thread_state *thread, struct shuf__error *error)
{
    const shuf_dtype dtype = run->options->origin->dtype;
    const unsigned width = shuf__dtype_bytes(dtype);
    struct shuf__chunk *chunk = &thread->chunk;
    size_t got;
    shuf_status status =
        shuf__input_read(&run->input, thread->raw, chunk->count * width, &got, error);
    run->bad_values |= status == SHUF_INVALID;
    if (status != SHUF_OK)
        return status;
    chunk->count = got / width;
    if (got % width == 0)
        return SHUF_OK;
    run->bad_values = true;
    return shuf__fail(error, SHUF_INVALID,
                      "value %" PRIu64 ": ends after %zu byte%s: expected %u bytes of %s",
                      chunk->first + chunk->count, got % width, shuf__plural(got % width), width,
                      shuf__dtype_name(dtype));
}

static void generate(const struct run *run, struct thread_state *thread)
{
    const struct shuf__stream_origin *origin = run->options->origin;
    const struct shuf__chunk *chunk = &thread->chunk;
    const size_t whole =
        (chunk->count + SHUF__SUPERBLOCK - 1) / SHUF__SUPERBLOCK * SHUF__SUPERBLOCK;
    origin->generator->fill(origin->seed, origin->stream, origin->dtype, chunk->first, whole,
                            thread->value);
    if (chunk->relation != SHUF__ALONE)
        origin->generator->fill(origin->seed + (chunk->relation == SHUF__NEXT_SEED),
                                origin->stream + (chunk->relation == SHUF__NEXT_STREAM),
                                origin->dtype, chunk->first, whole, thread->relative);
}

/* Standardises `count` values. Returns the index of the first value that is outside the range of
 * the law, or `count` if there is none. */
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

/* Orders values by block. A block has 16 pairs of neighbouring values, 64 apart. */
static void arrange(struct thread_state *thread)
{
    for (size_t i = 0; i + SHUF__SUPERBLOCK <= thread->chunk.count; i += SHUF__SUPERBLOCK)
        for (unsigned r = 0; r < SHUF__SUPERBLOCK; r++) {
            const unsigned place = r / 64 * 2 + r % 2, block = r % 64 / 2;
            thread->by_block[i + SHUF__BLOCK * block + place] = thread->spread[i + r];
            thread->by_place[i + SHUF__BLOCK * place + block] = thread->z[i + r];
        }
    thread->chunk.blocks = thread->chunk.count / SHUF__SUPERBLOCK * SHUF__BLOCK;
}

static shuf_status make_values(const struct run *run, struct thread_state *thread,
                               struct shuf__error *error)
{
    const struct shuf__stream_origin *origin = run->options->origin;
    struct shuf__chunk *chunk = &thread->chunk;
    if (origin->generator)
        generate(run, thread);
    else
        shuf__dtype_decode(origin->dtype, thread->raw, chunk->count, thread->value);
    const size_t bad = standardise(chunk->law, thread->value, chunk->count, thread->z);
    if (bad < chunk->count)
        return shuf__fail(error, SHUF_INVALID, "value %" PRIu64 ": %g: expected a %s",
                          chunk->first + bad, thread->value[bad],
                          chunk->law->uniform ? "number from 0 to 1" : "finite number");
    if (chunk->relation != SHUF__ALONE)
        standardise(chunk->law, thread->relative, chunk->count, thread->relative);
    shuf__law_spread(chunk->law, thread->z, chunk->count, chunk->first, thread->spread);
    arrange(thread);
    return SHUF_OK;
}

/* ---- Threads ---- */

static enum shuf__stream_relation relation_of(const struct run *run, uint64_t index)
{
    if (!run->relatives || index % 2 != 0)
        return SHUF__ALONE;
    return index % 4 == 0 ? SHUF__NEXT_STREAM : SHUF__NEXT_SEED;
}

/* Takes the next chunk. Returns false if there is none. One thread at a time calls this function.
 */
static bool take(struct run *run, struct thread_state *thread)
{
    const uint64_t left = run->options->samples - run->next;
    struct shuf__chunk *chunk = &thread->chunk;
    struct shuf__error error;
    if (shuf__interrupted() || run->stop || left == 0)
        return false;
    chunk->first = run->next;
    chunk->count = left < SHUF__CHUNK ? (size_t)left : SHUF__CHUNK;
    chunk->relation = relation_of(run, run->next / SHUF__CHUNK);
    if (!run->options->origin->generator) {
        const size_t requested = chunk->count;
        const shuf_status status = read_raw(run, thread, &error);
        if (status != SHUF_OK) {
            fail(run, status, &error);
            return false;
        }
        run->stop = chunk->count < requested;
    }
    run->next += chunk->count;
    shuf__quality_progress_show(&run->progress, run->next);
    return chunk->count > 0;
}

static void draw_histogram(struct thread_state *thread)
{
    for (size_t i = 0; i < thread->chunk.count; i++) {
        const double cell = (thread->z[i] - SHUF__HISTOGRAM_LOW) * (1 / SHUF__HISTOGRAM_WIDTH);
        if (cell >= 0 && cell < SHUF__HISTOGRAM_CELLS)
            thread->histogram[(unsigned)cell]++;
    }
}

static void count(const struct run *run, struct thread_state *thread)
{
    uint64_t *counts = thread->count;
    double *sums = thread->chunk_sum;
    for (size_t i = 0; i < run->sums; i++)
        sums[i] = 0;
    for (int i = 0; shuf__stream_tests[i]; i++)
        if (is_selected(run, i)) {
            shuf__stream_tests[i]->add(&thread->chunk, counts, sums);
            counts += shuf__stream_tests[i]->counts;
            sums += shuf__stream_tests[i]->sums;
        }
    for (size_t i = 0; i < run->sums; i++)
        thread->sum[i] += (fixed)(thread->chunk_sum[i] * FIXED_ONE);
    draw_histogram(thread);
}

static void run_thread(struct run *run, struct thread_state *thread)
{
    for (;;) {
        struct shuf__error error;
        bool more;
#pragma omp critical(shuf_stream)
        more = take(run, thread);
        if (!more)
            return;
        const shuf_status status = make_values(run, thread, &error);
        if (status == SHUF_OK)
            count(run, thread);
#pragma omp critical(shuf_stream)
        {
            run->bad_values |= status == SHUF_INVALID;
            if (status != SHUF_OK)
                fail(run, status, &error);
            else
                run->done += thread->chunk.count;
        }
        if (status != SHUF_OK)
            return;
    }
}

static bool set_up(const struct run *run, struct thread_state *thread)
{
    double **const arrays[] = {&thread->value,    &thread->z,        &thread->spread,
                               &thread->by_block, &thread->by_place, &thread->relative,
                               &thread->scratch};
    bool all = true;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i] = malloc(2 * SHUF__CHUNK * sizeof **arrays[i]);
        all &= *arrays[i] != NULL;
    }
    thread->raw = malloc(SHUF__CHUNK * sizeof *thread->value);
    thread->count = calloc(run->counts + 1, sizeof *thread->count);
    thread->chunk_sum = calloc(run->sums + 1, sizeof *thread->chunk_sum);
    thread->sum = calloc(run->sums + 1, sizeof *thread->sum);
    thread->chunk = (struct shuf__chunk){.law = run->options->law,
                                         .value = thread->value,
                                         .z = thread->z,
                                         .spread = thread->spread,
                                         .by_block = thread->by_block,
                                         .by_place = thread->by_place,
                                         .relative = thread->relative,
                                         .scratch = thread->scratch};
    return all && thread->raw && thread->count && thread->chunk_sum && thread->sum;
}

static void clear(struct thread_state *thread)
{
    void *const arrays[] = {thread->value,    thread->z,         thread->spread,  thread->by_block,
                            thread->by_place, thread->relative,  thread->scratch, thread->raw,
                            thread->count,    thread->chunk_sum, thread->sum,     thread};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
}

static void add_up(struct run *run, const struct thread_state *thread)
{
    for (size_t i = 0; i < run->counts; i++)
        run->count[i] += thread->count[i];
    for (size_t i = 0; i < run->sums; i++)
        run->sum[i] += thread->sum[i];
    for (size_t i = 0; i < SHUF__HISTOGRAM_CELLS; i++)
        run->histogram[i] += thread->histogram[i];
}

static void run_threads(struct run *run)
{
#pragma omp parallel num_threads(run->options->threads)
    {
        struct thread_state *thread = calloc(1, sizeof *thread);
        if (thread && set_up(run, thread)) {
            run_thread(run, thread);
#pragma omp critical(shuf_stream)
            add_up(run, thread);
        } else {
            struct shuf__error error;
            shuf__fail(&error, SHUF_NO_MEMORY, "no memory");
#pragma omp critical(shuf_stream)
            fail(run, SHUF_NO_MEMORY, &error);
        }
        if (thread)
            clear(thread);
    }
}

/* ---- The verdict ---- */

static shuf_status judge(const struct run *run, struct shuf__findings *findings)
{
    const uint64_t *counts = run->count;
    double *sum = calloc(run->sums + 1, sizeof *sum), *sums = sum;
    if (!sum)
        return shuf__fail(run->error, SHUF_NO_MEMORY, "no memory");
    for (size_t i = 0; i < run->sums; i++)
        sum[i] = (double)run->sum[i] / FIXED_ONE;
    for (int i = 0; shuf__stream_tests[i]; i++)
        if (is_selected(run, i)) {
            const struct shuf__stream_test *test = shuf__stream_tests[i];
            findings->test = test->name;
            test->judge(run->options->law, run->done, counts, sums, findings);
            counts += test->counts;
            sums += test->sums;
        }
    free(sum);
    return SHUF_OK;
}

static shuf_status run_all(struct run *run, struct shuf__findings *findings,
                           struct shuf__stream_outcome *outcome)
{
    shuf__quality_progress_start(&run->progress);
    run_threads(run);
    shuf__quality_progress_end(&run->progress);
    if (run->status == SHUF_OK && run->done > 0)
        run->status = judge(run, findings);
    outcome->values = run->done;
    outcome->bad_values = run->bad_values;
    outcome->seconds = shuf__quality_progress_seconds(&run->progress);
    outcome->interrupted = shuf__interrupted() && run->done < run->options->samples;
    return run->status;
}

shuf_status shuf__stream_run(const struct shuf__stream_run_options *options,
                             struct shuf__findings *findings, struct shuf__stream_outcome *outcome,
                             struct shuf__error *error)
{
    struct run run = {
        .options = options,
        .error = error,
        .histogram = outcome->histogram,
        .progress = {.enabled = options->progress, .all = options->samples, .unit = "values"},
    };
    shuf_status status = SHUF_OK;
    *outcome = (struct shuf__stream_outcome){0};
    sum_sizes(&run);
    if (!options->origin->generator)
        status = shuf__input_open(&run.input, options->origin->input, error);
    if (status != SHUF_OK)
        return status;
    run.count = calloc(run.counts + 1, sizeof *run.count);
    run.sum = calloc(run.sums + 1, sizeof *run.sum);
    status = run.count && run.sum ? run_all(&run, findings, outcome)
                                  : shuf__fail(error, SHUF_NO_MEMORY, "no memory");
    if (!options->origin->generator)
        shuf__input_close(&run.input);
    free(run.count);
    free(run.sum);
    return status;
}
