/* SPDX-License-Identifier: MIT
 *
 * Measures the paper's figure for CPUs (paper.h) and the shuffles of shufd in one run. The rows are
 * a gather by random indices, the bijective shuffle by philox24 (varphilox), the shuffles of
 * peers/shuffles.h, and primefold. std::shuffle uses one thread, all others use all threads. Each
 * row is the median of five trials, or of the trials that start within a minute.
 *
 * Before it starts the clock, the program checks that every item occurs once in each result. If
 * docs/spec.md defines the order, it also checks the items at random places.
 */
#include "backend.h"
#include "paper.h"
#include "peers/shuffles.h"
#include "process.h"
#include "processor.h"
#include "shuf/philox24.h"
#include "shuf/primefold.h"
#include "timed.h"

#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PLACES = 1000,
    ALONE = 1 << 13, /* up to this many items, one thread is faster than waking the others */
};
static const double minute_ns = 60e9;

struct bench {
    struct paper *paper;
    struct shuf__backend *backend;
    struct shuf__block in, out, spare; /* u64 arrays; `spare` is scratch memory of a row */
    int threads;
};

struct row {
    const char *name;
    void (*shuffle)(struct bench *b, uint64_t n, uint64_t epoch);
    /* Whether the item at position `at` is right for epoch 0. NULL: the order is not defined. */
    bool (*is_right)(const uint64_t *out, uint64_t n, uint64_t at);
    uint64_t room; /* bytes of further memory for each item; 0: little */
};

/* ---- The backend ---- */

static struct shuf__block alloc(struct bench *b, uint64_t bytes)
{
    const uint64_t unit = SHUF__BLOCK_UNIT;
    struct shuf__block block;
    struct shuf__error error;
    if (b->backend->ops->alloc(b->backend, b->backend->ops->own, (bytes + unit - 1) / unit * unit,
                               &block, &error))
        die("%s", error.text);
    memset(block.memory, 1, block.bytes);
    return block;
}

static void compute(struct bench *b, const struct shuf__computation *computation,
                    struct shuf__block *block)
{
    struct shuf__error error;
    uint64_t took;
    if (shuf__backend_compute(b->backend, computation, block, &took, &error))
        die("%s", error.text);
}

static void shuffle_by(struct bench *b, enum shuf_algorithm algorithm, uint64_t n, uint64_t epoch)
{
    struct shuf__computation computation = timed_shuffle(algorithm, n, PAPER_SEED, epoch, 8);
    computation.input = &b->in;
    compute(b, &computation, &b->out);
}

static void primefold(struct bench *b, uint64_t n, uint64_t epoch)
{
    shuffle_by(b, SHUF_ALGORITHM_PRIMEFOLD, n, epoch);
}

static bool is_primefold(const uint64_t *out, uint64_t n, uint64_t at)
{
    const struct shuf_primefold f = shuf_primefold_make(n, PAPER_SEED, 0);
    return out[at] == paper_item(shuf_primefold_forward(&f, at));
}

static void varphilox(struct bench *b, uint64_t n, uint64_t epoch)
{
    shuffle_by(b, SHUF_ALGORITHM_PHILOX24, n, epoch);
}

/* The right order is f(0), f(1), ..., without the values of n or more. The index of an item is the
 * x with f(x) = item. The item at position `at` is right if f(x) >= n for all x between the index
 * of the item before it and its own index. */
static bool is_varphilox(const uint64_t *out, uint64_t n, uint64_t at)
{
    const shuf_philox24 f = shuf_philox24_make(n, PAPER_SEED, 0);
    const uint64_t x = shuf_philox24_inverse(&f, paper_index(out[at]));
    const uint64_t after = at ? shuf_philox24_inverse(&f, paper_index(out[at - 1])) + 1 : 0;
    bool right = after <= x;
    for (uint64_t between = after; right && between < x; between++)
        right = shuf_philox24_forward(&f, between) >= n;
    return right;
}

/* ---- Others ---- */

static int threads_for(const struct bench *b, uint64_t n)
{
    return n <= ALONE ? 1 : b->threads;
}

/* measure_size() has written the indices to `spare`. */
static void gather(struct bench *b, uint64_t n, uint64_t epoch)
{
    const uint64_t *from = b->in.memory;
    const uint32_t *index = b->spare.memory;
    uint64_t *to = b->out.memory;
    (void)epoch;
#pragma omp parallel for num_threads(threads_for(b, n))
    for (uint64_t i = 0; i < n; i++)
        to[i] = from[index[i]];
}

static void darts(struct bench *b, uint64_t n, uint64_t epoch)
{
    peer_dart_throwing(b->in.memory, b->out.memory, b->spare.memory, n, epoch, threads_for(b, n));
}

static void rao_sandelius(struct bench *b, uint64_t n, uint64_t epoch)
{
    peer_rao_sandelius_items(b->in.memory, b->out.memory, b->spare.memory, n, epoch,
                             threads_for(b, n));
}

static void merge_shuffle(struct bench *b, uint64_t n, uint64_t epoch)
{
    peer_merge_shuffle_items(b->in.memory, b->out.memory, n, epoch, threads_for(b, n));
}

