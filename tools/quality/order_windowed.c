/* SPDX-License-Identifier: MIT
 *
 * Windowed orders. The order with windows of one chunk shows the order of the chunks. So the
 * records have numbers along it, and a window is neighbouring numbers. If the law holds, the order
 * of the chunks and that of the numbers in each window are uniform permutations, and independent.
 */
#include "order.h"

#include <math.h>
#include <stdlib.h>

/* A windowed order, by the numbers of the records along the order of the chunks. */
struct order {
    uint32_t *record, *number, *chunk; /* of each position; chunk: of each slot */
    uint32_t *begin;                   /* the first position of each slot; at the end n */
    uint32_t *at;                      /* the first position of each chunk */
};

static void order_read(const struct shuf__order_run *run, const shuf_windows *sizes, uint64_t seed,
                       uint64_t epoch, struct order *o)
{
    const uint32_t n = (uint32_t)sizes->n, chunks = (uint32_t)sizes->chunks;
    const uint32_t length = (uint32_t)sizes->chunk;
    const shuf_windows narrow = shuf_windows_of(n, length, 1);
    o->record = shuf__order_allocate(2 * n + 3 * (size_t)chunks + 1, sizeof *o->record);
    o->number = o->record + n;
    o->chunk = o->number + n;
    o->begin = o->chunk + chunks;
    o->at = o->begin + chunks + 1;
    shuf__order_windows(run, &narrow, seed, epoch, o->record);
    for (uint32_t slot = 0, i = 0; slot < chunks; slot++) {
        const uint32_t chunk = o->record[i] / length;
        o->begin[slot] = i;
        o->chunk[slot] = chunk;
        o->at[chunk] = i;
        i += chunk + 1 < chunks ? length : length - (uint32_t)sizes->gap;
        o->begin[slot + 1] = i;
    }
    if (sizes->window > 1)
        shuf__order_windows(run, sizes, seed, epoch, o->record);
    for (uint32_t i = 0; i < n; i++)
        o->number[i] = o->at[o->record[i] / length] + o->record[i] % length;
}

static void order_free(struct order *o)
{
    free(o->record);
}

/* ---- Pieces ---- */

static void read_window(const struct shuf__pieces *pieces, uint64_t seed, uint64_t epoch,
                        uint64_t window, uint32_t *row)
{
    const shuf_windows *sizes = pieces->context;
    struct order o;
    order_read(pieces->run, sizes, seed, epoch, &o);
    const uint32_t first = o.begin[window * sizes->window];
    for (uint32_t i = 0; i < pieces->n; i++)
        row[i] = o.number[first + i] - first;
    order_free(&o);
}

/* The windows of an epoch are neighbouring rows. */
static void row_of_windows(const struct shuf__pieces *pieces, struct shuf__mixed *mixed,
                           uint64_t seed, uint64_t epoch, uint32_t *row)
{
    const shuf_windows *sizes = pieces->context;
    (void)mixed;
    read_window(pieces, seed, epoch / sizes->windows, epoch % sizes->windows, row);
}

/* The same window of all epochs. */
static void row_of_window_1(const struct shuf__pieces *pieces, struct shuf__mixed *mixed,
                            uint64_t seed, uint64_t epoch, uint32_t *row)
{
    (void)mixed;
    read_window(pieces, seed, epoch, 1, row);
}

/* The windows as a reader sees them: the order of the records themselves. */
static void row_of_records(const struct shuf__pieces *pieces, struct shuf__mixed *mixed,
                           uint64_t seed, uint64_t epoch, uint32_t *row)
{
    const shuf_windows *sizes = pieces->context;
    uint32_t *record = shuf__order_allocate(sizes->n, sizeof *record);
    (void)mixed;
    shuf__order_windows(pieces->run, sizes, seed, epoch / sizes->windows, record);
    shuf__order_rank(record + epoch % sizes->windows * pieces->n, pieces->n, row);
    free(record);
}

static uint64_t slot_of_short_chunk(const struct order *o, const shuf_windows *sizes)
{
    uint64_t slot = 0;
    while (slot + 1 < sizes->chunks && o->chunk[slot] != sizes->chunks - 1)
        slot++;
    return slot;
}

static void row_of_short_window(const struct shuf__pieces *pieces, struct shuf__mixed *mixed,
                                uint64_t seed, uint64_t epoch, uint32_t *row)
{
    const shuf_windows *sizes = pieces->context;
    struct order o;
    (void)mixed;
    order_read(pieces->run, sizes, seed, epoch, &o);
    const uint64_t window = slot_of_short_chunk(&o, sizes) / sizes->window;
    order_free(&o);
    read_window(pieces, seed, epoch, window, row);
}

