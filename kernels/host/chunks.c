/* SPDX-License-Identifier: MIT
 *
 * The plan of a windowed order over unequal chunks, and single look-ups. See chunks.h.
 */
#include "host/chunks.h"

#include "host/cancelled.h"
#include "host/primefold_shape.h"
#include "shuf/windowed.h"

#include <inttypes.h>
#include <stdlib.h>

#define N_MOST (UINT64_C(1) << 62)

enum {
    PART = 1 << 16, /* chunks between two questions to the caller */
    PLACES = 512,   /* places of a look-up, likewise */
};

static bool is_cancelled(const struct shuf__computation *computation)
{
    return computation->cancelled && computation->cancelled(computation->cancel_context);
}

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

uint32_t shuf__chunks_slot(const struct shuf__chunks *c, uint32_t slot, uint32_t slots,
                           uint64_t position)
{
    return slot + find_last(c->position + slot, slots, position);
}

struct shuf__chunks_window shuf__chunks_window(const struct shuf__chunks *c, uint32_t slot)
{
    const uint64_t number = slot / c->window;
    struct shuf__chunks_window w = {.number = number, .slot = (uint32_t)(number * c->window)};
    const uint32_t left = c->count - w.slot;
    w.slots = left < c->window ? left : (uint32_t)c->window;
    w.first = c->position[w.slot];
    w.count = c->position[w.slot + w.slots] - w.first;
    return w;
}

/* ---- Look-ups ---- */

/* The window of the last look-up of a thread, and its order. */
struct place {
    struct shuf__chunks_window window;
    shuf_primefold order;
};

static void enter_window(const struct shuf__chunks *c, struct place *at, uint32_t slot,
                         bool inverse)
{
    if (slot - at->window.slot < at->window.slots)
        return;
    at->window = shuf__chunks_window(c, slot);
    const shuf_primefold_shape shape = shuf__primefold_shape(at->window.count);
    at->order = shuf_primefold_make_of(&shape, c->key, c->epoch + at->window.number);
    if (inverse)
        shuf_primefold_make_inverse(&at->order);
}

static uint64_t record_at(const struct shuf__chunks *c, struct place *at, uint64_t position)
{
    const struct shuf__chunks_window *w = &at->window;
    if (position - w->first >= w->count)
        enter_window(c, at, shuf__chunks_slot(c, 0, c->count, position), false);
    if (c->is_uniform)
        return shuf_primefold_forward(&at->order, position);
    const uint64_t x = w->first + shuf_primefold_forward(&at->order, position - w->first);
    const uint32_t slot = shuf__chunks_slot(c, w->slot, w->slots, x);
    return c->record[c->chunk[slot]] + (x - c->position[slot]);
}

static uint64_t position_of(const struct shuf__chunks *c, struct place *at, uint64_t record)
{
    if (c->is_uniform) {
        enter_window(c, at, 0, true);
        return shuf_primefold_inverse(&at->order, record);
    }
    const uint32_t chunk = find_last(c->record, c->count, record);
    const uint32_t slot = (uint32_t)shuf_primefold_inverse(&c->slot_order, chunk);
    enter_window(c, at, slot, true);
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
        struct place at = {.window.slots = 0};
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
