/* SPDX-License-Identifier: MIT
 *
 * Measures permutations on the CPU, by default with n = 1e9: every instruction set on one thread,
 * the best one on all threads, other generators of permutations, and the latency of small
 * computations. The program touches the memory before it starts the clock. Each row is the median
 * of three samples, or of --samples. After a minute a peer takes no further samples. With --cost,
 * the program measures the cost against n instead.
 */
#include "backend.h"
#include "cost.h"
#include "peers/shuffles.h"
#include "process.h"
#include "processor.h"
#include "python_peer.h"
#include "report.h"
#include "shuf/philox24.h"
#include "timed.h"

#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES_MOST = 99 };

/* A row takes no further samples after this time. Some peers take a minute for 1e9 values. */
static const double minute_ns = 60e9;

/* ---- NumPy ---- */

static void numpy_row(struct report *report, const char *label, uint64_t n, unsigned bytes,
                      const json_t *reply, const char *member)
{
    double *ns;
    size_t samples = python_peer_numbers(reply, member, &ns);
    report_add(report, label, n, n, "values", n * bytes, ns, samples);
    free(ns);
}

/* Rows of numpy, in a separate process. Call it before this process has threads. */
static void numpy_rows(struct report *report, uint64_t n, unsigned samples)
{
    char n_text[32], samples_text[32];
    snprintf(n_text, sizeof n_text, "%llu", (unsigned long long)n);
    snprintf(samples_text, sizeof samples_text, "%u", samples);
    const char *const arguments[] = {"permutation", "--n", n_text, "--samples", samples_text, NULL};
    json_t *reply = python_peer_run(report, "numpy_peers.py", arguments);
    if (!reply)
        return;
    report_fact(report, "numpy", json_string_value(json_object_get(reply, "numpy")));
    numpy_row(report, "numpy Generator.permutation, i64, fresh memory", n, 8, reply,
              "permutation_ns");
    numpy_row(report, "numpy Generator.shuffle, u32", n, 4, reply, "shuffle_ns");
    json_decref(reply);
}

/* ---- Peers in the process ---- */

struct room {
    uint32_t *values, *spare;
    uint64_t n;
};

#ifdef BENCH_HAVE_CXX
static void std_shuffle(const struct room *room, int threads)
{
    (void)threads;
    peer_std_shuffle(room->values, room->n);
}
#endif

static void rao_sandelius(const struct room *room, int threads)
{
    peer_rao_sandelius(room->values, room->spare, room->n, 7, threads);
}

static void merge_shuffle(const struct room *room, int threads)
{
    peer_merge_shuffle(room->values, room->n, 7, threads);
}

/* The loop that a user would write without the backend. */
static void plain_loop(const struct room *room, int threads)
{
    const shuf_philox24 f = shuf_philox24_make(room->n, 7, 0);
    uint64_t kept = 0;
    (void)threads;
    for (uint64_t x = 0; kept < room->n; x++) {
        uint64_t value = shuf_philox24_forward(&f, x);
        if (value < room->n)
            room->values[kept++] = (uint32_t)value;
    }
}

/* Checks that the output of a peer has each value of [0, n) once. A sum of hashes does not depend
 * on the order of the values, and differs if a value is missing. */
static uint64_t sum_over(const uint32_t *values, uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t z = ((values ? values[i] : i) + 1) * UINT64_C(0x9E3779B97F4A7C15);
        sum += (z ^ z >> 29) * UINT64_C(0xBF58476D1CE4E5B9) >> 7;
    }
    return sum;
}

static void peer_row(struct report *report, const struct room *room, const char *label,
                     void (*shuffle)(const struct room *room, int threads), int threads,
                     unsigned samples)
{
    double ns[SAMPLES_MOST];
    const double begin = now_ns();
    unsigned taken = 0;
    while (taken < samples && now_ns() - begin < minute_ns) {
        double start = now_ns();
        shuffle(room, threads);
        ns[taken++] = now_ns() - start;
    }
    if (sum_over(room->values, room->n) != sum_over(NULL, room->n))
        die("%s: not a permutation", label);
    report_add(report, label, room->n, room->n, "values", room->n * 4, ns, taken);
}

