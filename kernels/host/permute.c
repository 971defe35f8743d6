/* SPDX-License-Identifier: MIT
 *
 * Compaction in one pass, without a temporary copy. Threads take tiles in order. Each thread
 * evaluates and compacts its tile in its own cache, takes its first position from the tile before
 * it, and copies the requested values to their places.
 *
 * With n = 2^B, and with primefold, nothing is dropped, so each value's place is known without the
 * tiles before it. If a rank index knows the tiles, those without requested values are skipped.
 *
 * For a shuffle, records are moved instead of values.
 */
#include "host/permute.h"

#include "host/move.h"
#include "host/primefold_shape.h"
#include "host/tile.h"
#include "slice.h"

#include <assert.h>
#include <omp.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { ROWS_PER_THREAD = 4 }; /* with this many, threads take rows, not tiles */

/* The state that the threads of one row share. */
struct row {
    union shuf__bijection f;
    void *out;                 /* the row's first value */
    uint64_t known, end;       /* tiles in the rank index; end of the tiles to take */
    atomic_uint_fast64_t next; /* tile to take */
    atomic_uint_fast64_t turn; /* tile whose first position is known: `base` */
    uint64_t base;    /* kept values before tile `turn`; owned by the thread of that tile */
    atomic_bool stop; /* complete, or cancelled */
};

/* All threads read it. None writes to it, except to `cancelled`. */
struct work {
    const struct shuf__simd_ops *simd;
    const struct shuf__computation *computation;
    const struct shuf__permutation *p; /* of the computation */
    unsigned width;                    /* bytes of a value, or of a shuffle's record */
    bool moves;                        /* records, for a shuffle */
    struct shuf__slice slice;          /* of each row */
    shuf_primefold_shape shape;        /* of primefold */
    bool narrow;                       /* whether values have 32 bits: B <= 32 */
    bool direct;                       /* a value's place is known alone: primefold, or n = 2^B */
    uint64_t tiles; /* of a row: of the requested values if direct, else of the domain */
    char *out;
    atomic_bool cancelled;
};

static bool is_cancelled(struct work *work)
{
    const struct shuf__computation *computation = work->computation;
    if (computation->cancelled && computation->cancelled(computation->cancel_context))
        atomic_store(&work->cancelled, true);
    return atomic_load(&work->cancelled);
}

