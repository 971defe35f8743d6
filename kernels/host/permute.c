/* SPDX-License-Identifier: MIT
 *
 * Computes permutations on the CPU. Compaction takes one pass, without a temporary copy. Threads
 * take tiles in order. Each thread evaluates and compacts its tile in its own cache. Then it waits
 * for the number of values kept in all earlier tiles, which the thread of the tile before gives it.
 * This number is the thread's first position. It copies the requested values to their places.
 *
 * With primefold, or if n = 2^B, no value is left out. So a thread knows the place of each value
 * and need not wait. It need not wait for a tile in the rank index either, and it skips such a tile
 * if no value there is requested.
 *
 * For a shuffle, this code moves records instead of values.
 */
#include "host/permute.h"

#include "host/cancelled.h"
#include "host/tile.h"
#include "simd/primefold.h"
#include "slice.h"

#include <assert.h>
#include <omp.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { ROWS_PER_THREAD = 4 }; /* with so many rows, a thread takes whole rows, not tiles */

/* The state that the threads of one row share. */
struct row {
    union shuf__bijection f;
    void *out;                 /* the row's first value */
    uint64_t known, end;       /* tiles in the rank index; end of the tiles to take */
    atomic_uint_fast64_t next; /* tile to take */
    atomic_uint_fast64_t turn; /* the tile whose thread goes next, because `base` is for it */
    uint64_t base;    /* kept values before tile `turn`; only the thread of that tile uses it */
    atomic_bool stop; /* complete, or cancelled */
};

/* The state of one computation, which its threads share. They write only to `cancelled`. */
struct run {
    const struct shuf__simd_ops *simd;
    const struct shuf__computation *computation;
    const struct shuf__permutation *p; /* of the computation */
    unsigned width;                    /* bytes of a value, or of a shuffle's record */
    bool moves;                        /* it moves records, for a shuffle */
    struct shuf__slice slice;          /* of each row */
    shuf_primefold_shape shape;        /* of primefold */
    bool narrow;                       /* words of at most 32 bits: primefold; or B <= 32 */
    bool direct;    /* no value is left out, so its place is known: primefold, or n = 2^B */
    uint64_t tiles; /* of a row: tiles of the requested values if direct, else of the domain */
    char *out;      /* NULL: only the fingerprint is wanted */
    uint64_t index; /* of the first value, for the fingerprint */
    atomic_uint_fast64_t fingerprint;
    atomic_bool cancelled;
};

/* out[i] = tile[from + i * step], converted to the computation's width. */
static void copy_values(const struct run *run, const struct shuf__tile *tile, size_t from,
                        size_t step, void *out, size_t count)
{
    const unsigned width = run->width;
    if (run->narrow && width == 4 && step == 1)
        memcpy(out, tile->narrow + from, 4 * count);
    else if (run->narrow && width == 4)
        for (size_t i = 0; i < count; i++)
            ((uint32_t *)out)[i] = tile->narrow[from + i * step];
    else if (run->narrow)
        for (size_t i = 0; i < count; i++)
            ((uint64_t *)out)[i] = tile->narrow[from + i * step];
    else if (width == 4)
        for (size_t i = 0; i < count; i++)
            ((uint32_t *)out)[i] = (uint32_t)tile->wide[from + i * step];
    else
        for (size_t i = 0; i < count; i++)
            ((uint64_t *)out)[i] = tile->wide[from + i * step];
}

static void place(const struct run *run, const struct shuf__tile *tile, uint64_t base,
                  uint64_t kept, char *out)
{
    const struct shuf__computation *computation = run->computation;
    const struct shuf__hits hits = shuf__slice_hits(&run->slice, base, kept);
    const uint64_t stride = run->slice.stride, count = shuf__hits_count(&hits, stride);
    const struct shuf__tile_places places = {run->narrow, tile, base, kept};
    if (run->moves)
        shuf__move(&computation->request.shuffle, computation->input->memory, &places, out);
    else if (count > 0)
        copy_values(run, tile, hits.first, stride, out + hits.index * run->width, count);
}

/* Copies the requested values of a tile. A padded shard has positions past n: these wrap around to
 * the front. */
static void place_all(const struct run *run, const struct shuf__tile *tile, uint64_t base,
                      uint64_t kept, char *out)
{
    place(run, tile, base, kept, out);
    if (shuf__slice_wraps(&run->slice))
        place(run, tile, base + run->p->n, kept, out);
}

/* Waits until it is this tile's turn. Returns false if the row is stopped. A waiting thread yields
 * its core, because the wait can be long: the system may have preempted the thread whose turn it
 * is, or the computation is paused. */
static bool wait_for_turn(struct run *run, struct row *row, uint64_t index)
{
    for (unsigned spins = 0; atomic_load(&row->turn) != index; spins++) {
        if (atomic_load(&row->stop))
            return false;
        if (spins > 200 && !shuf__is_cancelled(run->computation, &run->cancelled))
            sched_yield();
    }
    return true;
}

static bool has_hits(const struct run *run, uint64_t base, uint64_t kept)
{
    const struct shuf__hits hits = shuf__slice_hits(&run->slice, base, kept);
    return hits.first < hits.end;
}

