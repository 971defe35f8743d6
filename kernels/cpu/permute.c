/* SPDX-License-Identifier: MIT
 *
 * Compaction in one pass, without a second copy: threads take tiles in order,
 * evaluate and compact each in their own cache, learn where it starts from the
 * tile before, and copy the part that was asked for to its place.
 *
 * At n = 2^B nothing is dropped and every value knows its place by itself; so it
 * does with primefold, whatever n is.
 */
#include "permute.h"

#include <assert.h>
#include <omp.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum {
    TILE = 16384,        /* inputs; 128 KiB of wide values, which fit the L2 with room */
    ROWS_PER_THREAD = 4, /* from here on rows, not tiles, are dealt to threads */
};

struct tile {
    _Alignas(64) union {
        uint32_t narrow[TILE];
        uint64_t wide[TILE];
    };
};

/* What the threads at work on one row share. */
struct row {
    union shuf__bijection f;
    void *out;                 /* the row's first value */
    atomic_uint_fast64_t next; /* tile to take */
    atomic_uint_fast64_t turn; /* tile whose start is known: `base` */
    uint64_t base;             /* kept values before tile `turn`; owned by who has the turn */
    atomic_bool stop;          /* complete, or cancelled */
};

/* Read by all threads, written by none but `cancelled`. */
struct work {
    const struct shuf__lanes *lanes;
    const struct shuf__job *job;
    unsigned bits;
    shuf_primefold_shape shape; /* of primefold */
    bool narrow;                /* whether the lanes give 32-bit values: B <= 32 */
    bool direct;                /* values know their places: primefold, or n = 2^B */
    uint64_t tiles; /* of a row: of what was asked for where direct, else of the domain */
    char *out;
    atomic_bool cancelled;
};

static void make_bijection(const struct work *work, uint64_t row, union shuf__bijection *f)
{
    const struct shuf__job *job = work->job;
    switch (job->algorithm) {
    case SHUF_ALGORITHM_PRIMEFOLD:
        shuf__primefold_make(&f->primefold, &work->shape, job->seed, job->epoch + row);
        return;
    case SHUF_ALGORITHM_PHILOX24:
        f->philox24 = shuf_philox24_make(job->n, job->seed, job->epoch + row);
        return;
    case SHUF_ALGORITHM_LCG:
        f->lcg = shuf_lcg_make(job->n, job->seed, job->epoch + row);
        return;
    case SHUF_ALGORITHM_COUNT:
        break;
    }
    assert(!"an algorithm without a bijection");
}

static bool is_cancelled(struct work *work)
{
    const struct shuf__job *job = work->job;
    if (job->cancelled && job->cancelled(job->cancel_context))
        atomic_store(&work->cancelled, true);
    return atomic_load(&work->cancelled);
}

/* out[i] = tile[from + i * step], converted to the job's width. */
static void copy_values(const struct work *work, const struct tile *tile, size_t from, size_t step,
                        void *out, size_t count)
{
    unsigned width = work->job->width;
    if (work->narrow && width == 4 && step == 1)
        memcpy(out, tile->narrow + from, 4 * count);
    else if (work->narrow && width == 4)
        for (size_t i = 0; i < count; i++)
            ((uint32_t *)out)[i] = tile->narrow[from + i * step];
    else if (work->narrow)
        for (size_t i = 0; i < count; i++)
            ((uint64_t *)out)[i] = tile->narrow[from + i * step];
    else if (width == 4)
        for (size_t i = 0; i < count; i++)
            ((uint32_t *)out)[i] = (uint32_t)tile->wide[from + i * step];
    else
        for (size_t i = 0; i < count; i++)
            ((uint64_t *)out)[i] = tile->wide[from + i * step];
}

/* The tile's values stand at positions base, base + 1, ...: gives the job those
 * that it asked for. */
