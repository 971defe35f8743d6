/* SPDX-License-Identifier: MIT
 *
 * Windowed orders: a random order of [0, n) that reads chunks of neighbouring records.
 * docs/spec.md, "Windowed orders".
 *
 * The records lie in chunks of `chunk` neighbours; the last one may be shorter. The chunks are in
 * random order, and each `window` of them in this order are a window. All records of a window are
 * in random order. So a reader of neighbouring positions needs at most `window` chunks at a time,
 * or twice as many where it goes from one window to the next.
 *
 * With at least as many chunks in a window as there are, the order is `primefold` itself.
 */
#ifndef SHUF_WINDOWED_H
#define SHUF_WINDOWED_H

#include "primefold.h"

/* The parameters that depend only on the sizes. */
typedef struct shuf_windows {
    uint64_t n, chunk, window;
    uint64_t chunks;  /* of all records */
    uint64_t windows; /* of all records */
    uint64_t gap;     /* the records that the last chunk lacks: 0 to chunk - 1 */
} shuf_windows;

/* The order of one epoch. */
typedef struct shuf_windowed {
    shuf_windows sizes;
    shuf_primefold chunk_order; /* of [0, chunks) */
    shuf_key key;               /* of the orders within windows */
    uint64_t last_slot;         /* the place of the last chunk in the order of the chunks */
} shuf_windowed;

/* One window: its positions are first to first + count - 1. */
typedef struct shuf_window {
    uint64_t number, first, count;
    uint64_t slot; /* of its first chunk, in the order of the chunks */
    /* Records `gap_at` and later lie behind the last chunk, which lacks `gap` records. */
    uint64_t gap_at, gap;
} shuf_window;

/* 1 <= n <= 2^62; chunk and window are at least 1. */
static inline shuf_windows shuf_windows_of(uint64_t n, uint64_t chunk, uint64_t window)
{
    shuf_windows w = {n, chunk, window, 0, 0, 0};
    w.chunks = (n - 1) / chunk + 1;
    w.windows = (w.chunks - 1) / window + 1;
    w.gap = (chunk - n % chunk) % chunk;
    return w;
}

/* The term of chunk `index` in the sum that stands for a list of unequal sizes in the counter of
 * the keys, in the place of `chunk`. It is the last step of SplitMix64 (Stafford: "Better bit
 * mixing", 2011, variant 13). */
static inline uint64_t shuf_windows_term(uint64_t index, uint64_t size)
{
    uint64_t z = size + (index + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* Two keys, for the order of the chunks and for those within windows. */
static inline void shuf_windowed_keys(const shuf_windows *sizes, shuf_key key, uint64_t epoch,
                                      shuf_key *of_chunks, shuf_key *of_windows)
{
    const shuf_philox4x64 counter = {{sizes->chunk, epoch, SHUF_PURPOSE_WINDOWED, sizes->n}};
    const shuf_philox4x64 words = shuf_philox4x64_10(counter, key.word[0], key.word[1]);
    of_chunks->word[0] = words.word[0];
    of_chunks->word[1] = words.word[1];
    of_windows->word[0] = words.word[2];
    of_windows->word[1] = words.word[3];
}

/* sizes->windows is at least 2. */
static inline shuf_windowed shuf_windowed_make(const shuf_windows *sizes, shuf_key key,
                                               uint64_t epoch)
{
    shuf_windowed w;
    shuf_key of_chunks;
    w.sizes = *sizes;
    shuf_windowed_keys(sizes, key, epoch, &of_chunks, &w.key);
    w.chunk_order = shuf_primefold_make_keyed(sizes->chunks, of_chunks, 0);
    shuf_primefold_make_inverse(&w.chunk_order);
    w.last_slot = shuf_primefold_inverse(&w.chunk_order, sizes->chunks - 1);
    return w;
}

/* Window number `number`, below sizes.windows. */
static inline shuf_window shuf_windowed_window(const shuf_windowed *w, uint64_t number)
{
    const shuf_windows *s = &w->sizes;
    const uint64_t left = s->chunks - number * s->window;
    const uint64_t chunks = left < s->window ? left : s->window;
    shuf_window window = {number, 0, chunks * s->chunk, number * s->window, 0, 0};
    window.first = window.slot * s->chunk - (w->last_slot < window.slot ? s->gap : 0);
    window.gap_at = window.count;
    if (w->last_slot - window.slot < chunks) {
        window.count -= s->gap;
        window.gap = s->gap;
        window.gap_at = (w->last_slot - window.slot + 1) * s->chunk - s->gap;
    }
    return window;
}

/* The window of a position below n. All windows have the same number of records, except that of the
 * last chunk, and the last window. */
static inline shuf_window shuf_windowed_window_of(const shuf_windowed *w, uint64_t position)
{
    const shuf_windows *s = &w->sizes;
    const uint64_t records = s->window * s->chunk, last = w->last_slot / s->window;
    const bool behind = position >= (last + 1) * records - s->gap;
    return shuf_windowed_window(w, (position + (behind ? s->gap : 0)) / records);
}

/* The order of the records of a window, as numbers below window->count. */
static inline shuf_primefold shuf_windowed_order(const shuf_windowed *w, const shuf_window *window)
{
    return shuf_primefold_make_keyed(window->count, w->key, window->number);
}

/* The record at a position below n. Thread-safe; a pure function. */
static inline uint64_t shuf_windowed_forward(const shuf_windowed *w, uint64_t position)
{
    const shuf_window window = shuf_windowed_window_of(w, position);
    const shuf_primefold order = shuf_windowed_order(w, &window);
    uint64_t i = shuf_primefold_forward(&order, position - window.first);
    i += i >= window.gap_at ? window.gap : 0;
    return shuf_primefold_forward(&w->chunk_order, window.slot + i / w->sizes.chunk) *
               w->sizes.chunk +
           i % w->sizes.chunk;
}

/* The position of a record below n. Thread-safe; a pure function. */
static inline uint64_t shuf_windowed_inverse(const shuf_windowed *w, uint64_t record)
{
    const shuf_windows *s = &w->sizes;
    const uint64_t slot = shuf_primefold_inverse(&w->chunk_order, record / s->chunk);
    const shuf_window window = shuf_windowed_window(w, slot / s->window);
    const shuf_primefold order = shuf_windowed_order(w, &window);
    uint64_t i = (slot - window.slot) * s->chunk + record % s->chunk;
    i -= i >= window.gap_at ? window.gap : 0;
    return window.first + shuf_primefold_inverse(&order, i);
}

#endif