#ifdef BENCH_HAVE_CXX
static void std_shuffle(struct bench *b, uint64_t n, uint64_t epoch)
{
    (void)epoch;
    peer_std_shuffle_items(b->in.memory, b->out.memory, n);
}

static void sort(struct bench *b, uint64_t n, uint64_t epoch)
{
    peer_sort_shuffle(b->in.memory, b->out.memory, n, epoch, threads_for(b, n));
}
#endif

static const struct row rows[] = {
    {"gather", gather, is_varphilox, 0},
    {"varphilox", varphilox, is_varphilox, 0},
    {"darts", darts, NULL, 0},
#ifdef BENCH_HAVE_CXX
    {"std-shuffle", std_shuffle, NULL, 0},
#endif
    {"rao-sandelius", rao_sandelius, NULL, 0},
    {"merge-shuffle", merge_shuffle, NULL, 0},
#ifdef BENCH_HAVE_CXX
    {"sort", sort, NULL, 32},
#endif
    {"primefold", primefold, is_primefold, 0},
};

/* ---- Checks ---- */

/* Whether each item of the input occurs once. */
static bool is_shuffle(struct bench *b, uint64_t n)
{
    const uint64_t *out = b->out.memory;
    atomic_uint_fast64_t *seen = calloc(n / 64 + 1, sizeof *seen);
    uint64_t wrong = 0;
    if (!seen)
        die("out of memory: cannot allocate one bit for each of %llu items", (unsigned long long)n);
#pragma omp parallel for num_threads(b->threads) reduction(+ : wrong)
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t index = paper_index(out[i]), bit = UINT64_C(1) << index % 64;
        wrong += index >= n || (atomic_fetch_or(&seen[index / 64], bit) & bit);
    }
    free(seen);
    return wrong == 0;
}

static bool is_right(struct bench *b, const struct row *row, uint64_t n)
{
    if (!is_shuffle(b, n)) {
        paper_wrong(b->paper, row->name, n, "not a shuffle: an item is missing");
        return false;
    }
    for (uint64_t k = 0; row->is_right && k < PLACES; k++)
        if (!row->is_right(b->out.memory, n, k < 2 ? k * (n - 1) : paper_item(k) % n)) {
            paper_wrong(b->paper, row->name, n, "an item differs from the inline code");
            return false;
        }
    return true;
}

static void measure(struct bench *b, const struct row *row, uint64_t n)
{
    double ns[PAPER_TRIALS];
    unsigned taken = 0;
    memset(b->out.memory, 0, n * 8); /* the check must not see the output of the row before */
    row->shuffle(b, n, 0);
    if (!is_right(b, row, n))
        return;
    const double begin = now_ns();
    while (taken < PAPER_TRIALS && (taken == 0 || now_ns() - begin < minute_ns)) {
        const double start = now_ns();
        row->shuffle(b, n, taken + 1);
        ns[taken++] = now_ns() - start;
    }
    paper_add(b->paper, row->name, n, ns, taken);
}

/* Whether enough memory is free. Otherwise the kernel would kill the program. */
static bool has_room(struct bench *b, const struct row *row, uint64_t n)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (row->room * n / page < (uint64_t)sysconf(_SC_AVPHYS_PAGES))
        return true;
    paper_skip(b->paper, row->name, n, "not enough free memory");
    return false;
}

static void measure_size(struct bench *b, unsigned w)
{
    const uint64_t n = (UINT64_C(1) << w) + 1;
    const struct shuf__computation index =
        timed_permutation(SHUF_ALGORITHM_PHILOX24, n, PAPER_SEED, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!paper_wants(b->paper, rows[i].name) || !has_room(b, &rows[i], n))
            continue;
        if (rows[i].shuffle == gather)
            compute(b, &index, &b->spare);
        measure(b, &rows[i], n);
    }
}

static void begin(struct bench *b)
{
    const uint64_t most = (UINT64_C(1) << b->paper->last) + 1;
    struct shuf__error error;
    if (shuf__backend_open("cpu", 0, &b->backend, &error))
        die("%s", error.text);
    paper_device(b->paper, b->backend->device);
    b->threads = omp_get_max_threads();
    b->in = alloc(b, 8 * most);
    b->out = alloc(b, 8 * most);
    b->spare = alloc(b, 8 * most);
    uint64_t *items = b->in.memory;
    for (uint64_t i = 0; i < most; i++)
        items[i] = paper_item(i);
}

int main(int argc, char **argv)
{
    struct bench b = {.paper =
                          paper_begin("shuffles of u64 as in the paper, on a CPU", argc, argv)};
    processor_say(b.paper->report);
#ifndef BENCH_HAVE_CXX
    report_fact(b.paper->report, "std-shuffle, sort", "built without a C++ compiler");
#endif
    begin(&b);
    for (unsigned w = b.paper->first; w <= b.paper->last; w++)
        measure_size(&b, w);
    b.backend->ops->free(b.backend, &b.spare);
    b.backend->ops->free(b.backend, &b.out);
    b.backend->ops->free(b.backend, &b.in);
    b.backend->ops->close(b.backend);
    return paper_end(b.paper);
}
