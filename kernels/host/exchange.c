/* SPDX-License-Identifier: MIT
 *
 * See exchange.h. The plan has four lists: the counts to each rank, the counts from each rank, the
 * order in which the rank reads its input, and the place of each arrival in its output.
 *
 * The order. A rank sends its records to each other rank in the order of their places in the
 * output. Each rank has consecutive places, so one sort of the input by place gives the order for
 * all ranks. The sort first puts the records into windows of places. Then a thread sorts each
 * window in its cache.
 *
 * The places need no sort. The threads visit the output in ascending order, and append each place
 * to the list of the rank that sends the record.
 *
 * A thread evaluates its positions twice: first to count, then to write at the counted indices.
 */
#include "host/exchange.h"

#include "host/cancelled.h"
#include "host/tile.h"

#include <assert.h>
#include <omp.h>
#include <stdatomic.h>
#include <string.h>

enum {
    BATCH = SHUF__NEIGHBOURS, /* positions that are evaluated together */
    WINDOW_LEAST = 16384,     /* a window has one to two times as many records, on average */
    WINDOWS_MOST = 1 << 13,   /* with more windows, writes would need more pages than the TLB has */
    BUCKETS = 4096,           /* in which a window is sorted */
    SHARE_LEAST = 16 * BATCH, /* with fewer records, a thread costs more than it saves */
    SPANS_A_RANK = 4,
};

/* The windows of places in the output: window w has the places [w << bits, (w + 1) << bits). */
struct windows {
    unsigned bits;
    uint64_t count;
};

/* The state of one computation, which its threads share. */
struct run {
    const struct shuf__computation *computation;
    const struct shuf__plan *plan;  /* of the computation */
    struct shuf__neighbours place;  /* from a position of the input to its place in the output */
    struct shuf__neighbours source; /* its inverse */
    struct shuf__range in, out;     /* of the rank */
    struct windows windows;
    unsigned span_bits;     /* a span of the input has 2^span_bits positions, the last one fewer */
    int senders, receivers; /* threads for the order, and for the places */
    unsigned width;         /* bytes of a number of the plan */
    void *to, *from, *order, *places;
    /* In the workspace. */
    uint64_t *keys;     /* the places of the input's records, in the order of the plan */
    uint64_t *bounds;   /* the first position of each rank in the output or the input; then n */
    uint64_t *first;    /* the rank at the first position of each span of the input */
    uint64_t *counters; /* each thread has one for each window, or for each rank */
    atomic_uint_fast64_t next;
    atomic_bool cancelled;
};

static void put(const struct run *run, void *list, uint64_t index, uint64_t number)
{
    if (run->width == 4)
        ((uint32_t *)list)[index] = (uint32_t)number;
    else
        ((uint64_t *)list)[index] = number;
}

/* The share of thread number `index` of `threads`. */
static struct shuf__range share_of(uint64_t count, int threads, int index)
{
    return shuf__equal_part(count, (uint64_t)threads, (uint64_t)index);
}

/* Turns the counts of each thread into the index of its first number. List 0 comes first, with the
 * numbers of thread 0, then of thread 1, and so on; then list 1. Stores the count of each list in
 * `totals`, unless it is NULL. */
static void accumulate(const struct run *run, uint64_t lists, int threads, void *totals)
{
    uint64_t sum = 0;
    for (uint64_t list = 0; list < lists; list++) {
        const uint64_t before = sum;
        for (int t = 0; t < threads; t++) {
            uint64_t *counter = &run->counters[(uint64_t)t * lists + list];
            const uint64_t count = *counter;
            *counter = sum;
            sum += count;
        }
        if (totals)
            put(run, totals, list, sum - before);
    }
}

/* ---- The order of the input ---- */

