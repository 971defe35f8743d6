/* SPDX-License-Identifier: MIT
 *
 * See run.h. Threads take blocks of rows and count into their own words, which are added at the
 * end. Every second block also has the rows of the next seed; the other blocks have the rows of a
 * seed with one changed bit.
 */
#include "run.h"

#include "clock.h"
#include "progress.h"

#include <inttypes.h>
#include <omp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_VALUES = 1 << 16, BLOCKS = 512, SEED_BITS = 64 };

struct work {
    const struct shuf__task *task;
    void *source;
    bool relatives;      /* some test needs them */
    size_t block, words; /* rows of a block; words of all tests */
    uint64_t next, done; /* rows; `next` and the fields below change by one thread at a time */
    bool stop;           /* at the end, or for the reason in `status` */
    bool bad_rows;       /* the reason is the input */
    shuf_status status;
    struct shuf__error *error;
    uint64_t *sum;
    struct shuf__quality_progress progress;
};

/* The memory of a thread. */
struct desk {
    uint32_t *row, *relative, *scratch;
    uint64_t *words;
    struct shuf__rows rows;
};

/* The time of the first signal. It is atomic because any thread may receive the signal, and
 * lock-free because a handler must not wait. */
static atomic_ullong interrupted_ns;
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a signal handler sets it");

/* Some programs send a signal to a process and to its group, so it comes twice. Only a signal more
 * than a second later ends the process. */
