/* SPDX-License-Identifier: MIT
 *
 * The plan of a windowed order over unequal chunks, single look-ups, and ranges. See chunks.h.
 *
 * Ranges: threads take tiles of the requested values. In each window that a tile touches, a thread
 * evaluates the order within the window by the loops of `primefold`, and then searches the chunks
 * of the numbers in a table of the window (simd/ops_windowed.c). It keeps the keys and the table of
 * its last window.
 */
#include "host/chunks.h"

#include "host/cancelled.h"
#include "host/tile.h"
#include "shuf/windowed.h"
#include "simd/primefold.h"

#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#define N_MOST (UINT64_C(1) << 62)

enum {
    PART = 1 << 16, /* chunks between two questions to the caller */
    PLACES = 512,   /* places of a look-up, likewise */
};

static bool is_cancelled(const struct shuf__computation *computation)
{
    return computation->cancelled && computation->cancelled(computation->cancel_context);
}

/* The window of a slot: its slots and its positions. */
struct window {
    uint64_t number, first, count;
    uint32_t slot, slots;
};

/* ---- The plan ---- */

static shuf_status check_size(const struct shuf__chunks *c, const uint64_t *sizes, uint32_t i,
                              struct shuf__error *error)
{
    if (sizes[i] == 0)
        return shuf__fail(error, SHUF_INVALID, "sizes[%" PRIu32 "] 0: expected at least 1", i);
    if (sizes[i] > N_MOST - c->n)
        return shuf__fail(error, SHUF_INVALID,
                          "sizes[%" PRIu32 "] %" PRIu64 ": expected at most %" PRIu64
                          ", because all chunks together have at most 2^62 records",
                          i, sizes[i], N_MOST - c->n);
    return SHUF_OK;
}

/* Sets the first record of each chunk, and the word that stands for the sizes in the counter of the
 * keys. */
static shuf_status add_sizes(struct shuf__chunks *c, const uint64_t *sizes,
                             const struct shuf__computation *computation, uint64_t *name,
                             struct shuf__error *error)
{
    uint64_t sum = 0;
    bool are_equal = true;
    for (uint32_t i = 0; i < c->count; i++) {
        if (i % PART == 0 && is_cancelled(computation))
            return shuf__fail_cancelled(error);
        if (check_size(c, sizes, i, error))
            return error->status;
        c->record[i] = c->n;
        c->n += sizes[i];
        sum += shuf_windows_term(i, sizes[i]);
        are_equal &= sizes[i] == sizes[0] || (i + 1 == c->count && sizes[i] < sizes[0]);
    }
    c->record[c->count] = c->n;
    *name = are_equal ? sizes[0] : sum | UINT64_C(1) << 63;
    return SHUF_OK;
}

/* Sets the chunk of each slot. */
static void order_chunks(struct shuf__chunks *c, uint64_t seed, uint64_t epoch, uint64_t name)
{
    const shuf_windows sizes = {.n = c->n, .chunk = name};
    const shuf_primefold_shape shape = shuf_primefold_shape_of(c->count);
    union shuf__bijection order;
    shuf_key of_chunks;
    shuf_windowed_keys(&sizes, shuf_key_of_seed(seed), epoch, &of_chunks, &c->key);
    c->slot_order = shuf_primefold_make_of(&shape, of_chunks, 0);
    shuf_primefold_make_inverse(&c->slot_order);
    shuf__primefold_make(&order.primefold, &shape, of_chunks, 0);
    c->simd->narrow[SHUF_ALGORITHM_PRIMEFOLD](&order, 0, 1, c->chunk, c->count);
}

static shuf_status place_slots(struct shuf__chunks *c, const uint64_t *sizes,
                               const struct shuf__computation *computation,
                               struct shuf__error *error)
{
    uint64_t position = 0;
    for (uint32_t slot = 0; slot < c->count; slot++) {
        if (slot % PART == 0 && is_cancelled(computation))
            return shuf__fail_cancelled(error);
        c->position[slot] = position;
        position += sizes[c->chunk[slot]];
    }
    c->position[c->count] = position;
    return SHUF_OK;
}

static shuf_status make_uniform(struct shuf__chunks *c, uint64_t seed, uint64_t epoch)
{
    c->key = shuf_key_of_seed(seed);
    c->epoch = epoch;
    c->position = c->record;
    for (uint32_t slot = 0; slot < c->count; slot++)
        c->chunk[slot] = slot;
    return SHUF_OK;
}