/* out[i] = tile[from + i * step], converted to the computation's width. */
static void copy_values(const struct work *work, const struct shuf__tile *tile, size_t from,
                        size_t step, void *out, size_t count)
{
    const unsigned width = work->width;
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

static void place(const struct work *work, const struct shuf__tile *tile, uint64_t base,
                  uint64_t kept, char *out)
{
    const struct shuf__computation *computation = work->computation;
    const struct shuf__hits hits = shuf__slice_hits(&work->slice, base, kept);
    const uint64_t stride = work->slice.stride, count = shuf__hits_count(&hits, stride);
    const struct shuf__places places = {work->narrow, tile, base, kept};
    if (work->moves)
        shuf__move(&computation->request.shuffle, computation->input->memory, &places, out);
    else if (count > 0)
        copy_values(work, tile, hits.first, stride, out + hits.index * work->width, count);
}

/* A padded shard takes its values past the end from the front. */
static void place_all(const struct work *work, const struct shuf__tile *tile, uint64_t base,
                      uint64_t kept, char *out)
{
    place(work, tile, base, kept, out);
    if (shuf__slice_wraps(&work->slice))
        place(work, tile, base + work->p->n, kept, out);
}

/* False if the row was stopped meanwhile. The system may have preempted the thread that has the
 * turn, so a waiting thread yields its core. */
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

static bool has_hits(const struct work *work, uint64_t base, uint64_t kept)
{
    const struct shuf__hits hits = shuf__slice_hits(&work->slice, base, kept);
    return hits.first < hits.end;
}

/* Skips a tile without requested values. */
static void work_on_known(struct work *work, struct row *row, uint64_t index,
                          struct shuf__tile *tile)
{
    const struct shuf__permutation *p = work->p;
    const struct shuf__rank_index *ranks = work->computation->rank_index;
    const uint64_t base = ranks->before[index], kept = ranks->before[index + 1] - base;
    if (!has_hits(work, base, kept) &&
        !(shuf__slice_wraps(&work->slice) && has_hits(work, base + p->n, kept)))
        return;
    shuf__tile_fill(work->simd, p, &row->f, index, tile);
    place_all(work, tile, base, kept, row->out);
}

/* Called by the thread that has the turn. */
static void note(const struct work *work, uint64_t index, uint64_t after)
{
    struct shuf__rank_index *ranks = work->computation->rank_index;
    if (!ranks)
        return;
    ranks->before[index + 1] = after;
    ranks->known = index + 1;
}

static void work_on_unknown(struct work *work, struct row *row, uint64_t index,
                            struct shuf__tile *tile)
{
    uint64_t kept = shuf__tile_fill(work->simd, work->p, &row->f, index, tile);
    if (!wait_for_turn(row, index))
        return;
    uint64_t base = row->base;
    row->base = base + kept;
    note(work, index, row->base);
    if (row->base > work->slice.last) /* values that wrap are at the front, so they are written */
        atomic_store(&row->stop, true);
    atomic_store(&row->turn, index + 1);
    place_all(work, tile, base, kept, row->out);
}

static void work_on_row(struct work *work, struct row *row, struct shuf__tile *tile)
{
    for (;;) {
        uint64_t index = atomic_fetch_add(&row->next, 1);
        if (index >= row->end || atomic_load(&row->stop))
            return;
        if (is_cancelled(work)) {
            atomic_store(&row->stop, true);
            return;
        }
        if (index < row->known)
            work_on_known(work, row, index, tile);
        else
            work_on_unknown(work, row, index, tile);
    }
}

/* Writes the values at positions x0, x0 + stride, ..., for `direct`. The loops write straight to
 * `out` if they write the requested width. */
static void evaluate_direct(const struct work *work, const union shuf__bijection *f, uint64_t x0,
                            size_t count, struct shuf__tile *tile, char *out)
{
    const struct shuf__permutation *p = work->p;
    const bool there = work->narrow == (work->width == 4);
    if (work->narrow)
        work->simd->narrow[p->algorithm](f, (uint32_t)x0, (uint32_t)p->stride,
                                         there ? (uint32_t *)out : tile->narrow, count);
    else
        work->simd->wide[p->algorithm](f, x0, p->stride, there ? (uint64_t *)out : tile->wide,
                                       count);
    if (!there)
        copy_values(work, tile, 0, 1, out, count);
}

/* Only the last value can be at a position past n. It is taken from the front. */
static void work_on_direct_row(struct work *work, struct row *row, struct shuf__tile *tile)
{
    const struct shuf__permutation *p = work->p;
    for (;;) {
        uint64_t first = atomic_fetch_add(&row->next, 1) * SHUF__TILE;
        if (first >= p->count || is_cancelled(work))
            return;
        size_t count = p->count - first < SHUF__TILE ? p->count - first : SHUF__TILE;
        bool wraps = first + count == p->count && shuf__slice_wraps(&work->slice);
        char *out = (char *)row->out + first * work->width;
        if (count > wraps)
            evaluate_direct(work, &row->f, p->offset + first * p->stride, count - wraps, tile, out);
        if (wraps)
            evaluate_direct(work, &row->f, work->slice.last - p->n, 1, tile,
                            out + (count - 1) * work->width);
    }
}

/* Known tiles before the first requested value or after the last are not taken. */
static void begin_row(struct work *work, struct row *row, uint64_t index)
{
    const struct shuf__permutation *p = work->p;
    const struct shuf__rank_index *ranks = work->computation->rank_index;
    const uint64_t first = shuf__slice_wraps(&work->slice) ? 0 : p->offset;
    shuf__bijection_make(p, index, &work->shape, &row->f);
    row->out = work->out + index * p->count * work->width;
    row->known = ranks ? ranks->known : 0;
    row->base = row->known ? ranks->before[row->known] : 0;
    row->end = row->base > work->slice.last ? shuf__rank_index_find(ranks, work->slice.last) + 1
                                            : work->tiles;
    atomic_init(&row->next, row->base > first ? shuf__rank_index_find(ranks, first) : row->known);
    atomic_init(&row->turn, row->known);
    atomic_init(&row->stop, false);
}

static void join_row(struct work *work, struct row *row, struct shuf__tile *tile)
{
    if (work->direct)
        work_on_direct_row(work, row, tile);
    else
        work_on_row(work, row, tile);
}

/* A thread takes several small rows at a time, because to take one costs more than to compute
 * it. */
static int rows_at_once(const struct work *work, int threads)
{
    uint64_t share = work->p->rows / (8 * (uint64_t)threads);
    return work->tiles > 1 || share < 1 ? 1 : share < 64 ? (int)share : 64;
}

static void each_row_by_one_thread(struct work *work, int threads)
{
    const int handful = rows_at_once(work, threads);
#pragma omp parallel num_threads(threads)
    {
        struct shuf__tile tile;
#pragma omp for schedule(dynamic, handful)
        for (uint64_t index = 0; index < work->p->rows; index++) {
            struct row row;
            if (is_cancelled(work))
                continue;
            begin_row(work, &row, index);
            join_row(work, &row, &tile);
        }
    }
}

/* Small computations run without OpenMP: even a team of one thread takes longer to start. */
static void by_this_thread(struct work *work, struct row *row)
{
    struct shuf__tile tile;
    join_row(work, row, &tile);
}

static void by_a_team(struct work *work, struct row *row, int threads)
{
#pragma omp parallel num_threads(threads)
    {
        struct shuf__tile tile;
        join_row(work, row, &tile);
    }
}

/* With a rank index a row may have few tiles to take, so it gets no more threads than tiles. */
static void row_by_row(struct work *work, int threads)
{
    for (uint64_t index = 0; index < work->p->rows && !is_cancelled(work); index++) {
        struct row row;
        begin_row(work, &row, index);
        uint64_t tiles = row.end - atomic_load(&row.next);
        if (threads == 1 || tiles == 1)
            by_this_thread(work, &row);
        else
            by_a_team(work, &row, tiles < (uint64_t)threads ? (int)tiles : threads);
    }
}

static void plan_work(struct work *work)
{
    const struct shuf__permutation *p = work->p;
    const uint64_t domain = UINT64_C(1) << shuf_domain_bits(p->n);
    assert(!work->moves || (p->n != domain && !shuf_algorithm_has_random_access(p->algorithm)));
    work->slice = shuf__slice_make(p);
    work->narrow = shuf__tile_is_narrow(p);
    work->direct = shuf_algorithm_has_random_access(p->algorithm) || p->n == domain;
    if (p->algorithm == SHUF_ALGORITHM_PRIMEFOLD) {
        work->shape = shuf__primefold_shape(p->n);
        work->narrow = shuf__primefold_word_bits(&work->shape) <= 32;
    }
    uint64_t values = work->direct ? p->count : domain;
    work->tiles = (values + SHUF__TILE - 1) / SHUF__TILE;
}

bool shuf__host_permute(const struct shuf__simd_ops *simd, int threads,
                        const struct shuf__computation *computation, void *out)
{
    struct work work = {.simd = simd,
                        .computation = computation,
                        .p = shuf__request_permutation(&computation->request),
                        .width = (unsigned)shuf__request_shape(&computation->request).width,
                        .moves = computation->request.kind == SHUF__SHUFFLE,
                        .out = out};
    assert(work.p->offset < work.p->n && work.p->stride <= UINT64_C(1) << 62);
    assert(!computation->rank_index ||
           (work.p->rows == 1 && shuf__rank_index_bytes(work.p->algorithm, work.p->n) > 0));
    if (work.p->count == 0)
        return true;
    plan_work(&work);
    atomic_init(&work.cancelled, false);
    if (threads > 1 && work.p->rows > 1 &&
        (work.tiles == 1 || work.p->rows / ROWS_PER_THREAD >= (uint64_t)threads))
        each_row_by_one_thread(&work, threads);
    else
        row_by_row(&work, threads);
    return !atomic_load(&work.cancelled);
}