static void on_signal(int signal_number)
{
    const uint64_t now_ns = shuf__clock_ns();
    unsigned long long first_ns = 0;
    if (atomic_compare_exchange_strong(&interrupted_ns, &first_ns, now_ns) ||
        now_ns < first_ns + UINT64_C(1000000000))
        return;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

void shuf__run_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool shuf__run_interrupted(void)
{
    return interrupted_ns != 0;
}

static bool wanted(const struct work *work, int test)
{
    const struct shuf__task *task = work->task;
    return task->tests >> test & 1 &&
           shuf__test_applies(&shuf__tests[test], task->n, task->origin->type->relatives);
}

/* The rows of a block: they fit a cache, their number is even, and there are enough blocks for
 * every bit of the seed. */
static size_t rows_at_once(uint32_t n, uint64_t samples)
{
    uint64_t rows = BLOCK_VALUES / n;
    if (rows > samples / BLOCKS)
        rows = samples / BLOCKS;
    if (rows > SHUF__ROWS_MAX)
        rows = SHUF__ROWS_MAX;
    return rows < 2 ? 2 : (size_t)rows & ~(size_t)1;
}

static void size_up(struct work *work)
{
    work->block = rows_at_once(work->task->n, work->task->samples);
    for (int i = 0; shuf__tests[i].name; i++)
        if (wanted(work, i)) {
            work->words += shuf__tests[i].words(work->task->n);
            work->relatives |= shuf__tests[i].relatives;
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

static shuf_status read_rows(struct work *work, struct desk *desk, struct shuf__error *error)
{
    const struct shuf__source_type *type = work->task->origin->type;
    struct shuf__rows *rows = &desk->rows;
    struct shuf__ask ask = {.first = rows->first, .count = rows->count};
    shuf_status status = type->read(work->source, &ask, desk->row, &rows->count, error);
    if (status != SHUF_OK || rows->relation == SHUF__SELF || rows->count == 0)
        return status;
    ask.relation = rows->relation;
    ask.bit = rows->bit;
    return type->read(work->source, &ask, desk->relative, &ask.count, error);
}

/* Chooses the next rows, and the relation of the other rows. */
static void assign(const struct work *work, struct shuf__rows *rows, uint32_t *relative)
{
    const struct shuf__task *task = work->task;
    const uint64_t left = task->samples - work->next, index = work->next / work->block;
    rows->first = work->next;
    rows->count = left < work->block ? (size_t)left : work->block;
    rows->relation = SHUF__SELF;
    if (work->relatives)
        rows->relation = index % 2 == 0 ? SHUF__NEIGHBOUR : SHUF__FLIPPED;
    rows->bit = rows->relation == SHUF__FLIPPED ? index / 2 % SEED_BITS : 0;
    rows->seed = task->origin->seed + (rows->vary_seed ? rows->first : 0);
    rows->relative = rows->relation == SHUF__SELF ? NULL : relative;
}

/* Takes the next block; false if there is none. One thread at a time calls it. */
static bool take(struct work *work, struct desk *desk)
{
    struct shuf__error error;
    if (shuf__run_interrupted() || work->stop || work->next == work->task->samples)
        return false;
    assign(work, &desk->rows, desk->relative);
    if (!work->task->origin->type->parallel) {
        const size_t asked = desk->rows.count;
        const shuf_status status = read_rows(work, desk, &error);
        if (status != SHUF_OK) {
            work->bad_rows = status == SHUF_INVALID && work->task->origin->type->data;
            fail(work, status, &error);
            return false;
        }
        work->stop = desk->rows.count < asked;
    }
    work->next += desk->rows.count;
    shuf__quality_progress_show(&work->progress, work->next);
    return desk->rows.count > 0;
}

static shuf_status check(const struct work *work, const struct desk *desk,
                         struct shuf__error *error)
{
    const struct shuf__rows *rows = &desk->rows;
    shuf_status status =
        shuf__rows_check(work->task->n, desk->row, rows->count, rows->first, desk->scratch, error);
    if (status != SHUF_OK || !rows->relative)
        return status;
    return shuf__rows_check(work->task->n, desk->relative, rows->count, rows->first, desk->scratch,
                            error);
}

static void count(const struct work *work, struct desk *desk)
{
    uint64_t *words = desk->words;
    for (int i = 0; shuf__tests[i].name; i++)
        if (wanted(work, i)) {
            shuf__tests[i].add(&desk->rows, words);
            words += shuf__tests[i].words(work->task->n);
        }
}

static void work_at(struct work *work, struct desk *desk)
{
    for (;;) {
        struct shuf__error error;
        shuf_status status = SHUF_OK;
        bool more;
#pragma omp critical(shuf_run)
        more = take(work, desk);
        if (!more)
            return;
        if (work->task->origin->type->parallel)
            status = read_rows(work, desk, &error);
        const bool read = status == SHUF_OK;
        if (read)
            status = check(work, desk, &error);
        if (status == SHUF_OK)
            count(work, desk);
#pragma omp critical(shuf_run)
        {
            work->bad_rows |= read && status != SHUF_OK;
            if (status != SHUF_OK)
                fail(work, status, &error);
            else
                work->done += desk->rows.count;
        }
        if (status != SHUF_OK)
            return;
    }
}

static bool set_up(const struct work *work, struct desk *desk)
{
    const struct shuf__task *task = work->task;
    const size_t values = work->block * task->n;
    desk->row = malloc(values * sizeof *desk->row);
    desk->relative = work->relatives ? malloc(values * sizeof *desk->relative) : NULL;
    desk->scratch = malloc((2 * (size_t)task->n + task->n / 32 + 1) * sizeof *desk->scratch);
    desk->words = calloc(work->words + 1, sizeof *desk->words);
    desk->rows = (struct shuf__rows){.n = task->n,
                                     .row = desk->row,
                                     .scratch = desk->scratch,
                                     .vary_seed = task->origin->vary_seed,
                                     .modulus = shuf__origin_modulus(task->origin, task->n)};
    return desk->row && desk->scratch && desk->words && (desk->relative || !work->relatives);
}

static void clear(struct desk *desk)
{
    free(desk->row);
    free(desk->relative);
    free(desk->scratch);
    free(desk->words);
}

static void work_by_all(struct work *work)
{
#pragma omp parallel num_threads(work->task->threads)
    {
        struct desk desk;
        if (set_up(work, &desk)) {
            work_at(work, &desk);
#pragma omp critical(shuf_run)
            for (size_t i = 0; i < work->words; i++)
                work->sum[i] += desk.words[i];
        } else {
            struct shuf__error error;
            shuf__fail(&error, SHUF_NO_MEMORY, "n %" PRIu32 ": its rows do not fit in memory",
                       work->task->n);
#pragma omp critical(shuf_run)
            fail(work, SHUF_NO_MEMORY, &error);
        }
        clear(&desk);
    }
}

static void judge(const struct work *work, struct shuf__findings *findings)
{
    const uint64_t *words = work->sum;
    for (int i = 0; shuf__tests[i].name; i++)
        if (wanted(work, i)) {
            findings->test = shuf__tests[i].name;
            shuf__tests[i].judge(work->task->n, words, findings);
            words += shuf__tests[i].words(work->task->n);
        }
}

static shuf_status run_source(struct work *work, struct shuf__findings *findings,
                              struct shuf__outcome *outcome)
{
    shuf__quality_progress_start(&work->progress);
    work_by_all(work);
    shuf__quality_progress_end(&work->progress);
    if (work->status == SHUF_OK && work->done > 0)
        judge(work, findings);
    outcome->rows = work->done;
    outcome->bad_rows = work->bad_rows;
    outcome->seconds = shuf__quality_progress_seconds(&work->progress);
    outcome->interrupted = shuf__run_interrupted() && work->done < work->task->samples;
    return work->status;
}

shuf_status shuf__run(const struct shuf__task *task, struct shuf__findings *findings,
                      struct shuf__outcome *outcome, struct shuf__error *error)
{
    const struct shuf__source_type *type = task->origin->type;
    struct work work = {
        .task = task,
        .error = error,
        .progress = {.enabled = task->progress, .n = task->n, .all = task->samples, .unit = "rows"},
    };
    *outcome = (struct shuf__outcome){0};
    size_up(&work);
    work.source = calloc(1, type->state);
    work.sum = calloc(work.words + 1, sizeof *work.sum);
    shuf_status status =
        work.source && work.sum
            ? type->open(work.source, task->origin, task->n, error)
            : shuf__fail(error, SHUF_NO_MEMORY, "n %" PRIu32 ": no memory", task->n);
    if (status == SHUF_OK)
        status = run_source(&work, findings, outcome);
    if (work.source)
        type->close(work.source);
    free(work.source);
    free(work.sum);
    return status;
}