static shuf_status make_windowed(struct shuf__chunks *c, const struct shuf__chunks_request *request,
                                 const struct shuf__computation *computation, uint64_t name,
                                 struct shuf__error *error)
{
    c->position = malloc(((size_t)c->count + 1) * sizeof *c->position);
    if (!c->position)
        return shuf__fail(error, SHUF_NO_MEMORY, "chunks: no memory for %" PRIu32 " of them",
                          c->count);
    order_chunks(c, request->seed, request->epoch, name);
    return place_slots(c, request->sizes, computation, error);
}

static shuf_status make_orders(struct shuf__chunks *c, const struct shuf__chunks_request *request,
                               const struct shuf__computation *computation,
                               struct shuf__error *error)
{
    uint64_t name = 0;
    c->record = malloc(((size_t)c->count + 1) * sizeof *c->record);
    c->chunk = malloc(c->count * sizeof *c->chunk);
    if (!c->record || !c->chunk)
        return shuf__fail(error, SHUF_NO_MEMORY, "chunks: no memory for %" PRIu32 " of them",
                          c->count);
    if (add_sizes(c, request->sizes, computation, &name, error))
        return error->status;
    return c->is_uniform ? make_uniform(c, request->seed, request->epoch)
                         : make_windowed(c, request, computation, name, error);
}

shuf_status shuf__chunks_make(struct shuf__chunks *c, const struct shuf__simd_ops *simd,
                              const struct shuf__chunks_request *request,
                              const struct shuf__computation *computation,
                              struct shuf__error *error)
{
    if (request->count == 0 || request->count > SHUF__CHUNKS_MOST)
        return shuf__fail(error, SHUF_INVALID, "sizes: %zu of them, expected 1 to 2^24",
                          request->count);
    if (request->window == 0)
        return shuf__fail(error, SHUF_INVALID, "window 0: expected at least 1");
    *c = (struct shuf__chunks){.simd = simd,
                               .window = request->window,
                               .count = (uint32_t)request->count,
                               .is_uniform = request->window >= request->count};
    if (make_orders(c, request, computation, error))
        shuf__chunks_free(c);
    return error->status;
}

void shuf__chunks_free(struct shuf__chunks *c)
{
    if (c->position != c->record)
        free(c->position);
    free(c->record);
    free(c->chunk);
    *c = (struct shuf__chunks){0};
}

/* ---- Slots and windows ---- */

/* The last of `count` ascending numbers that is at most x; the first one always is. */
static uint32_t find_last(const uint64_t *number, uint32_t count, uint64_t x)
{
    const uint64_t *at = number;
    while (count > 1) {
        const uint32_t half = count / 2;
        at += at[half] <= x ? half : 0;
        count -= half;
    }
    return (uint32_t)(at - number);
}

static uint32_t slot_at(const struct shuf__chunks *c, uint32_t slot, uint32_t slots,
                        uint64_t position)
{
    return slot + find_last(c->position + slot, slots, position);
}

static struct window window_of(const struct shuf__chunks *c, uint32_t slot)
{
    const uint64_t number = slot / c->window;
    struct window w = {.number = number, .slot = (uint32_t)(number * c->window)};
    const uint32_t left = c->count - w.slot;
    w.slots = left < c->window ? left : (uint32_t)c->window;
    w.first = c->position[w.slot];
    w.count = c->position[w.slot + w.slots] - w.first;
    return w;
}

/* ---- Look-ups ---- */

/* The window of the last look-up of a thread, and its order. */
struct entered {
    struct window window;
    shuf_primefold order;
};

static void enter_slot(const struct shuf__chunks *c, struct entered *at, uint32_t slot,
                       bool inverse)
{
    if (slot - at->window.slot < at->window.slots)
        return;
    at->window = window_of(c, slot);
    const shuf_primefold_shape shape = shuf__primefold_shape(at->window.count);
    at->order = shuf_primefold_make_of(&shape, c->key, c->epoch + at->window.number);
    if (inverse)
        shuf_primefold_make_inverse(&at->order);
}

static uint64_t record_at(const struct shuf__chunks *c, struct entered *at, uint64_t position)
{
    const struct window *w = &at->window;
    if (position - w->first >= w->count)
        enter_slot(c, at, slot_at(c, 0, c->count, position), false);
    if (c->is_uniform)
        return shuf_primefold_forward(&at->order, position);
    const uint64_t x = w->first + shuf_primefold_forward(&at->order, position - w->first);
    const uint32_t slot = slot_at(c, w->slot, w->slots, x);
    return c->record[c->chunk[slot]] + (x - c->position[slot]);
}

