/* SPDX-License-Identifier: MIT
 *
 * Streams on the CPU: the rate in values a second of each distribution and type, for every
 * instruction set on one thread and for the best one on all threads. Peers are plain loops and
 * numpy. The program touches the memory and checks the values before it starts the clock. Rows of
 * one thread use the CPU time of the thread, so other work on the core does not count. Rows of all
 * threads use the wall clock.
 */
#include "backend.h"
#include "clock.h"
#include "process.h"
#include "processor.h"
#include "stream_check.h"
#include "stream_cpu.h"
#include "timed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct kind {
    enum shuf__distribution distribution;
    shuf_dtype dtype;
    const char *name;
    unsigned width;
} kinds[] = {
#define KIND(distribution, dtype, name, width)                      \
    {                                                               \
        SHUF_DISTRIBUTION_##distribution, SHUF_##dtype, name, width \
    }
    KIND(GAUSS, F64, "gauss f64", 8),
    KIND(GAUSS, F32, "gauss f32", 4),
    KIND(GAUSS, F16, "gauss f16", 2),
    KIND(GAUSS, BF16, "gauss bf16", 2),
    KIND(BOX_MULLER, F64, "box-muller f64", 8),
    KIND(BOX_MULLER, F32, "box-muller f32", 4),
    KIND(BOX_MULLER, F16, "box-muller f16", 2),
    KIND(BOX_MULLER, BF16, "box-muller bf16", 2),
    KIND(UNIFORM, U32, "uniform u32", 4),
    KIND(UNIFORM, U64, "uniform u64", 8),
    KIND(UNIFORM, F32, "uniform f32", 4),
    KIND(UNIFORM, F64, "uniform f64", 8),
    KIND(EXPONENTIAL, F64, "exponential f64", 8),
    KIND(EXPONENTIAL, F32, "exponential f32", 4),
    KIND(BERNOULLI, U32, "bernoulli u32", 4),
    KIND(INTEGERS, U32, "integers u32", 4),
    KIND(INTEGERS, U64, "integers u64", 8),
#undef KIND
};

static const struct loops {
    const char *name, *spec;
    unsigned threads;
} loops[] = {
    {"best, all threads", "cpu", 0},
    {"AVX-512, one thread", "cpu:avx512", 1},
    {"AVX2, one thread", "cpu:avx2", 1},
    {"scalar, one thread", "cpu:scalar", 1},
};

/* ---- Rows ---- */

double thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void rate_row(struct report *report, const char *label, uint64_t n, double *ns, unsigned samples)
{
    for (unsigned i = 0; i < samples; i++)
        ns[i] = (double)n * 1e9 / ns[i];
    report_rate(report, label, n, "values", ns, samples);
}

static void compute(struct shuf__backend *backend, const struct shuf__computation *computation,
                    struct shuf__block *block)
{
    struct shuf__error error;
    uint64_t took;
    if (shuf__backend_compute(backend, computation, block, &took, &error))
        die("%s", error.text);
}

static void measure(struct report *report, const struct kind *kind, const struct loops *with,
                    struct shuf__backend *backend, struct shuf__block *block, uint64_t n,
                    unsigned samples)
{
    char label[64];
    struct shuf__error error;
    double ns[SAMPLES_MOST];
    double (*const clock_ns)(void) = with->threads == 1 ? thread_ns : now_ns;
    const struct shuf__computation computation =
        timed_stream(kind->distribution, kind->dtype, 7, n);
    snprintf(label, sizeof label, "%s, %s", kind->name, with->name);
    compute(backend, &computation, block);
    if (stream_check(backend, block, &computation.request, &error))
        die("%s: %s", label, error.text);
    for (unsigned i = 0; i < samples; i++) {
        const double start = clock_ns();
        compute(backend, &computation, block);
        ns[i] = clock_ns() - start;
    }
    rate_row(report, label, n, ns, samples);
}

static void rows_of(struct report *report, const struct loops *with, uint64_t n, unsigned samples)
{
    struct shuf__backend *backend;
    struct shuf__block block;
    struct shuf__error error;
    const uint64_t unit = SHUF__BLOCK_UNIT;
    if (shuf__backend_open(with->spec, with->threads, &backend, &error)) {
        report_fact(report, with->name, error.text);
        return;
    }
    const struct shuf__backend_ops *ops = backend->ops;
    if (ops->alloc(backend, ops->own, (8 * n + unit - 1) / unit * unit, &block, &error))
        die("%s", error.text);
    memset(block.memory, 1, block.bytes);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        measure(report, &kinds[i], with, backend, &block, n, samples);
    ops->free(backend, &block);
    ops->close(backend);
}

/* ---- The program ---- */

int main(int argc, char **argv)
{
    const char *n_text = "2e7", *samples_text = "7", *no_peers = NULL;
    const struct report_option options[] = {{"--n", "N", &n_text},
                                            {"--samples", "N", &samples_text},
                                            {"--no-peers", NULL, &no_peers},
                                            {0}};
    struct report *report = report_begin_with("streams on the CPU", options, argc, argv);
    const uint64_t n = processor_number("--n", n_text, 1e11);
    const unsigned samples = (unsigned)processor_number("--samples", samples_text, SAMPLES_MOST);
    processor_say(report);
    report_fact(report, "clock", "one thread: CPU time; all threads: wall time");
    if (!no_peers)
        numpy_rows(report, n, samples);
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        rows_of(report, &loops[i], n, samples);
    if (!no_peers)
        plain_rows(report, n, samples);
    return report_end(report);
}