/* Computes a tile whose first position is in the rank index. Skips it if it has no requested
 * values. */
static void take_known_tile(struct run *run, struct row *row, uint64_t index,
                            struct shuf__tile *tile)
{
    const struct shuf__permutation *p = run->p;
    const struct shuf__rank_index *ranks = run->computation->rank_index;
    const uint64_t base = ranks->before[index], kept = ranks->before[index + 1] - base;
    if (!has_hits(run, base, kept) &&
        !(shuf__slice_wraps(&run->slice) && has_hits(run, base + p->n, kept)))
        return;
    shuf__tile_fill(run->simd, p, &row->f, index, tile);
    place_all(run, tile, base, kept, row->out);
}

/* Adds a tile to the rank index. Only the thread whose turn it is calls this function. */
static void extend_rank_index(const struct run *run, uint64_t index, uint64_t after)
{
    struct shuf__rank_index *ranks = run->computation->rank_index;
    if (!ranks)
        return;
    ranks->before[index + 1] = after;
    ranks->known = index + 1;
}

static void take_unknown_tile(struct run *run, struct row *row, uint64_t index,
                              struct shuf__tile *tile)
{
    uint64_t kept = shuf__tile_fill(run->simd, run->p, &row->f, index, tile);
    if (!wait_for_turn(run, row, index))
        return;
    uint64_t base = row->base;
    row->base = base + kept;
    extend_rank_index(run, index, row->base);
    if (row->base > run->slice.last) /* no later tile has a requested value */
        atomic_store(&row->stop, true);
    atomic_store(&row->turn, index + 1);
    place_all(run, tile, base, kept, row->out);
}

static void take_tiles(struct run *run, struct row *row, struct shuf__tile *tile)
{
    for (;;) {
        uint64_t index = atomic_fetch_add(&row->next, 1);
        if (index >= row->end || atomic_load(&row->stop))
            return;
        if (shuf__is_cancelled(run->computation, &run->cancelled)) {
            atomic_store(&row->stop, true);
            return;
        }
        if (index < row->known)
            take_known_tile(run, row, index, tile);
        else
            take_unknown_tile(run, row, index, tile);
    }
}

/* Writes the values at positions x0, x0 + stride, ..., for `direct`. The loops write values of 32
 * or 64 bits. If the request wants this width, they write straight to `out`. */
static void evaluate_direct(const struct run *run, const union shuf__bijection *f, uint64_t x0,
                            size_t count, struct shuf__tile *tile, char *out)
{
    const struct shuf__permutation *p = run->p;
    const bool has_width = run->narrow == (run->width == 4);
    if (run->narrow)
        run->simd->narrow[p->algorithm](f, (uint32_t)x0, (uint32_t)p->stride,
                                        has_width ? (uint32_t *)out : tile->narrow, count);
    else
        run->simd->wide[p->algorithm](f, x0, p->stride, has_width ? (uint64_t *)out : tile->wide,
                                      count);
    if (!has_width)
        copy_values(run, tile, 0, 1, out, count);
}

static uint64_t fingerprint_of(const struct run *run, const struct shuf__tile *tile, size_t count,
                               uint64_t first)
{
    const uint64_t index = run->index + first;
    return run->narrow ? run->simd->fingerprint_narrow(tile->narrow, count, index)
                       : run->simd->fingerprint_wide(tile->wide, count, index);
}

/* Only the last position can be past n. It wraps around to the front. */
static void take_direct_tiles(struct run *run, struct row *row, struct shuf__tile *tile)
{
    const struct shuf__permutation *p = run->p;
    uint64_t fingerprint = 0;
    for (;;) {
        uint64_t first = atomic_fetch_add(&row->next, 1) * SHUF__TILE;
        if (first >= p->count || shuf__is_cancelled(run->computation, &run->cancelled))
            break;
        size_t count = p->count - first < SHUF__TILE ? p->count - first : SHUF__TILE;
        bool wraps = first + count == p->count && shuf__slice_wraps(&run->slice);
        char *out = run->out ? (char *)row->out + first * run->width : (char *)tile;
        if (count > wraps)
            evaluate_direct(run, &row->f, p->offset + first * p->stride, count - wraps, tile, out);
        if (wraps)
            evaluate_direct(run, &row->f, run->slice.last - p->n, 1, tile,
                            out + (count - 1) * run->width);
        if (!run->out)
            fingerprint += fingerprint_of(run, tile, count, first);
    }
    atomic_fetch_add(&run->fingerprint, fingerprint);
}

/* Skips the known tiles before the row's first requested value and after its last. */
static void begin_row(struct run *run, struct row *row, uint64_t index)
{
    const struct shuf__permutation *p = run->p;
    const struct shuf__rank_index *ranks = run->computation->rank_index;
    const uint64_t first = shuf__slice_wraps(&run->slice) ? 0 : p->offset;
    shuf__bijection_make(p, index, &run->shape, &row->f);
    row->out = run->out + index * p->count * run->width;
    row->known = ranks ? ranks->known : 0;
    row->base = row->known ? ranks->before[row->known] : 0;
    row->end = row->base > run->slice.last ? shuf__rank_index_find(ranks, run->slice.last) + 1
                                           : run->tiles;
    atomic_init(&row->next, row->base > first ? shuf__rank_index_find(ranks, first) : row->known);
    atomic_init(&row->turn, row->known);
    atomic_init(&row->stop, false);
}