static uint32_t *touched(uint64_t n)
{
    uint32_t *memory = malloc(n * sizeof *memory);
    if (!memory)
        die("out of memory: cannot allocate %llu values", (unsigned long long)n);
    memset(memory, 1, n * sizeof *memory);
    return memory;
}

/* philox24 in a plain loop without the backend. One sample, because it takes a minute. */
static void plain_row(struct report *report, uint64_t n)
{
    const struct room room = {touched(n), NULL, n};
    peer_row(report, &room, "philox24, plain scalar loop", plain_loop, 1, 1);
    free(room.values);
}

/* The shuffles of peers/shuffles.h; n < 2^32. */
static void shuffle_rows(struct report *report, uint64_t n, unsigned samples)
{
    const struct room room = {touched(n), touched(n), n};
    const int all = omp_get_max_threads();
#ifdef BENCH_HAVE_CXX
    peer_row(report, &room, "std::shuffle, mt19937_64", std_shuffle, 1, samples);
#else
    report_fact(report, "std::shuffle", "built without a C++ compiler");
#endif
    peer_row(report, &room, "Rao-Sandelius, one thread", rao_sandelius, 1, samples);
    peer_row(report, &room, "Rao-Sandelius, all threads", rao_sandelius, all, samples);
    peer_row(report, &room, "MergeShuffle, one thread", merge_shuffle, 1, samples);
    peer_row(report, &room, "MergeShuffle, all threads", merge_shuffle, all, samples);
    free(room.spare);
    free(room.values);
}

/* ---- Cost against n ---- */

/* The cost of a value against n on one thread: of the whole permutation, or of the largest slice
 * that fits the memory. std::shuffle cannot compute a slice, so it stops at n = 2^30 + 1. Times are
 * CPU times of the thread, so other work on the core does not count. */

enum { COST_SAMPLES = 9, SLOW_SAMPLES = 3 };

static const uint64_t slice_most = UINT64_C(1) << 24, shuffle_most = (UINT64_C(1) << 30) + 1;
static const double sample_ns = 1e6, slow_ns = 1e8, once_ns = 1e9;

struct setup {
    struct shuf__backend *backend;
    struct shuf__block block;
    struct shuf__computation computation;
    uint32_t *values; /* the output of std::shuffle */
};

static void permute(struct setup *s)
{
    struct shuf__error error;
    uint64_t took;
    s->computation.request.permutation.epoch++;
    if (shuf__backend_compute(s->backend, &s->computation, &s->block, &took, &error))
        die("%s", error.text);
}

