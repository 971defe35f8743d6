/* SPDX-License-Identifier: MIT
 *
 * The cost of a value against n on one thread: of the whole permutation, or of the largest slice
 * that fits the memory. std::shuffle cannot compute a slice, so it stops at n = 2^30 + 1. Times are
 * CPU times of the thread, so other work on the core does not count.
 */
#include "backend.h"
#include "cost.h"
#include "peers/shuffles.h"
#include "permute_cpu.h"
#include "process.h"
#include "timed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 9, SLOW_SAMPLES = 3 };

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

static void std_shuffle(struct setup *s)
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
    double first = once(s, work, 1), ns[SAMPLES];
    if (first > once_ns)
        return first;
    const unsigned times = first < sample_ns ? (unsigned)(sample_ns / first) + 1 : 1;
    const unsigned samples = first > slow_ns ? SLOW_SAMPLES : SAMPLES;
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
                 time_of(s, std_shuffle) / (double)n);
    }
    free(s->values);
}

int cost_of_sizes(const char *path)
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
