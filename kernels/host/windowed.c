/* SPDX-License-Identifier: MIT
 *
 * See permute.h. Threads take tiles of the requested values. In each window that a tile touches, a
 * thread evaluates the order within the window by the loops of `primefold`, and then turns the
 * numbers into records. It keeps the keys of its last window, and the list of how far the order of
 * the chunks moves each chunk of it.
 */
#include "host/permute.h"

#include "host/cancelled.h"
#include "host/tile.h"
#include "shuf/windowed.h"
#include "slice.h"

#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* With more chunks in a window, or with few values in each window, each chunk is evaluated alone.
 * No user is charged for the list of a thread, so it is smaller than the stack of the thread. */
enum { LIST_MOST = 1 << 13, LIST_FROM = 8 };
#define NARROW_MOST (UINT64_C(1) << 31) /* the numbers of records_narrow() are below it */

/* The state of one computation, which its threads share. */
struct run {
    const struct shuf__simd_ops *simd;
    const struct shuf__computation *computation;
    const struct shuf__permutation *p;
    struct shuf__slice slice;
    shuf_windows sizes;
    shuf_primefold_shape window_shape; /* of a window with all its records */
    struct shuf__window_map map;
    bool lists; /* a window has at most LIST_MOST chunks */
    unsigned width;
    char *out; /* of the present row */
    shuf_windowed order;
    union shuf__bijection chunk_order; /* for the loops */
    atomic_uint_fast64_t next;         /* tile to take */
    atomic_bool cancelled;
};

/* The state of a thread. */
struct place {
    struct shuf__tile tile;
    union shuf__bijection order; /* of the window */
    shuf_window window;
    struct shuf__window_map map;
    bool has_window, has_moves;
    bool narrow;     /* numbers of the window are computed in words of 32 bits */
    bool listed;     /* the loops of ops_windowed.c can turn them into records */
    uint64_t *moves; /* one for each chunk, of 32 bits if values have 32; may be NULL */
};

/* How x / chunk is computed for narrow numbers x. */
static void set_chunk(struct shuf__window_map *map, uint64_t chunk)
{
    const unsigned bits = shuf__bits(chunk - 1);
    map->chunk = chunk;
    if (bits > 31)
        return; /* such a chunk is not narrow */
    map->shift = 31 + bits;
    map->multiplier = (uint32_t)((UINT64_C(1) << map->shift) / chunk + 1);
}

static void enter_window(const struct run *run, struct place *at, uint64_t position)
{
    const shuf_window *w = &at->window;
    if (at->has_window && position - w->first < w->count)
        return;
    at->window = shuf_windowed_window_of(&run->order, position);
    const shuf_primefold_shape shape =
        w->count == run->window_shape.n ? run->window_shape : shuf_primefold_shape_of(w->count);
    shuf__primefold_make(&at->order.primefold, &shape, run->order.key, w->number);
    at->map = run->map;
    at->map.gap_at = w->gap_at;
    at->map.gap = w->gap;
    at->narrow = at->order.primefold.word_bits <= 32;
    at->listed = at->moves && (at->narrow ? w->count + w->gap <= NARROW_MOST : run->width == 8);
    at->has_window = true;
    at->has_moves = false;
}

/* Writes the places of the window's chunks to `moves`, as numbers of 32 or 64 bits. */
static void evaluate_chunks(const struct run *run, const struct place *at, size_t chunks)
{
    const union shuf__bijection *const f = &run->chunk_order;
    uint32_t *const narrow = (uint32_t *)at->moves;
    if (f->primefold.word_bits > 32) {
        run->simd->wide[SHUF_ALGORITHM_PRIMEFOLD](f, at->window.slot, 1, at->moves, chunks);
        for (size_t k = 0; run->width == 4 && k < chunks; k++)
            narrow[k] = (uint32_t)at->moves[k];
        return;
    }
    run->simd->narrow[SHUF_ALGORITHM_PRIMEFOLD](f, (uint32_t)at->window.slot, 1, narrow, chunks);
    for (size_t k = chunks; run->width == 8 && k-- > 0;)
        at->moves[k] = narrow[k];
}

static void list_moves(const struct run *run, struct place *at)
{
    const uint64_t left = run->sizes.chunks - at->window.slot, chunk = run->sizes.chunk;
    const size_t chunks = left < run->sizes.window ? left : run->sizes.window;
    evaluate_chunks(run, at, chunks);
    uint32_t *const narrow = (uint32_t *)at->moves;
    if (run->width == 4)
        for (size_t k = 0; k < chunks; k++)
            narrow[k] = (narrow[k] - (uint32_t)k) * (uint32_t)chunk;
    else
        for (size_t k = 0; k < chunks; k++)
            at->moves[k] = (at->moves[k] - k) * chunk;
    at->has_moves = true;
}

static void put(const struct run *run, char *out, uint64_t value)
{
    const uint32_t narrow = (uint32_t)value;
    memcpy(out, run->width == 4 ? (const void *)&narrow : (const void *)&value, run->width);
}

