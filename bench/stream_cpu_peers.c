/* SPDX-License-Identifier: MIT
 *
 * See stream_cpu.h. The output of each loop is checked: its mean is 0 and its variance is 1 within
 * the sampling error.
 */
#include "peers/normals.h"
#include "process.h"
#include "python_peer.h"
#include "stream_cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numpy ---- */

static void numpy_row(struct report *report, uint64_t n, const json_t *reply, const char *member,
                      const char *label)
{
    double *ns;
    const size_t samples = python_peer_numbers(reply, member, &ns);
    rate_row(report, label, n, ns, (unsigned)samples);
    free(ns);
}

void numpy_rows(struct report *report, uint64_t n, unsigned samples)
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
    const char *const arguments[] = {"--n", n_text, "--samples", samples_text, NULL};
    json_t *reply = python_peer_run(report, "numpy_streams.py", arguments);
    if (!reply)
        return;
    report_fact(report, "numpy", json_string_value(json_object_get(reply, "numpy")));
    report_fact(report, "numpy's words", json_string_value(json_object_get(reply, "words")));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        numpy_row(report, n, reply, rows[i].member, rows[i].label);
    json_decref(reply);
}

/* ---- Plain loops ---- */

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

void plain_rows(struct report *report, uint64_t n, unsigned samples)
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