static uint64_t position_of(const struct shuf__chunks *c, struct entered *at, uint64_t record)
{
    if (c->is_uniform) {
        enter_slot(c, at, 0, true);
        return shuf_primefold_inverse(&at->order, record);
    }
    const uint32_t chunk = find_last(c->record, c->count, record);
    const uint32_t slot = (uint32_t)shuf_primefold_inverse(&c->slot_order, chunk);
    enter_slot(c, at, slot, true);
    const uint64_t first = at->window.first;
    const uint64_t x = c->position[slot] - first + (record - c->record[chunk]);
    return first + shuf_primefold_inverse(&at->order, x);
}

shuf_status shuf__chunks_look_up(const struct shuf__chunks *c, int threads,
                                 const struct shuf__computation *computation, bool inverse,
                                 uint64_t *place, size_t count, struct shuf__error *error)
{
    const size_t parts = count / PLACES + (count % PLACES > 0);
    atomic_bool cancelled;
    atomic_init(&cancelled, false);
#pragma omp parallel num_threads(threads) if (threads > 1 && parts > 1)
    {
        struct entered at = {.window.slots = 0};
#pragma omp for schedule(static)
        for (size_t k = 0; k < parts; k++) {
            const size_t end = k + 1 < parts ? (k + 1) * PLACES : count;
            if (shuf__is_cancelled(computation, &cancelled))
                continue;
            for (size_t i = k * PLACES; i < end; i++)
                place[i] = inverse ? position_of(c, &at, place[i]) : record_at(c, &at, place[i]);
        }
    }
    return atomic_load(&cancelled) ? shuf__fail_cancelled(error) : SHUF_OK;
}

/* ---- Ranges ---- */

/* To list a chunk takes half the time of a value that is searched alone. With more chunks in a
 * window, or with fewer values in it, each value is searched alone. */
enum { TABLE_MOST = 1 << 20, TABLE_FROM = 2 };

/* The state of one computation, which its threads share. */
struct run {
    const struct shuf__chunks *c;
    const struct shuf__computation *computation;
    const struct shuf__chunks_range *range;
    int threads;
    unsigned width;
    char *out;
    atomic_uint_fast64_t next; /* tile to take */
    atomic_bool cancelled;
};

/* The window of a thread. */
struct place {
    struct shuf__tile tile;
    struct window window;
    union shuf__bijection order;
    bool is_narrow; /* numbers of the window are computed in words of 32 bits */
};

/* The table of a window, in memory for the chunks of any window. */
struct table {
    void *first, *moves;
    int32_t *guide;
    struct shuf__chunk_map map;
    uint64_t window; /* its number, if it is not empty */
    bool is_empty;
    bool is_tried; /* the memory was requested; there may be none */
};

/* ---- Numbers of a window ---- */

static void enter_window(const struct shuf__chunks *c, struct place *at, uint64_t position)
{
    if (position - at->window.first < at->window.count)
        return;
    at->window = window_of(c, slot_at(c, 0, c->count, position));
    const shuf_primefold_shape shape = shuf__primefold_shape(at->window.count);
    shuf__primefold_make(&at->order.primefold, &shape, c->key, c->epoch + at->window.number);
    at->is_narrow = at->order.primefold.word_bits <= 32;
}

/* Writes the numbers at position, position + stride, ... of the window to the tile. */
static void evaluate(const struct shuf__chunks *c, struct place *at, uint64_t position,
                     uint64_t stride, size_t count)
{
    const uint64_t first = position - at->window.first;
    if (count == 1)
        stride = 1;
    if (at->is_narrow)
        c->simd->narrow[SHUF_ALGORITHM_PRIMEFOLD](&at->order, (uint32_t)first, (uint32_t)stride,
                                                  at->tile.narrow, count);
    else
        c->simd->wide[SHUF_ALGORITHM_PRIMEFOLD](&at->order, first, stride, at->tile.wide, count);
}

static uint32_t slot_of(const struct shuf__chunks *c, const struct place *at, size_t i,
                        uint64_t *position)
{
    *position = at->window.first + (at->is_narrow ? at->tile.narrow[i] : at->tile.wide[i]);
    return slot_at(c, at->window.slot, at->window.slots, *position);
}

/* ---- The table ---- */

static bool alloc_table(struct table *t, uint64_t chunks)
{
    if (!t->is_tried) {
        t->first = malloc(2 * chunks * sizeof(uint64_t));
        t->moves = malloc(chunks * sizeof(uint64_t));
        t->guide = malloc(4 * chunks * sizeof *t->guide);
    }
    t->is_tried = true;
    return t->first && t->moves && t->guide;
}

static void free_table(struct table *t)
{
    free(t->first);
    free(t->moves);
    free(t->guide);
}