static void row_of_chunks(const struct shuf__pieces *pieces, struct shuf__mixed *mixed,
                          uint64_t seed, uint64_t epoch, uint32_t *row)
{
    struct order o;
    (void)mixed;
    order_read(pieces->run, pieces->context, seed, epoch, &o);
    for (uint32_t slot = 0; slot < pieces->n; slot++)
        row[slot] = o.chunk[slot];
    order_free(&o);
}

/* The chunks of an epoch, and one of its windows, which has as many records. */
static void row_of_chunks_or_window(const struct shuf__pieces *pieces, struct shuf__mixed *mixed,
                                    uint64_t seed, uint64_t epoch, uint32_t *row)
{
    const shuf_windows *sizes = pieces->context;
    if (epoch % 2 == 0)
        row_of_chunks(pieces, mixed, seed, epoch / 2, row);
    else
        read_window(pieces, seed, epoch / 2, epoch / 2 % sizes->windows, row);
}

static void judge_pieces(const struct shuf__order_run *run)
{
    static const struct {
        struct shuf__pieces pieces;
        uint32_t n, chunk, window;
    } cases[] = {
        {{.name = "windows", .n = 6, .rows = 1000, .row = row_of_windows}, 24, 2, 3},
        {{.name = "windows", .n = 32, .rows = 500, .row = row_of_windows}, 128, 4, 8},
        {{.name = "windows", .n = 300, .rows = 100, .row = row_of_windows}, 600, 10, 30},
        {{.name = "window 1", .n = 6, .rows = 1000, .row = row_of_window_1}, 18, 1, 6},
        {{.name = "window 1", .n = 300, .rows = 100, .row = row_of_window_1}, 600, 100, 3},
        {{.name = "records", .n = 6, .rows = 1000, .row = row_of_records}, 24, 2, 3},
        {{.name = "records", .n = 32, .rows = 500, .row = row_of_records}, 128, 4, 8},
        {{.name = "short window", .n = 6, .rows = 1000, .row = row_of_short_window}, 30, 4, 2},
        {{.name = "short window", .n = 31, .rows = 500, .row = row_of_short_window}, 127, 4, 8},
        {{.name = "short window", .n = 300, .rows = 100, .row = row_of_short_window}, 608, 11, 28},
        {{.name = "chunks", .n = 6, .rows = 1000, .row = row_of_chunks}, 17, 3, 2},
        {{.name = "chunks", .n = 32, .rows = 500, .row = row_of_chunks}, 127, 4, 3},
        {{.name = "chunks", .n = 300, .rows = 100, .row = row_of_chunks}, 600, 2, 7},
        {{.name = "chunks, window", .n = 6, .rows = 1000, .row = row_of_chunks_or_window},
         12,
         2,
         3},
        {{.name = "chunks, window", .n = 32, .rows = 500, .row = row_of_chunks_or_window},
         128,
         4,
         8},
        {{.name = "chunks, window", .n = 300, .rows = 100, .row = row_of_chunks_or_window},
         600,
         2,
         150},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const shuf_windows sizes = shuf_windows_of(cases[i].n, cases[i].chunk, cases[i].window);
        struct shuf__pieces pieces = cases[i].pieces;
        pieces.run = run;
        pieces.context = &sizes;
        shuf__order_judge_pieces(&pieces);
    }
}

/* ---- Membership ---- */

/* Counts the positions of a window whose records are not in the window's chunks, or a second time.
 */
static double count_strays(const struct order *o, const shuf_windows *sizes)
{
    uint8_t *seen = shuf__order_allocate(sizes->n, 1);
    double strays = 0;
    for (uint64_t slot = 0; slot < sizes->chunks; slot += sizes->window) {
        const uint64_t end = slot + sizes->window;
        const uint32_t last = o->begin[end < sizes->chunks ? end : sizes->chunks];
        for (uint32_t i = o->begin[slot]; i < last; i++) {
            strays += o->number[i] < o->begin[slot] || o->number[i] >= last || seen[o->number[i]];
            if (o->number[i] < sizes->n)
                seen[o->number[i]] = 1;
        }
    }
    free(seen);
    return strays;
}

/* Sizes of all shapes: each sample has others. */
static shuf_windows sizes_of(uint64_t sample)
{
    const uint64_t n = 3 + sample * 7919 % 400, chunk = 1 + sample * 104729 % (n / 2);
    const uint64_t chunks = (n - 1) / chunk + 1;
    return shuf_windows_of(n, chunk, 1 + sample * 1299709 % (chunks - 1));
}