static void run_thread(struct run *run, struct row *row, struct shuf__tile *tile)
{
    if (run->direct)
        take_direct_tiles(run, row, tile);
    else
        take_tiles(run, row, tile);
}

/* A thread takes several small rows at a time, because to take a row costs more than to compute a
 * small row. */
static int rows_at_once(const struct run *run, int threads)
{
    uint64_t share = run->p->rows / (8 * (uint64_t)threads);
    return run->tiles > 1 || share < 1 ? 1 : share < 64 ? (int)share : 64;
}

static void run_one_thread_per_row(struct run *run, int threads)
{
    const int batch = rows_at_once(run, threads);
#pragma omp parallel num_threads(threads)
    {
        struct shuf__tile tile;
#pragma omp for schedule(dynamic, batch)
        for (uint64_t index = 0; index < run->p->rows; index++) {
            struct row row;
            if (shuf__is_cancelled(run->computation, &run->cancelled))
                continue;
            begin_row(run, &row, index);
            run_thread(run, &row, &tile);
        }
    }
}

/* Runs a small computation without OpenMP, because to start even a team of one thread takes
 * longer. */
static void run_here(struct run *run, struct row *row)
{
    struct shuf__tile tile;
    run_thread(run, row, &tile);
}

static void run_team(struct run *run, struct row *row, int threads)
{
#pragma omp parallel num_threads(threads)
    {
        struct shuf__tile tile;
        run_thread(run, row, &tile);
    }
}

/* A row gets no more threads than it has tiles to compute. With a rank index these may be few. */
static void run_rows(struct run *run, int threads)
{
    for (uint64_t index = 0;
         index < run->p->rows && !shuf__is_cancelled(run->computation, &run->cancelled); index++) {
        struct row row;
        begin_row(run, &row, index);
        uint64_t tiles = row.end - atomic_load(&row.next);
        if (threads == 1 || tiles == 1)
            run_here(run, &row);
        else
            run_team(run, &row, tiles < (uint64_t)threads ? (int)tiles : threads);
    }
}

static void plan_run(struct run *run)
{
    const struct shuf__permutation *p = run->p;
    const uint64_t domain = UINT64_C(1) << shuf_domain_bits(p->n);
    assert(!run->moves || (p->n != domain && !shuf_algorithm_has_random_access(p->algorithm)));
    run->slice = shuf__slice_make(p);
    run->narrow = shuf__tile_is_narrow(p);
    run->direct = shuf_algorithm_has_random_access(p->algorithm) || p->n == domain;
    if (p->algorithm == SHUF_ALGORITHM_PRIMEFOLD) {
        run->shape = shuf__primefold_shape(p->n);
        run->narrow = shuf__primefold_word_bits(&run->shape) <= 32;
    }
    uint64_t values = run->direct ? p->count : domain;
    run->tiles = (values + SHUF__TILE - 1) / SHUF__TILE;
}

bool shuf__host_permute_sum(const struct shuf__simd_ops *simd, int threads,
                            const struct shuf__computation *computation, uint64_t index,
                            uint64_t *fingerprint)
{
    struct run run = {.simd = simd,
                      .computation = computation,
                      .p = &computation->request.permutation,
                      .index = index};
    assert(run.p->rows == 1 && run.p->count > 0 && !run.p->window);
    plan_run(&run);
    assert(run.direct);
    run.width = run.narrow ? sizeof(uint32_t) : sizeof(uint64_t);
    run_rows(&run, threads);
    *fingerprint = atomic_load(&run.fingerprint);
    return !atomic_load(&run.cancelled);
}

bool shuf__host_permute(const struct shuf__simd_ops *simd, int threads,
                        const struct shuf__computation *computation, void *out)
{
    struct run run = {.simd = simd,
                      .computation = computation,
                      .p = shuf__request_permutation(&computation->request),
                      .width = (unsigned)shuf__request_shape(&computation->request).width,
                      .moves = computation->request.kind == SHUF__SHUFFLE,
                      .out = out};
    assert(run.p->offset < run.p->n && run.p->stride <= UINT64_C(1) << 62);
    assert(!computation->rank_index ||
           (run.p->rows == 1 && shuf__rank_index_bytes(run.p->algorithm, run.p->n) > 0));
    if (run.p->count == 0)
        return true;
    if (run.p->window)
        return shuf__host_windowed(simd, threads, computation, out);
    plan_run(&run);
    atomic_init(&run.cancelled, false);
    if (threads > 1 && run.p->rows > 1 &&
        (run.tiles == 1 || run.p->rows / ROWS_PER_THREAD >= (uint64_t)threads))
        run_one_thread_per_row(&run, threads);
    else
        run_rows(&run, threads);
    return !atomic_load(&run.cancelled);
}