static void put(void *numbers, size_t i, unsigned width, uint64_t value)
{
    const uint32_t narrow = (uint32_t)value;
    memcpy((char *)numbers + i * width, width == 4 ? (const void *)&narrow : (const void *)&value,
           width);
}

/* Divides the numbers into two to four buckets for each chunk. Returns how many chunks begin inside
 * the fullest bucket. */
static uint32_t fill_guide(const struct shuf__chunks *c, const struct place *at, struct table *t)
{
    const struct window *w = &at->window;
    const uint64_t *position = c->position + w->slot;
    const unsigned bits = shuf__bits(w->count - 1), least = shuf__bits(w->slots) + 1;
    uint32_t k = 0, before = 0, most = 0;
    t->map.shift = bits > least ? bits - least : 0;
    for (uint64_t bucket = 0; bucket << t->map.shift < w->count; bucket++) {
        const uint64_t begin = w->first + (bucket << t->map.shift);
        while (k + 1 < w->slots && position[k + 1] <= begin)
            k++;
        t->guide[bucket] = (int32_t)k;
        most = k - before > most ? k - before : most;
        before = k;
    }
    return w->slots - 1 - before > most ? w->slots - 1 - before : most;
}

static void fill_table(const struct shuf__chunks *c, const struct place *at, unsigned width,
                       struct table *t)
{
    const struct window *w = &at->window;
    const unsigned word = at->is_narrow ? 4 : 8;
    const uint32_t most = fill_guide(c, at, t);
    for (uint32_t k = 0; k < w->slots; k++) {
        const uint64_t first = c->position[w->slot + k] - w->first;
        put(t->first, k, word, first);
        put(t->moves, k, width, c->record[c->chunk[w->slot + k]] - first);
    }
    t->map.step = most ? 1 << (shuf__bits(most) - 1) : 0;
    memset((char *)t->first + (size_t)w->slots * word, 0xff, (size_t)t->map.step * word);
    t->map.guide = t->guide;
    t->map.first = t->first;
    t->map.moves = t->moves;
    t->window = w->number;
    t->is_empty = false;
}

/* Whether the table is that of the window. Makes it if the thread computes enough of the `count`
 * values that are left in the window. */
static bool has_table(const struct run *run, const struct place *at, struct table *t,
                      uint64_t count)
{
    const struct window *w = &at->window;
    const uint64_t window = run->c->window < run->c->count ? run->c->window : run->c->count;
    if (!t->is_empty && t->window == w->number)
        return true;
    if (w->slots > TABLE_MOST || count / (uint64_t)run->threads < w->slots / TABLE_FROM ||
        (!at->is_narrow && run->width == 4) || !alloc_table(t, window))
        return false;
    fill_table(run->c, at, run->width, t);
    return true;
}

/* ---- Records ---- */

static void search_table(const struct run *run, const struct place *at, const struct table *t,
                         char *out, size_t count)
{
    const struct shuf__simd_ops *simd = run->c->simd;
    if (at->is_narrow && run->width == 4)
        simd->search_narrow(&t->map, at->tile.narrow, (uint32_t *)out, count);
    else if (at->is_narrow)
        simd->search_widened(&t->map, at->tile.narrow, (uint64_t *)out, count);
    else
        simd->search_wide(&t->map, at->tile.wide, (uint64_t *)out, count);
}

/* In a uniform order, the numbers are the records. */
static void copy_numbers(const struct run *run, const struct place *at, char *out, size_t count)
{
    if (at->is_narrow && run->width == 4)
        memcpy(out, at->tile.narrow, count * sizeof *at->tile.narrow);
    else if (at->is_narrow)
        for (size_t i = 0; i < count; i++)
            ((uint64_t *)out)[i] = at->tile.narrow[i];
    else
        for (size_t i = 0; i < count; i++)
            put(out, i, run->width, at->tile.wide[i]);
}

static void search_alone(const struct run *run, const struct place *at, char *out, size_t count)
{
    const struct shuf__chunks *c = run->c;
    for (size_t i = 0; i < count; i++) {
        uint64_t x;
        const uint32_t slot = slot_of(c, at, i, &x);
        put(out, i, run->width, c->record[c->chunk[slot]] + (x - c->position[slot]));
    }
}

/* The number of positions of the window from `position` on, in steps of `stride`. */
static uint64_t inside(const struct place *at, uint64_t position, uint64_t stride)
{
    return (at->window.count - 1 - (position - at->window.first)) / stride + 1;
}

