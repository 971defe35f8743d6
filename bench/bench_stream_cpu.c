/* SPDX-License-Identifier: MIT
 *
 * Streams on the CPU: the rate in values a second of each distribution and type, for every
 * instruction set on one thread and for the best one on all threads. Peers are plain loops and
 * numpy. The program touches the memory and checks the values before it starts the clock. Rows of
 * one thread use the CPU time of the thread, so other work on the core does not count. Rows of all
 * threads use the wall clock.
 */
#include "backend.h"
#include "process.h"
#include "processor.h"
#include "python_peer.h"
#include "report.h"
#include "stream_check.h"
#include "timed.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES_MOST = 99 };

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

/* Processor time of the calling thread in nanoseconds. */
static double thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Adds a row of rates from `samples` durations of drawing n values. */
static void rate_row(struct report *report, const char *label, uint64_t n, double *ns,
                     unsigned samples)
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

/* ---- NumPy ---- */

static void numpy_row(struct report *report, uint64_t n, const json_t *reply, const char *member,
                      const char *label)
{
    double *ns;
    const size_t samples = python_peer_numbers(reply, member, &ns);
    rate_row(report, label, n, ns, (unsigned)samples);
    free(ns);
}

/* Rows of numpy, in a separate process. */
static void numpy_rows(struct report *report, uint64_t n, unsigned samples)
{
    static const struct {
        const char *member, *label;
    } rows[] = {
        {"normal_f64_ns", "numpy standard_normal f64 (ziggurat)"},
        {"normal_f32_ns", "numpy standard_normal f32 (ziggurat)"},
        {"random_f64_ns", "numpy random f64"},
        {"random_f32_ns", "numpy random f32"},
        {"integers_u32_ns", "numpy integers u32, fresh memory"},
        {"integers_u64_ns", "numpy integers u64, fresh memory"},
    };
    char n_text[32], samples_text[32];
    snprintf(n_text, sizeof n_text, "%llu", (unsigned long long)n);
    snprintf(samples_text, sizeof samples_text, "%u", samples);
    const char *const arguments[] = {"streams", "--n", n_text, "--samples", samples_text, NULL};
    json_t *reply = python_peer_run(report, "numpy_peers.py", arguments);
    if (!reply)
        return;
    report_fact(report, "numpy", json_string_value(json_object_get(reply, "numpy")));
    report_fact(report, "numpy's words", json_string_value(json_object_get(reply, "words")));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        numpy_row(report, n, reply, rows[i].member, rows[i].label);
    json_decref(reply);
}

/* ---- Plain loops ---- */

/* Normal values as a user would write them: one thread, one value at a time, with the functions of
 * libm and words of SplitMix64, whose time is negligible. Their mean must be 0 and their variance 1
 * within the sampling error. */

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* A number in (0, 1], so its logarithm is finite. */
static double unit_f64(uint64_t *state)
{
    return (double)((splitmix64(state) >> 11) + 1) * 0x1p-53;
}

static void peer_box_muller_f64(double *out, uint64_t n, uint64_t seed)
{
    uint64_t state = seed;
    for (uint64_t i = 0; i < n; i += 2) {
        const double radius = sqrt(-2 * log(unit_f64(&state)));
        const double angle = 2 * M_PI * unit_f64(&state);
        out[i] = radius * cos(angle);
        if (i + 1 < n)
            out[i + 1] = radius * sin(angle);
    }
}

static void peer_box_muller_f32(float *out, uint64_t n, uint64_t seed)
{
    uint64_t state = seed;
    for (uint64_t i = 0; i < n; i += 2) {
        const uint64_t word = splitmix64(&state);
        const float u = (float)((word >> 40) + 1) * 0x1p-24f;
        const float radius = sqrtf(-2 * logf(u));
        const float angle = (float)(2 * M_PI) * ((float)(word & 0xffffff) * 0x1p-24f);
        out[i] = radius * cosf(angle);
        if (i + 1 < n)
            out[i + 1] = radius * sinf(angle);
    }
}

/* Marsaglia's polar method: it needs no sine, but rejects about a fifth of the pairs. */
/* Marsaglia's polar method: it needs no sine, but rejects about a fifth of the pairs. */
static void peer_polar_f64(double *out, uint64_t n, uint64_t seed)
{
    uint64_t state = seed;
    for (uint64_t i = 0; i < n; i += 2) {
        double x, y, square;
        do {
            x = 2 * unit_f64(&state) - 1;
            y = 2 * unit_f64(&state) - 1;
            square = x * x + y * y;
        } while (square >= 1 || square == 0);
        const double factor = sqrt(-2 * log(square) / square);
        out[i] = x * factor;
        if (i + 1 < n)
            out[i + 1] = y * factor;
    }
}

static void check(const char *label, double sum, double squares, uint64_t n)
{
    const double root = sqrt((double)n), mean = sum / root,
                 spread = (squares - (double)n) / (root * sqrt(2));
    if (!(fabs(mean) < 6 && fabs(spread) < 6))
        die("%s: mean %g and variance %g standard errors off", label, mean, spread);
}

#define PLAIN_ROW(name, type)                                                                  \
    static void row_##name(struct report *report, const char *label, void *memory, uint64_t n, \
                           unsigned samples)                                                   \
    {                                                                                          \
        type *const values = memory;                                                           \
        double ns[SAMPLES_MOST], sum = 0, squares = 0;                                         \
        for (unsigned i = 0; i < samples; i++) {                                               \
            const double start = thread_ns();                                                  \
            peer_##name(values, n, 7);                                                         \
            ns[i] = thread_ns() - start;                                                       \
        }                                                                                      \
        for (uint64_t i = 0; i < n; i++) {                                                     \
            sum += (double)values[i];                                                          \
            squares += (double)values[i] * (double)values[i];                                  \
        }                                                                                      \
        check(label, sum, squares, n);                                                         \
        rate_row(report, label, n, ns, samples);                                               \
    }

PLAIN_ROW(box_muller_f64, double)
PLAIN_ROW(box_muller_f32, float)
PLAIN_ROW(polar_f64, double)

static void plain_rows(struct report *report, uint64_t n, unsigned samples)
{
    double *memory = malloc(n * sizeof *memory);
    if (!memory)
        die("out of memory: cannot allocate %llu values", (unsigned long long)n);
    memset(memory, 1, n * sizeof *memory);
    row_box_muller_f64(report, "Box-Muller, libm, SplitMix64, f64", memory, n, samples);
    row_box_muller_f32(report, "Box-Muller, libm, SplitMix64, f32", memory, n, samples);
    row_polar_f64(report, "polar method, libm, SplitMix64, f64", memory, n, samples);
    free(memory);
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