static void std_shuffle_once(struct setup *s)
{
#ifdef BENCH_HAVE_CXX
    peer_std_shuffle(s->values, s->computation.request.permutation.n);
#else
    (void)s;
#endif
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double once(struct setup *s, void (*work)(struct setup *), unsigned times)
{
    double start = thread_ns();
    for (unsigned i = 0; i < times; i++)
        work(s);
    return (thread_ns() - start) / times;
}

/* Nanoseconds of one call: the median of several samples. A sample repeats the call for at least a
 * millisecond. */
static double time_of(struct setup *s, void (*work)(struct setup *))
{
    double first = once(s, work, 1), ns[COST_SAMPLES];
    if (first > once_ns)
        return first;
    const unsigned times = first < sample_ns ? (unsigned)(sample_ns / first) + 1 : 1;
    const unsigned samples = first > slow_ns ? SLOW_SAMPLES : COST_SAMPLES;
    for (unsigned i = 0; i < samples; i++)
        ns[i] = once(s, work, times);
    qsort(ns, samples, sizeof *ns, ascending);
    return ns[samples / 2];
}

static void cost_of(struct cost *cost, struct setup *s, enum shuf_algorithm algorithm,
                    const char *name, uint64_t n)
{
    const uint64_t count = n < slice_most ? n : slice_most;
    s->computation = timed_permutation(algorithm, n, 7, 0);
    s->computation.request.permutation.count = count;
    cost_add(cost, s->backend->device, name, n, count, time_of(s, permute) / (double)count);
}

static void costs_of_backend(struct cost *cost, struct setup *s)
{
    uint64_t n;
    for (unsigned i = 0; (n = cost_size(i)) != 0; i++)
        cost_of(cost, s, SHUF_ALGORITHM_PRIMEFOLD, "primefold", n);
    for (unsigned i = 0; (n = cost_size(i)) != 0; i++)
        cost_of(cost, s, SHUF_ALGORITHM_PHILOX24, "philox24", n);
}

static void costs_of_std_shuffle(struct cost *cost, struct setup *s)
{
    uint64_t n;
    if (!(s->values = malloc(shuffle_most * sizeof *s->values)))
        die("out of memory: cannot allocate %llu values", (unsigned long long)shuffle_most);
    memset(s->values, 1, shuffle_most * sizeof *s->values);
    for (unsigned i = 0; (n = cost_size(i)) != 0 && n <= shuffle_most; i++) {
        s->computation.request.permutation.n = n;
        cost_add(cost, s->backend->device, "std::shuffle", n, n,
                 time_of(s, std_shuffle_once) / (double)n);
    }
    free(s->values);
}

/* Cost against n on one thread, to FILE.csv and FILE.svg. Returns the exit code. */
static int cost_of_sizes(const char *path)
{
    struct setup s = {0};
    struct shuf__error error;
    struct cost *cost = cost_begin(path);
    if (shuf__backend_open("cpu", 1, &s.backend, &error) ||
        s.backend->ops->alloc(s.backend, s.backend->ops->own, slice_most * 8, &s.block, &error))
        die("%s", error.text);
    memset(s.block.memory, 1, s.block.bytes);
    costs_of_backend(cost, &s);
    s.backend->ops->free(s.backend, &s.block);
    costs_of_std_shuffle(cost, &s);
    s.backend->ops->close(s.backend);
    return cost_end(cost);
}

/* ---- The backend ---- */

enum { SMALL_SAMPLES = 20000 };

struct backend_row {
    enum shuf_algorithm algorithm;
    const char *label, *spec;
    unsigned threads;
};

static const struct backend_row rows[] = {
    {SHUF_ALGORITHM_PRIMEFOLD, "primefold, AVX-512, one thread", "cpu:avx512", 1},
    {SHUF_ALGORITHM_PRIMEFOLD, "primefold, AVX2, one thread", "cpu:avx2", 1},
    {SHUF_ALGORITHM_PRIMEFOLD, "primefold, scalar, one thread", "cpu:scalar", 1},
    {SHUF_ALGORITHM_PRIMEFOLD, "primefold, best, all threads", "cpu", 0},
    {SHUF_ALGORITHM_PHILOX24, "philox24, AVX-512, one thread", "cpu:avx512", 1},
    {SHUF_ALGORITHM_PHILOX24, "philox24, AVX2, one thread", "cpu:avx2", 1},
    {SHUF_ALGORITHM_PHILOX24, "philox24, best, all threads", "cpu", 0},
    {SHUF_ALGORITHM_LCG, "lcg, best, one thread", "cpu", 1},
    {SHUF_ALGORITHM_LCG, "lcg, best, all threads", "cpu", 0},
};

static const struct backend_row small_rows[] = {
    {SHUF_ALGORITHM_PRIMEFOLD, "primefold, AVX-512, launch and wait", "cpu:avx512", 0},
    {SHUF_ALGORITHM_PRIMEFOLD, "primefold, AVX2, launch and wait", "cpu:avx2", 0},
    {SHUF_ALGORITHM_PHILOX24, "philox24, AVX-512, launch and wait", "cpu:avx512", 0},
    {SHUF_ALGORITHM_PHILOX24, "philox24, AVX2, launch and wait", "cpu:avx2", 0},
};

/* Returns false and prints the reason if this processor lacks the instruction set. */
static bool open_row(const struct backend_row *row, uint64_t bytes, struct shuf__backend **backend,
                     struct shuf__block *block)
{
    struct shuf__error error;
    const uint64_t unit = SHUF__BLOCK_UNIT;
    if (shuf__backend_open(row->spec, row->threads, backend, &error)) {
        printf("%-44s %s\n", row->label, error.text);
        return false;
    }
    const struct shuf__backend_ops *ops = (*backend)->ops;
    if (ops->alloc(*backend, ops->own, (bytes + unit - 1) / unit * unit, block, &error))
        die("%s", error.text);
    memset(block->memory, 1, block->bytes);
    return true;
}

static void close_row(struct shuf__backend *backend, struct shuf__block *block)
{
    backend->ops->free(backend, block);
    backend->ops->close(backend);
}

static void measure(struct report *report, const struct backend_row *row, uint64_t n,
                    unsigned samples)
{
    struct shuf__backend *backend;
    struct shuf__block block;
    struct shuf__error error;
    const struct shuf__computation computation = timed_permutation(row->algorithm, n, 7, 0);
    const uint64_t bytes = shuf__request_shape(&computation.request).bytes;
    double ns[SAMPLES_MOST];
    if (!open_row(row, bytes, &backend, &block))
        return;
    for (unsigned i = 0; i < samples; i++) {
        uint64_t took;
        if (shuf__backend_compute(backend, &computation, &block, &took, &error))
            die("%s", error.text);
        ns[i] = (double)took;
    }
    report_add(report, row->label, n, n, "values", bytes, ns, samples);
    close_row(backend, &block);
}

/* The latency from call to return, as a part of the latency of a request. */
static void measure_small(struct report *report, const struct backend_row *row)
{
    static double ns[SMALL_SAMPLES];
    struct shuf__backend *backend;
    struct shuf__block block;
    struct shuf__error error;
    struct shuf__computation computation = timed_permutation(row->algorithm, 1000, 7, 0);
    uint64_t took;
    if (!open_row(row, SHUF__BLOCK_UNIT, &backend, &block))
        return;
    for (int i = 0; i < SMALL_SAMPLES; i++) {
        double start = now_ns();
        computation.request.permutation.epoch++;
        if (shuf__backend_compute(backend, &computation, &block, &took, &error))
            die("%s", error.text);
        ns[i] = now_ns() - start;
    }
    report_latency(report, row->label, computation.request.permutation.n, ns, SMALL_SAMPLES);
    close_row(backend, &block);
}

int main(int argc, char **argv)
{
    const char *n_text = "1e9", *samples_text = "3", *no_peers = NULL, *cost = NULL;
    const struct report_option options[] = {{"--n", "N", &n_text},
                                            {"--samples", "N", &samples_text},
                                            {"--no-peers", NULL, &no_peers},
                                            {"--cost", "FILE.csv", &cost},
                                            {0}};
    struct report *report = report_begin_with("permute on the CPU, u32", options, argc, argv);
    const uint64_t n = processor_number("--n", n_text, UINT32_MAX);
    const unsigned samples = (unsigned)processor_number("--samples", samples_text, SAMPLES_MOST);
    processor_say(report);
    if (cost)
        return cost_of_sizes(cost) | report_end(report);
    if (!no_peers)
        numpy_rows(report, n, samples);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        measure(report, &rows[i], n, samples);
    plain_row(report, n);
    if (!no_peers)
        shuffle_rows(report, n, samples);
    for (size_t i = 0; i < sizeof small_rows / sizeof *small_rows; i++)
        measure_small(report, &small_rows[i]);
    return report_end(report);
}