/* Counts the records of each window, or writes each record to the next index of its window. */
static void take_input(struct run *run, int thread, bool writes)
{
    const struct shuf__range share = share_of(run->in.count, run->senders, thread);
    const unsigned bits = run->windows.bits;
    uint64_t *next = run->counters + (uint64_t)thread * run->windows.count, values[BATCH];
    for (uint64_t i = 0; i < share.count && !shuf__is_cancelled(run->computation, &run->cancelled);
         i += BATCH) {
        const size_t count = share.count - i < BATCH ? share.count - i : BATCH;
        const uint64_t own = share.first + i;
        shuf__neighbours_evaluate(&run->place, run->in.first + own, count, values);
        for (size_t k = 0; k < count; k++) {
            const uint64_t index = next[values[k] >> bits]++;
            if (!writes)
                continue;
            run->keys[index] = values[k];
            put(run, run->order, index, own + k);
        }
    }
}

static uint64_t get(const struct run *run, const void *list, uint64_t index)
{
    return run->width == 4 ? ((const uint32_t *)list)[index] : ((const uint64_t *)list)[index];
}

/* Moves each record of a window to its bucket, in place: the displaced record moves next, until a
 * cycle is complete. */
static void move_to_buckets(const struct run *run, uint64_t next[BUCKETS],
                            const uint64_t end[BUCKETS], unsigned shift)
{
    for (unsigned b = 0; b < BUCKETS; b++)
        while (next[b] < end[b]) {
            const uint64_t hole = next[b];
            uint64_t key = run->keys[hole], number = get(run, run->order, hole);
            for (unsigned to; (to = key >> shift & (BUCKETS - 1)) != b;) {
                const uint64_t at = next[to]++;
                const uint64_t other = run->keys[at], other_number = get(run, run->order, at);
                run->keys[at] = key;
                put(run, run->order, at, number);
                key = other;
                number = other_number;
            }
            run->keys[hole] = key;
            put(run, run->order, hole, number);
            next[b]++;
        }
}

/* Sorts by insertion: the records are near their places. */
static void insert_all(const struct run *run, uint64_t first, uint64_t end)
{
    for (uint64_t i = first + 1; i < end; i++) {
        const uint64_t key = run->keys[i], number = get(run, run->order, i);
        uint64_t at = i;
        for (; at > first && run->keys[at - 1] > key; at--) {
            run->keys[at] = run->keys[at - 1];
            put(run, run->order, at, get(run, run->order, at - 1));
        }
        run->keys[at] = key;
        put(run, run->order, at, number);
    }
}

/* Sorts the records [first, end) of a window by their places. */
static void sort_window(const struct run *run, uint64_t first, uint64_t end)
{
    static const unsigned bucket_bits = 12;
    _Static_assert(1 << 12 == BUCKETS, "the bits of a bucket's number");
    const unsigned bits = run->windows.bits, shift = bits > bucket_bits ? bits - bucket_bits : 0;
    uint64_t next[BUCKETS] = {0}, ends[BUCKETS], sum = first;
    for (uint64_t i = first; i < end; i++)
        next[run->keys[i] >> shift & (BUCKETS - 1)]++;
    for (unsigned b = 0; b < BUCKETS; b++) {
        const uint64_t count = next[b];
        next[b] = sum;
        ends[b] = sum += count;
    }
    move_to_buckets(run, next, ends, shift);
    insert_all(run, first, end);
}

/* After take_input(), the last thread's counter of a window is the end of the window. */
static void sort_windows(struct run *run)
{
    const uint64_t *ends = run->counters + (uint64_t)(run->senders - 1) * run->windows.count;
    for (;;) {
        const uint64_t w = atomic_fetch_add(&run->next, 1);
        if (w >= run->windows.count || shuf__is_cancelled(run->computation, &run->cancelled))
            return;
        sort_window(run, w ? ends[w - 1] : 0, ends[w]);
    }
}

