/* SPDX-License-Identifier: MIT
 *
 * Measures permutations on the CPU, by default with n = 1e9: every instruction set on one thread,
 * the best one on all threads, other generators of permutations, and the latency of small
 * computations. The program touches the memory before it starts the clock. Each row is the median
 * of three samples, or of --samples. After a minute a peer takes no further samples. With --cost,
 * the program measures the cost against n instead.
 */
#include "backend.h"
#include "clock.h"
#include "permute_cpu.h"
#include "process.h"
#include "processor.h"
#include "report.h"
#include "timed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
