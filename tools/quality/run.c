/* SPDX-License-Identifier: MIT
 *
 * See run.h.
 */
#include "run.h"

#include "clock.h"

#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The progress line ---- */

static const uint64_t interval_ns = 200000000;

void shuf__quality_progress_start(struct shuf__quality_progress *progress)
{
    progress->start_ns = progress->shown_ns = shuf__clock_ns();
}

void shuf__quality_progress_show(struct shuf__quality_progress *progress, uint64_t done)
{
    const uint64_t now = shuf__clock_ns();
    char size[32] = "";
    if (!progress->enabled || now < progress->shown_ns + interval_ns)
        return;
    progress->shown_ns = now;
    if (progress->n != 0)
        snprintf(size, sizeof size, "n = %" PRIu32 ": ", progress->n);
    if (progress->all == UINT64_MAX)
        fprintf(stderr, "\r%s%" PRIu64 " %s \033[K", size, done, progress->unit);
    else
        fprintf(stderr, "\r%s%3.0f%% of %" PRIu64 " %s \033[K", size,
                100.0 * (double)done / (double)progress->all, progress->all, progress->unit);
}

void shuf__quality_progress_end(const struct shuf__quality_progress *progress)
{
    if (progress->shown_ns != progress->start_ns)
        fputs("\r\033[K", stderr);
}

double shuf__quality_progress_seconds(const struct shuf__quality_progress *progress)
{
    return (double)(shuf__clock_ns() - progress->start_ns) / 1e9;
}

/* ---- Runs ---- */

/* Threads take blocks of rows. Each thread counts in words of its own, and the words are added at
 * the end. Every second block also has the rows of the next seed. The other blocks also have the
 * rows of a seed with one changed bit. */

enum { BLOCK_VALUES = 1 << 16, BLOCKS = 512, SEED_BITS = 64 };

struct run {
    const struct shuf__run_options *options;
    void *source;
    bool relatives;      /* a selected test compares related rows */
    size_t block, words; /* rows of a block; words of all tests */
    /* From here on, only one thread at a time changes the fields. */
    uint64_t next, done; /* rows that are taken, and rows that are done */
    bool stop;           /* at the end of the rows, or for the reason in `status` */
    bool bad_rows;       /* the reason is a fault of the input */
    shuf_status status;
    struct shuf__error *error;
    uint64_t *sum;
    struct shuf__quality_progress progress;
};

/* The buffers and counts of a thread. */
struct thread_state {
    uint32_t *row, *relative, *scratch;
    uint64_t *words;
    struct shuf__rows rows;
};

static bool is_selected(const struct run *run, int test)
{
    const struct shuf__run_options *options = run->options;
    return options->tests >> test & 1 &&
           shuf__test_applies(&shuf__tests[test], options->n, options->origin->type->relatives);
}

/* The number of rows of a block. It is even, and the rows fit a cache. There are enough blocks to
 * change every bit of the seed. */
static size_t rows_at_once(uint32_t n, uint64_t samples)
{
    uint64_t rows = BLOCK_VALUES / n;
    if (rows > samples / BLOCKS)
        rows = samples / BLOCKS;
    if (rows > SHUF__ROWS_MAX)
        rows = SHUF__ROWS_MAX;
    return rows < 2 ? 2 : (size_t)rows & ~(size_t)1;
}