/* Turns the numbers in the tile into records, one by one. */
static void look_up_records(const struct run *run, const struct place *at, char *out, size_t count)
{
    const uint64_t chunk = run->sizes.chunk;
    for (size_t i = 0; i < count; i++) {
        uint64_t x = at->narrow ? at->tile.narrow[i] : at->tile.wide[i];
        x += x >= at->map.gap_at ? at->map.gap : 0;
        const uint64_t slot = at->window.slot + x / chunk;
        put(run, out + i * run->width,
            shuf_primefold_forward(&run->order.chunk_order, slot) * chunk + x % chunk);
    }
}

static void list_records(const struct run *run, struct place *at, char *out, size_t count)
{
    const struct shuf__simd_ops *simd = run->simd;
    if (!at->has_moves)
        list_moves(run, at);
    if (at->narrow && run->width == 4)
        simd->records_narrow(&at->map, (uint32_t *)at->moves, at->tile.narrow, (uint32_t *)out,
                             count);
    else if (at->narrow)
        simd->records_widened(&at->map, at->moves, at->tile.narrow, (uint64_t *)out, count);
    else
        simd->records_wide(&at->map, at->moves, at->tile.wide, (uint64_t *)out, count);
}

/* Computes the values at position, position + stride, ..., which are all in the window. */
static void take_records(const struct run *run, struct place *at, uint64_t position, size_t count,
                         char *out)
{
    const uint64_t first = position - at->window.first, stride = count > 1 ? run->p->stride : 1;
    const bool many = count >= run->sizes.window / LIST_FROM;
    if (at->narrow)
        run->simd->narrow[SHUF_ALGORITHM_PRIMEFOLD](&at->order, (uint32_t)first, (uint32_t)stride,
                                                    at->tile.narrow, count);
    else
        run->simd->wide[SHUF_ALGORITHM_PRIMEFOLD](&at->order, first, stride, at->tile.wide, count);
    if (at->listed && (many || at->has_moves))
        list_records(run, at, out, count);
    else
        look_up_records(run, at, out, count);
}

/* Computes values `first` to `end` - 1 of the row. */
static void take_values(const struct run *run, struct place *at, uint64_t first, uint64_t end)
{
    for (uint64_t i = first, count; i < end; i += count) {
        const uint64_t position = shuf__slice_position(&run->slice, i);
        enter_window(run, at, position);
        const uint64_t behind = at->window.count - (position - at->window.first);
        count = (behind - 1) / run->p->stride + 1;
        count = count < end - i ? count : end - i;
        take_records(run, at, position, count, run->out + i * run->width);
    }
}

static void take_tiles(struct run *run, struct place *at)
{
    for (;;) {
        const uint64_t first = atomic_fetch_add(&run->next, 1) * SHUF__TILE;
        if (first >= run->p->count || shuf__is_cancelled(run->computation, &run->cancelled))
            return;
        const uint64_t left = run->p->count - first;
        take_values(run, at, first, first + (left < SHUF__TILE ? left : SHUF__TILE));
    }
}

/* Without memory for the list a thread evaluates each chunk alone. */
static void run_thread(struct run *run)
{
    struct place at = {.has_window = false};
    at.moves = run->lists ? malloc(run->p->window * sizeof *at.moves) : NULL;
    take_tiles(run, &at);
    free(at.moves);
}

static void begin_row(struct run *run, uint64_t row, void *out)
{
    const struct shuf__permutation *p = run->p;
    shuf_key of_chunks;
    run->out = (char *)out + row * p->count * run->width;
    run->order = shuf_windowed_make(&run->sizes, shuf__permutation_key(p), p->epoch + row);
    shuf_windowed_keys(&run->sizes, shuf__permutation_key(p), p->epoch + row, &of_chunks,
                       &run->order.key);
    shuf__primefold_make(&run->chunk_order.primefold, &run->order.chunk_order.shape, of_chunks, 0);
    atomic_init(&run->next, 0);
}

bool shuf__host_windowed(const struct shuf__simd_ops *simd, int threads,
                         const struct shuf__computation *computation, void *out)
{
    const struct shuf__permutation *p = &computation->request.permutation;
    struct run run = {.simd = simd, .computation = computation, .p = p};
    if (p->count == 0)
        return true;
    run.slice = shuf__slice_make(p);
    run.sizes = shuf_windows_of(p->n, p->chunk, p->window);
    run.window_shape = shuf_primefold_shape_of(p->chunk * p->window);
    run.lists = p->window <= LIST_MOST;
    run.width = (unsigned)shuf__request_shape(&computation->request).width;
    set_chunk(&run.map, p->chunk);
    atomic_init(&run.cancelled, false);
    const uint64_t tiles = (p->count - 1) / SHUF__TILE + 1;
    const int team = tiles < (uint64_t)threads ? (int)tiles : threads;
    for (uint64_t row = 0; row < p->rows && !atomic_load(&run.cancelled); row++) {
        begin_row(&run, row, out);
        if (team == 1) {
            run_thread(&run);
            continue;
        }
#pragma omp parallel num_threads(team)
        run_thread(&run);
    }
    return !atomic_load(&run.cancelled);
}