/* The number of the input's records whose place is below `bound`. */
static uint64_t keys_below(const struct run *run, uint64_t bound)
{
    uint64_t low = 0, high = run->in.count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (run->keys[middle] < bound)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void find_bounds(const struct run *run, bool output)
{
    const struct shuf__plan *plan = run->plan;
    const uint64_t *sizes = output && plan->output ? plan->output : plan->input;
    run->bounds[0] = 0;
    for (uint64_t r = 0; r < plan->world; r++)
        run->bounds[r + 1] =
            run->bounds[r] + (sizes ? sizes[r] : shuf__plan_part(plan, r, output).count);
}

static void count_departures(const struct run *run)
{
    uint64_t before = 0;
    find_bounds(run, true);
    for (uint64_t r = 0; r < run->plan->world; r++) {
        const uint64_t end = keys_below(run, run->bounds[r + 1]);
        put(run, run->to, r, end - before);
        before = end;
    }
}

static void order_input(struct run *run)
{
    memset(run->counters, 0, (size_t)run->senders * run->windows.count * sizeof *run->counters);
#pragma omp parallel num_threads(run->senders)
    {
        const int thread = omp_get_thread_num();
#pragma omp single
        run->senders = omp_get_num_threads(); /* OMP_THREAD_LIMIT may permit fewer */
        take_input(run, thread, false);
#pragma omp barrier
#pragma omp single
        accumulate(run, run->windows.count, run->senders, NULL);
        take_input(run, thread, true);
#pragma omp barrier
        if (!atomic_load(&run->cancelled))
            sort_windows(run);
    }
    if (!atomic_load(&run->cancelled))
        count_departures(run);
}

/* ---- The places of the arrivals ---- */

/* The rank whose part contains the position. It is one of the ranks `first` to `last`. If empty
 * ranks begin at the same position, the last one has it. */
static uint64_t find_rank(const struct run *run, uint64_t position, uint64_t first, uint64_t last)
{
    const uint64_t *bounds = run->bounds + first;
    uint64_t count = last - first + 1;
    while (count > 1) {
        const uint64_t half = count / 2;
        bounds += bounds[half] <= position ? half : 0;
        count -= half;
    }
    return (uint64_t)(bounds - run->bounds);
}

/* The rank of a position. It searches only the ranks that begin in the position's span, which are
 * few unless most ranks are small. */
static uint64_t rank_of(const struct run *run, uint64_t position)
{
    const uint64_t *first = &run->first[position >> run->span_bits];
    return find_rank(run, position, first[0], first[1]);
}

/* first[spans] is the last rank, so the search in the last span has an end. */
static void find_first_ranks(const struct run *run)
{
    const uint64_t n = run->plan->permutation.n, last = run->plan->world - 1;
    const uint64_t spans = ((n - 1) >> run->span_bits) + 1;
    for (uint64_t i = 0; i < spans; i++)
        run->first[i] = find_rank(run, i << run->span_bits, i ? run->first[i - 1] : 0, last);
    run->first[spans] = last;
}

/* Counts the arrivals from each rank, or appends each place to the list of its rank. */
static void take_output(struct run *run, int thread, bool writes)
{
    const struct shuf__range share = share_of(run->out.count, run->receivers, thread);
    uint64_t *next = run->counters + (uint64_t)thread * run->plan->world, values[BATCH];
    for (uint64_t i = 0; i < share.count && !shuf__is_cancelled(run->computation, &run->cancelled);
         i += BATCH) {
        const size_t count = share.count - i < BATCH ? share.count - i : BATCH;
        const uint64_t own = share.first + i;
        shuf__neighbours_evaluate(&run->source, run->out.first + own, count, values);
        for (size_t k = 0; k < count; k++) {
            const uint64_t index = next[rank_of(run, values[k])]++;
            if (writes)
                put(run, run->places, index, own + k);
        }
    }
}

static void place_arrivals(struct run *run)
{
    const uint64_t world = run->plan->world;
    find_bounds(run, false);
    find_first_ranks(run);
    memset(run->counters, 0, (size_t)run->receivers * world * sizeof *run->counters);
#pragma omp parallel num_threads(run->receivers)
    {
        const int thread = omp_get_thread_num();
#pragma omp single
        run->receivers = omp_get_num_threads(); /* as the senders */
        take_output(run, thread, false);
#pragma omp barrier
#pragma omp single
        accumulate(run, world, run->receivers, run->from);
        take_output(run, thread, true);
    }
}

/* ---- Memory ---- */

/* Makes windows of WINDOW_LEAST records or more on average, and at most WINDOWS_MOST windows. A
 * window has a power of two of places, so a shift gives the window of a place. */
static struct windows windows_of(const struct shuf__plan *plan, uint64_t records)
{
    struct windows w = {0, 0};
    uint64_t most = records / WINDOW_LEAST + 1;
    if (most > WINDOWS_MOST)
        most = WINDOWS_MOST;
    while ((plan->permutation.n - 1) >> w.bits >= most)
        w.bits++;
    w.count = ((plan->permutation.n - 1) >> w.bits) + 1;
    return w;
}

/* The number of threads: few records get fewer threads, each with about `least` records. */
static int threads_for(int threads, uint64_t records, uint64_t least)
{
    const uint64_t most = records / least + 1;
    return most < (uint64_t)threads ? (int)most : threads;
}

static void lay_out(struct run *run, int threads, const struct shuf__plan *plan)
{
    const uint64_t least = plan->world > SHARE_LEAST ? plan->world : SHARE_LEAST;
    run->plan = plan;
    run->in = shuf__plan_part(plan, plan->rank, false);
    run->out = shuf__plan_part(plan, plan->rank, true);
    run->windows = windows_of(plan, run->in.count);
    run->senders = threads_for(threads, run->in.count, SHARE_LEAST);
    run->receivers = threads_for(threads, run->out.count, least);
    while ((plan->permutation.n - 1) >> run->span_bits >= SPANS_A_RANK * plan->world)
        run->span_bits++;
}

uint64_t shuf__exchange_bytes(int threads, const struct shuf__plan *plan)
{
    struct run run = {0};
    if (plan->part)
        return shuf__one_sided_bytes(threads, plan);
    lay_out(&run, threads, plan);
    const uint64_t windows = (uint64_t)run.senders * run.windows.count;
    const uint64_t ranks = (uint64_t)run.receivers * plan->world;
    const uint64_t lists = (SPANS_A_RANK + 1) * plan->world + 2;
    return (run.in.count + lists + (windows > ranks ? windows : ranks)) * sizeof(uint64_t);
}

bool shuf__host_exchange(const struct shuf__simd_ops *simd, int threads,
                         const struct shuf__computation *computation, void *out)
{
    const struct shuf__plan *plan = &computation->request.plan;
    const struct shuf__permutation *p = &plan->permutation;
    struct run run = {.computation = computation,
                      .place = shuf__neighbours_make(simd, p, !plan->inverse),
                      .source = shuf__neighbours_make(simd, p, plan->inverse)};
    if (plan->part)
        return shuf__host_one_sided(simd, threads, computation, out);
    lay_out(&run, threads, plan);
    assert(computation->workspace &&
           computation->workspace->bytes >= shuf__exchange_bytes(threads, plan));
    run.width = (unsigned)shuf__request_shape(&computation->request).width;
    run.to = out;
    run.from = (char *)out + plan->world * run.width;
    run.order = (char *)run.from + plan->world * run.width;
    run.places = (char *)run.order + run.in.count * run.width;
    run.keys = computation->workspace->memory;
    run.bounds = run.keys + run.in.count;
    run.first = run.bounds + plan->world + 1;
    run.counters = run.first + SPANS_A_RANK * plan->world + 1;
    atomic_init(&run.next, 0);
    atomic_init(&run.cancelled, false);
    order_input(&run);
    if (!atomic_load(&run.cancelled))
        place_arrivals(&run);
    return !atomic_load(&run.cancelled);
}