/* Computes values `first` to `end` - 1 of the range, at most a tile. */
static void take_values(struct run *run, struct place *at, struct table *t, uint64_t first,
                        uint64_t end)
{
    const uint64_t stride = run->range->stride;
    for (uint64_t i = first, count; i < end; i += count) {
        const uint64_t position = run->range->first + i * stride;
        if (shuf__is_cancelled(run->computation, &run->cancelled))
            return;
        enter_window(run->c, at, position);
        const uint64_t all = inside(at, position, stride), left = run->range->count - i;
        count = all < end - i ? all : end - i;
        evaluate(run->c, at, position, stride, count);
        char *const out = run->out + i * run->width;
        if (run->c->is_uniform)
            copy_numbers(run, at, out, count);
        else if (has_table(run, at, t, all < left ? all : left))
            search_table(run, at, t, out, count);
        else
            search_alone(run, at, out, count);
    }
}

/* Without memory for the table a thread searches each value alone. */
static void run_thread(struct run *run)
{
    struct place at;
    struct table table = {.is_empty = true};
    at.window.first = at.window.count = 0;
    for (;;) {
        const uint64_t first = atomic_fetch_add(&run->next, 1) * SHUF__TILE;
        if (first >= run->range->count || atomic_load(&run->cancelled))
            break;
        const uint64_t left = run->range->count - first;
        take_values(run, &at, &table, first, first + (left < SHUF__TILE ? left : SHUF__TILE));
    }
    free_table(&table);
}

shuf_status shuf__chunks_fill(const struct shuf__chunks *c, int threads,
                              const struct shuf__computation *computation,
                              const struct shuf__chunks_range *range, unsigned width, void *out,
                              struct shuf__error *error)
{
    struct run run = {
        .c = c, .computation = computation, .range = range, .width = width, .out = out};
    const uint64_t tiles = range->count / SHUF__TILE + 1;
    if (tiles < (uint64_t)threads)
        threads = (int)tiles;
    run.threads = threads;
    if (threads == 1) {
        run_thread(&run);
    } else {
#pragma omp parallel num_threads(threads)
        run_thread(&run);
    }
    return atomic_load(&run.cancelled) ? shuf__fail_cancelled(error) : SHUF_OK;
}

/* ---- Chunks ---- */

/* The chunks of a window that a range has needed. */
struct needed {
    uint8_t *seen; /* a bit for each slot of the window */
    uint32_t left;
    uint64_t *numbers;
    size_t found;
};

static void add_slot(const struct shuf__chunks *c, const struct place *at, uint32_t slot,
                     struct needed *needed)
{
    const uint32_t k = slot - at->window.slot;
    if (needed->seen[k / 8] >> k % 8 & 1)
        return;
    needed->seen[k / 8] |= (uint8_t)(1 << k % 8);
    needed->numbers[needed->found++] = c->chunk[slot];
    needed->left--;
}

/* Adds the chunks of `count` records of one window, until it has no further chunk. */
static bool add_window(const struct shuf__chunks *c, const struct shuf__computation *computation,
                       struct place *at, uint64_t position, uint64_t stride, uint64_t count,
                       struct needed *needed)
{
    needed->left = at->window.slots;
    memset(needed->seen, 0, at->window.slots / 8 + 1);
    for (uint64_t done = 0, part; done < count && needed->left > 0; done += part) {
        if (computation->cancelled && computation->cancelled(computation->cancel_context))
            return false;
        part = count - done < SHUF__TILE ? count - done : SHUF__TILE;
        evaluate(c, at, position + done * stride, stride, part);
        for (size_t i = 0; i < part && needed->left > 0; i++) {
            uint64_t x;
            add_slot(c, at, slot_of(c, at, i, &x), needed);
        }
    }
    return true;
}

shuf_status shuf__chunks_needed(const struct shuf__chunks *c,
                                const struct shuf__computation *computation,
                                const struct shuf__chunks_range *range, uint64_t *numbers,
                                size_t *found, struct shuf__error *error)
{
    const uint32_t window = c->is_uniform ? c->count : (uint32_t)c->window;
    struct needed needed = {.seen = malloc(window / 8 + 1), .numbers = numbers};
    struct place at;
    at.window.first = at.window.count = 0;
    if (!needed.seen)
        return shuf__fail(error, SHUF_NO_MEMORY, "chunks: no memory for a window");
    for (uint64_t i = 0, count; i < range->count && !error->status; i += count) {
        const uint64_t position = range->first + i * range->stride;
        enter_window(c, &at, position);
        count = inside(&at, position, range->stride);
        count = count < range->count - i ? count : range->count - i;
        if (!add_window(c, computation, &at, position, range->stride, count, &needed))
            shuf__fail_cancelled(error);
    }
    free(needed.seen);
    *found = needed.found;
    return error->status;
}
