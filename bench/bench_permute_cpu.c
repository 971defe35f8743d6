/* SPDX-License-Identifier: MIT
 *
 * permute on the CPU at n = 1e9: every instruction set on one thread, the best
 * on all, next to a plain scalar loop over the same inline cipher, which is what
 * one would write without the backend; and a small job from call to return. Memory
 * is touched before the clock runs.
 */
#include "backend.h"
#include "clock.h"
#include "report.h"
#include "shuf/philox24.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 3, SMALL_SAMPLES = 20000 };

static const uint64_t n = 1000000000;

static void die(const char *text)
{
    fprintf(stderr, "bench_permute_cpu: %s\n", text);
    exit(1);
}

static void backend_row(struct report *report, enum shuf_algorithm algorithm, const char *what,
                        const char *spec, unsigned threads)
{
    struct shuf__backend *backend;
    struct shuf__block block;
    struct shuf__error error;
    const uint64_t unit = SHUF__BLOCK_UNIT, block_bytes = (n * 4 + unit - 1) / unit * unit;
    struct shuf__job job = {
        .algorithm = algorithm, .n = n, .count = n, .stride = 1, .rows = 1, .seed = 7, .width = 4};
    double ns[SAMPLES];
    if (shuf__backend_open(spec, threads, &backend, &error)) {
        printf("%-44s %s\n", what, error.text);
        return;
    }
    if (backend->ops->alloc(backend, backend->ops->own, block_bytes, &block, &error))
        die(error.text);
    memset(block.memory, 1, block.bytes);
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t took;
        if (shuf__backend_permute(backend, &job, &block, &took, &error))
            die(error.text);
        ns[i] = (double)took;
    }
    report_add(report, what, n, n, "values", n * job.width, ns, SAMPLES);
    backend->ops->free(backend, &block);
    backend->ops->close(backend);
}

/* From call to return: what such a job costs a request. */
static void small_row(struct report *report, enum shuf_algorithm algorithm, const char *what,
                      const char *spec)
{
    static double ns[SMALL_SAMPLES];
    struct shuf__backend *backend;
    struct shuf__block block;
    struct shuf__error error;
    struct shuf__job job = {.algorithm = algorithm,
                            .n = 1000,
                            .count = 1000,
                            .stride = 1,
                            .rows = 1,
                            .seed = 7,
                            .width = 4};
    uint64_t took;
    if (shuf__backend_open(spec, 0, &backend, &error)) {
        printf("%-44s %s\n", what, error.text);
        return;
    }
    if (backend->ops->alloc(backend, backend->ops->own, SHUF__BLOCK_UNIT, &block, &error))
        die(error.text);
    memset(block.memory, 1, block.bytes);
    for (int i = 0; i < SMALL_SAMPLES; i++) {
        double start = now_ns();
        job.epoch++;
        if (shuf__backend_permute(backend, &job, &block, &took, &error))
            die(error.text);
        ns[i] = now_ns() - start;
    }
    report_latency(report, what, job.n, ns, SMALL_SAMPLES);
    backend->ops->free(backend, &block);
    backend->ops->close(backend);
}

static void plain_loop(struct report *report, uint32_t *out)
{
    shuf_philox24 f = shuf_philox24_make(n, 7, 0);
    double start = now_ns(), took;
    uint64_t kept = 0;
    for (uint64_t x = 0; kept < n; x++) {
        uint64_t value = shuf_philox24_forward(&f, x);
        if (value < n)
            out[kept++] = (uint32_t)value;
    }
    took = now_ns() - start;
    report_add(report, "philox24, plain scalar loop", n, n, "values", n * sizeof *out, &took, 1);
}

int main(int argc, char **argv)
{
    struct report *report = report_begin("permute on the CPU, n = 1e9, u32", argc, argv);
    struct shuf__backend *backend;
    struct shuf__error error;
    if (shuf__backend_open("cpu", 0, &backend, &error))
        die(error.text);
    report_fact(report, "device", backend->device);
    report_fact(report, "instruction set", backend->device_id);
    backend->ops->close(backend);

    backend_row(report, SHUF_ALGORITHM_PRIMEFOLD, "primefold, AVX-512, one thread", "cpu:avx512",
                1);
    backend_row(report, SHUF_ALGORITHM_PRIMEFOLD, "primefold, AVX2, one thread", "cpu:avx2", 1);
    backend_row(report, SHUF_ALGORITHM_PRIMEFOLD, "primefold, best, all threads", "cpu", 0);
    backend_row(report, SHUF_ALGORITHM_PHILOX24, "philox24, AVX-512, one thread", "cpu:avx512", 1);
    backend_row(report, SHUF_ALGORITHM_PHILOX24, "philox24, AVX2, one thread", "cpu:avx2", 1);
    backend_row(report, SHUF_ALGORITHM_PHILOX24, "philox24, best, all threads", "cpu", 0);
    uint32_t *out = malloc(n * sizeof *out);
    if (!out)
        die("out of memory");
    memset(out, 1, n * sizeof *out);
    plain_loop(report, out);
    free(out);
    small_row(report, SHUF_ALGORITHM_PRIMEFOLD, "primefold, AVX-512, launch and wait",
              "cpu:avx512");
    small_row(report, SHUF_ALGORITHM_PRIMEFOLD, "primefold, AVX2, launch and wait", "cpu:avx2");
    small_row(report, SHUF_ALGORITHM_PHILOX24, "philox24, AVX-512, launch and wait", "cpu:avx512");
    small_row(report, SHUF_ALGORITHM_PHILOX24, "philox24, AVX2, launch and wait", "cpu:avx2");
    return report_end(report);
}