static void place(const struct work *work, const struct tile *tile, uint64_t base, uint64_t kept,
                  char *out)
{
    const struct shuf__job *job = work->job;
    if (base + kept <= job->offset)
        return;
    uint64_t first = base <= job->offset ? 0 : (base - job->offset + job->stride - 1) / job->stride;
    uint64_t from = job->offset + first * job->stride;
    if (first >= job->count || from >= base + kept)
        return;
    uint64_t count = (base + kept - 1 - from) / job->stride + 1;
    if (count > job->count - first)
        count = job->count - first;
    copy_values(work, tile, from - base, job->stride, out + first * job->width, count);
}

static uint64_t evaluate(const struct work *work, const union shuf__bijection *f, uint64_t x0,
                         struct tile *tile)
{
    const struct shuf__lanes *lanes = work->lanes;
    enum shuf_algorithm a = work->job->algorithm;
    uint64_t domain = UINT64_C(1) << work->bits;
    size_t count = domain - x0 < TILE ? domain - x0 : TILE;
    if (work->narrow) {
        lanes->narrow[a](f, (uint32_t)x0, 1, tile->narrow, count);
        return lanes->compact_narrow(tile->narrow, count, (uint32_t)work->job->n);
    }
    lanes->wide[a](f, x0, 1, tile->wide, count);
    return lanes->compact_wide(tile->wide, count, work->job->n);
}

/* False when the row was stopped in the meantime. A thread that was put off its
 * core may hold the turn, so waiting gives the core away. */
static bool wait_for_turn(struct row *row, uint64_t index)
{
    for (unsigned spins = 0; atomic_load(&row->turn) != index; spins++) {
        if (atomic_load(&row->stop))
            return false;
        if (spins > 200)
            sched_yield();
    }
    return true;
}

static void work_on_row(struct work *work, struct row *row, struct tile *tile)
{
    const struct shuf__job *job = work->job;
    uint64_t last = job->offset + (job->count - 1) * job->stride;
    for (;;) {
        uint64_t index = atomic_fetch_add(&row->next, 1);
        if (index >= work->tiles || atomic_load(&row->stop))
            return;
        if (is_cancelled(work)) {
            atomic_store(&row->stop, true);
            return;
        }
        uint64_t kept = evaluate(work, &row->f, index * TILE, tile);
        if (!wait_for_turn(row, index))
            return;
        uint64_t base = row->base;
        row->base = base + kept;
        if (row->base > last) /* what a wrapped value needs stood at the front */
            atomic_store(&row->stop, true);
        atomic_store(&row->turn, index + 1);
        place(work, tile, base, kept, row->out);
        if (last >= job->n)
            place(work, tile, base + job->n, kept, row->out);
    }
}

/* Where values know their places: those at x0, x0 + stride, ... Straight to where they belong, if
 * the lanes write what the job wants. */
static void evaluate_direct(const struct work *work, const union shuf__bijection *f, uint64_t x0,
                            size_t count, struct tile *tile, char *out)
{
    const struct shuf__job *job = work->job;
    const bool there = work->narrow == (job->width == 4);
    if (work->narrow)
        work->lanes->narrow[job->algorithm](f, (uint32_t)x0, (uint32_t)job->stride,
                                            there ? (uint32_t *)out : tile->narrow, count);
    else
        work->lanes->wide[job->algorithm](f, x0, job->stride, there ? (uint64_t *)out : tile->wide,
                                          count);
    if (!there)
        copy_values(work, tile, 0, 1, out, count);
}