static void sum_sizes(struct run *run)
{
    run->block = rows_at_once(run->options->n, run->options->samples);
    for (int i = 0; shuf__tests[i].name; i++)
        if (is_selected(run, i)) {
            run->words += shuf__tests[i].words(run->options->n);
            run->relatives |= shuf__tests[i].relatives;
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

static shuf_status read_rows(struct run *run, struct thread_state *thread,
                             struct shuf__error *error)
{
    const struct shuf__source_type *type = run->options->origin->type;
    struct shuf__rows *rows = &thread->rows;
    struct shuf__row_request request = {.first = rows->first, .count = rows->count};
    shuf_status status = type->read(run->source, &request, thread->row, &rows->count, error);
    if (status != SHUF_OK || rows->relation == SHUF__SELF || rows->count == 0)
        return status;
    request.relation = rows->relation;
    request.bit = rows->bit;
    return type->read(run->source, &request, thread->relative, &request.count, error);
}

/* Chooses the next rows, and the rows that they are compared with. */
static void assign(const struct run *run, struct shuf__rows *rows, uint32_t *relative)
{
    const struct shuf__run_options *options = run->options;
    const uint64_t left = options->samples - run->next, index = run->next / run->block;
    rows->first = run->next;
    rows->count = left < run->block ? (size_t)left : run->block;
    rows->relation = SHUF__SELF;
    if (run->relatives)
        rows->relation = index % 2 == 0 ? SHUF__NEIGHBOUR : SHUF__FLIPPED;
    rows->bit = rows->relation == SHUF__FLIPPED ? index / 2 % SEED_BITS : 0;
    rows->seed = options->origin->seed + (rows->vary_seed ? rows->first : 0);
    rows->relative = rows->relation == SHUF__SELF ? NULL : relative;
}

/* Takes the next block. Returns false if there is none. One thread at a time calls this function.
 */
static bool take(struct run *run, struct thread_state *thread)
{
    struct shuf__error error;
    if (shuf__interrupted() || run->stop || run->next == run->options->samples)
        return false;
    assign(run, &thread->rows, thread->relative);
    if (!run->options->origin->type->parallel) {
        const size_t requested = thread->rows.count;
        const shuf_status status = read_rows(run, thread, &error);
        if (status != SHUF_OK) {
            run->bad_rows = status == SHUF_INVALID && run->options->origin->type->data;
            fail(run, status, &error);
            return false;
        }
        run->stop = thread->rows.count < requested;
    }
    run->next += thread->rows.count;
    shuf__quality_progress_show(&run->progress, run->next);
    return thread->rows.count > 0;
}

static shuf_status check(const struct run *run, const struct thread_state *thread,
                         struct shuf__error *error)
{
    const struct shuf__rows *rows = &thread->rows;
    shuf_status status = shuf__rows_check(run->options->n, thread->row, rows->count, rows->first,
                                          thread->scratch, error);
    if (status != SHUF_OK || !rows->relative)
        return status;
    return shuf__rows_check(run->options->n, thread->relative, rows->count, rows->first,
                            thread->scratch, error);
}

static void count(const struct run *run, struct thread_state *thread)
{
    uint64_t *words = thread->words;
    for (int i = 0; shuf__tests[i].name; i++)
        if (is_selected(run, i)) {
            shuf__tests[i].add(&thread->rows, words);
            words += shuf__tests[i].words(run->options->n);
        }
}

static void run_thread(struct run *run, struct thread_state *thread)
{
    for (;;) {
        struct shuf__error error;
        shuf_status status = SHUF_OK;
        bool more;
#pragma omp critical(shuf_run)
        more = take(run, thread);
        if (!more)
            return;
        if (run->options->origin->type->parallel)
            status = read_rows(run, thread, &error);
        const bool read = status == SHUF_OK;
        if (read)
            status = check(run, thread, &error);
        if (status == SHUF_OK)
            count(run, thread);
#pragma omp critical(shuf_run)
        {
            run->bad_rows |= read && status != SHUF_OK;
            if (status != SHUF_OK)
                fail(run, status, &error);
            else
                run->done += thread->rows.count;
        }
        if (status != SHUF_OK)
            return;
    }
}

static bool set_up(const struct run *run, struct thread_state *thread)
{
    const struct shuf__run_options *options = run->options;
    const size_t values = run->block * options->n;
    thread->row = malloc(values * sizeof *thread->row);
    thread->relative = run->relatives ? malloc(values * sizeof *thread->relative) : NULL;
    thread->scratch =
        malloc((2 * (size_t)options->n + options->n / 32 + 1) * sizeof *thread->scratch);
    thread->words = calloc(run->words + 1, sizeof *thread->words);
    thread->rows =
        (struct shuf__rows){.n = options->n,
                            .row = thread->row,
                            .scratch = thread->scratch,
                            .vary_seed = options->origin->vary_seed,
                            .modulus = shuf__origin_modulus(options->origin, options->n)};
    return thread->row && thread->scratch && thread->words && (thread->relative || !run->relatives);
}

static void clear(struct thread_state *thread)
{
    free(thread->row);
    free(thread->relative);
    free(thread->scratch);
    free(thread->words);
}

static void run_threads(struct run *run)
{
#pragma omp parallel num_threads(run->options->threads)
    {
        struct thread_state thread;
        if (set_up(run, &thread)) {
            run_thread(run, &thread);
#pragma omp critical(shuf_run)
            for (size_t i = 0; i < run->words; i++)
                run->sum[i] += thread.words[i];
        } else {
            struct shuf__error error;
            shuf__fail(&error, SHUF_NO_MEMORY, "n %" PRIu32 ": its rows do not fit in memory",
                       run->options->n);
#pragma omp critical(shuf_run)
            fail(run, SHUF_NO_MEMORY, &error);
        }
        clear(&thread);
    }
}

static void judge(const struct run *run, struct shuf__findings *findings)
{
    const uint64_t *words = run->sum;
    for (int i = 0; shuf__tests[i].name; i++)
        if (is_selected(run, i)) {
            findings->test = shuf__tests[i].name;
            shuf__tests[i].judge(run->options->n, words, findings);
            words += shuf__tests[i].words(run->options->n);
        }
}

static shuf_status run_source(struct run *run, struct shuf__findings *findings,
                              struct shuf__outcome *outcome)
{
    shuf__quality_progress_start(&run->progress);
    run_threads(run);
    shuf__quality_progress_end(&run->progress);
    if (run->status == SHUF_OK && run->done > 0)
        judge(run, findings);
    outcome->rows = run->done;
    outcome->bad_rows = run->bad_rows;
    outcome->seconds = shuf__quality_progress_seconds(&run->progress);
    outcome->interrupted = shuf__interrupted() && run->done < run->options->samples;
    return run->status;
}

shuf_status shuf__run(const struct shuf__run_options *options, struct shuf__findings *findings,
                      struct shuf__outcome *outcome, struct shuf__error *error)
{
    const struct shuf__source_type *type = options->origin->type;
    struct run run = {
        .options = options,
        .error = error,
        .progress = {.enabled = options->progress,
                     .n = options->n,
                     .all = options->samples,
                     .unit = "rows"},
    };
    *outcome = (struct shuf__outcome){0};
    sum_sizes(&run);
    run.source = calloc(1, type->state);
    run.sum = calloc(run.words + 1, sizeof *run.sum);
    shuf_status status =
        run.source && run.sum
            ? type->open(run.source, options->origin, options->n, error)
            : shuf__fail(error, SHUF_NO_MEMORY, "n %" PRIu32 ": no memory", options->n);
    if (status == SHUF_OK)
        status = run_source(&run, findings, outcome);
    if (run.source)
        type->close(run.source);
    free(run.source);
    free(run.sum);
    return status;
}