static void add_strays(const struct shuf__order_run *run, const void *context, uint64_t first,
                       uint64_t end, double *sum)
{
    (void)context;
    for (uint64_t sample = first; sample < end; sample++) {
        const shuf_windows sizes = sizes_of(sample);
        struct order o;
        order_read(run, &sizes, run->seed + sample % 16, sample, &o);
        *sum += count_strays(&o, &sizes);
        order_free(&o);
    }
}

static void judge_membership(const struct shuf__order_run *run)
{
    double *strays =
        shuf__order_sum(run, &(struct shuf__sums){.samples = 500, .words = 1, .add = add_strays});
    run->findings->test = "membership";
    shuf__order_find_exact(run, 0, *strays, "windows");
    free(strays);
}

/* ---- The slot of the short chunk ---- */

static void add_slots(const struct shuf__order_run *run, const void *context, uint64_t first,
                      uint64_t end, double *sum)
{
    for (uint64_t epoch = first; epoch < end; epoch++) {
        struct order o;
        order_read(run, context, run->seed, epoch, &o);
        sum[slot_of_short_chunk(&o, context)]++;
        order_free(&o);
    }
}

static void judge_short_chunk(const struct shuf__order_run *run)
{
    const shuf_windows sizes = shuf_windows_of(62, 5, 4); /* 13 chunks, the last one of 2 records */
    double p[13];
    double *slots = shuf__order_sum(
        run, &(struct shuf__sums){
                 .context = &sizes, .samples = 1000, .words = sizes.chunks, .add = add_slots});
    for (uint64_t slot = 0; slot < sizes.chunks; slot++)
        p[slot] = 1.0 / (double)sizes.chunks;
    run->findings->test = "short chunk";
    shuf__order_find_counts(run, 62, slots, p, sizes.chunks, "slot");
    free(slots);
}

/* ---- Distances of neighbours ---- */

enum { WITHIN, BETWEEN, KINDS };

/* Adds the distances of an epoch, and their squares as a sum of one number. */
static void add_distances(const struct shuf__order_run *run, const void *context, uint64_t first,
                          uint64_t end, double *sum)
{
    const shuf_windows *sizes = context;
    const uint32_t n = (uint32_t)sizes->n, m = (uint32_t)(sizes->chunk * sizes->window);
    uint32_t *record = shuf__order_allocate(n, sizeof *record);
    for (uint64_t epoch = first; epoch < end; epoch++) {
        double distance[KINDS] = {0};
        shuf__order_windows(run, sizes, run->seed, epoch, record);
        for (uint32_t i = 1; i < n; i++)
            distance[i % m == 0 ? BETWEEN : WITHIN] += fabs((double)record[i] - record[i - 1]);
        for (int kind = 0; kind < KINDS; kind++) {
            sum[2 * kind] += distance[kind];
            sum[2 * kind + 1] += distance[kind] * distance[kind];
        }
    }
    free(record);
}

/* The means are exact: two records of a window are of one chunk with the probability (S - 1) / (S W
 * - 1), and then (S + 1) / 3 apart. Two of different chunks are S times as far apart as their
 * chunks, (C + 1) / 3 on average. The variance is that of the epochs. */
static void judge_distances_of(const struct shuf__order_run *run, uint64_t n, uint64_t chunk,
                               uint64_t window)
{
    const shuf_windows sizes = shuf_windows_of(n, chunk, window);
    const struct shuf__sums sums = {
        .context = &sizes, .samples = 500, .words = 2 * KINDS, .add = add_distances};
    const double s = (double)chunk, w = (double)window,
                 epochs = (double)(sums.samples * run->effort);
    const double apart = s * ((double)sizes.chunks + 1) / 3;
    const double inside = ((s - 1) * (s + 1) / 3 + (w - 1) * s * apart) / (s * w - 1);
    const double pairs[KINDS] = {(double)(sizes.windows * (chunk * window - 1)),
                                 (double)(sizes.windows - 1)};
    const double mean[KINDS] = {pairs[WITHIN] * inside, pairs[BETWEEN] * apart};
    static const char *const names[KINDS] = {"in a window", "of two windows"};
    double *sum = shuf__order_sum(run, &sums);
    run->findings->test = "distances";
    for (int kind = 0; kind < KINDS; kind++) {
        const double found = sum[2 * kind] / epochs;
        const double variance = (sum[2 * kind + 1] / epochs - found * found) * epochs;
        shuf__order_find_sum(run, (uint32_t)n, sum[2 * kind], mean[kind] * epochs, variance, "%s",
                             names[kind]);
    }
    free(sum);
}

void shuf__order_judge_windowed(const struct shuf__order_run *run)
{
    judge_membership(run);
    judge_short_chunk(run);
    judge_distances_of(run, 128, 4, 8);
    judge_distances_of(run, 600, 10, 30);
    judge_pieces(run);
}