/* The value at the very end alone may stand past n, and is taken from the front. */
static void work_on_direct_row(struct work *work, struct row *row, struct tile *tile)
{
    const struct shuf__job *job = work->job;
    const uint64_t last = job->offset + (job->count - 1) * job->stride;
    for (;;) {
        uint64_t first = atomic_fetch_add(&row->next, 1) * TILE;
        if (first >= job->count || is_cancelled(work))
            return;
        size_t count = job->count - first < TILE ? job->count - first : TILE;
        bool wraps = first + count == job->count && last >= job->n;
        char *out = (char *)row->out + first * job->width;
        if (count > wraps)
            evaluate_direct(work, &row->f, job->offset + first * job->stride, count - wraps, tile,
                            out);
        if (wraps)
            evaluate_direct(work, &row->f, last % job->n, 1, tile, out + (count - 1) * job->width);
    }
}

static void begin_row(struct work *work, struct row *row, uint64_t index)
{
    make_bijection(work, index, &row->f);
    row->out = work->out + index * work->job->count * work->job->width;
    row->base = 0;
    atomic_init(&row->next, 0);
    atomic_init(&row->turn, 0);
    atomic_init(&row->stop, false);
}

static void join_row(struct work *work, struct row *row, struct tile *tile)
{
    if (work->direct)
        work_on_direct_row(work, row, tile);
    else
        work_on_row(work, row, tile);
}

/* Small rows are dealt by the handful, as taking one costs more than its work. */
static int rows_at_once(const struct work *work, int threads)
{
    uint64_t share = work->job->rows / (8 * (uint64_t)threads);
    return work->tiles > 1 || share < 1 ? 1 : share < 64 ? (int)share : 64;
}

static void each_row_by_one_thread(struct work *work, int threads)
{
    const int handful = rows_at_once(work, threads);
#pragma omp parallel num_threads(threads)
    {
        struct tile tile;
#pragma omp for schedule(dynamic, handful)
        for (uint64_t index = 0; index < work->job->rows; index++) {
            struct row row;
            if (is_cancelled(work))
                continue;
            begin_row(work, &row, index);
            join_row(work, &row, &tile);
        }
    }
}

static void each_row_by_all_threads(struct work *work, int threads)
{
    for (uint64_t index = 0; index < work->job->rows && !is_cancelled(work); index++) {
        struct row row;
        begin_row(work, &row, index);
#pragma omp parallel num_threads(threads)
        {
            struct tile tile;
            join_row(work, &row, &tile);
        }
    }
}

/* A team costs more to wake than a small job to do, even a team of one. */
static void all_by_this_thread(struct work *work)
{
    struct tile tile;
    for (uint64_t index = 0; index < work->job->rows && !is_cancelled(work); index++) {
        struct row row;
        begin_row(work, &row, index);
        join_row(work, &row, &tile);
    }
}

static void plan_work(struct work *work)
{
    const struct shuf__job *job = work->job;
    work->bits = shuf_domain_bits(job->n);
    work->narrow = work->bits <= 32;
    work->direct = job->n == UINT64_C(1) << work->bits;
    if (job->algorithm == SHUF_ALGORITHM_PRIMEFOLD) {
        work->shape = shuf_primefold_shape_of(job->n);
        work->narrow = shuf__primefold_word_bits(&work->shape) <= 32;
        work->direct = true;
    }
    uint64_t values = work->direct ? job->count : UINT64_C(1) << work->bits;
    work->tiles = (values + TILE - 1) / TILE;
}

bool shuf__cpu_permute(const struct shuf__lanes *lanes, int threads, const struct shuf__job *job,
                       void *out)
{
    assert(job->offset < job->n && job->stride <= UINT64_C(1) << 62);
    if (job->count == 0)
        return true;
    struct work work = {.lanes = lanes, .job = job, .out = out};
    plan_work(&work);
    atomic_init(&work.cancelled, false);
    if (threads == 1)
        all_by_this_thread(&work);
    else if (job->rows > 1 && (work.tiles == 1 || job->rows / ROWS_PER_THREAD >= (uint64_t)threads))
        each_row_by_one_thread(&work, threads);
    else
        each_row_by_all_threads(&work, work.tiles < (uint64_t)threads ? (int)work.tiles : threads);
    return !atomic_load(&work.cancelled);
}
