/* SPDX-License-Identifier: MIT
 *
 * See permute_cpu.h. A hash sum checks that the output of every peer has each value of [0, n) once.
 */
#include "clock.h"
#include "peers/shuffles.h"
#include "permute_cpu.h"
#include "process.h"
#include "python_peer.h"
#include "shuf/philox24.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row takes no further samples after this time. Some peers take a minute for 1e9 values. */
static const double minute_ns = 60e9;

/* ---- numpy ---- */

static void numpy_row(struct report *report, const char *label, uint64_t n, unsigned bytes,
                      const json_t *reply, const char *member)
{
    double *ns;
    size_t samples = python_peer_numbers(reply, member, &ns);
    report_add(report, label, n, n, "values", n * bytes, ns, samples);
    free(ns);
}

void numpy_rows(struct report *report, uint64_t n, unsigned samples)
{
    char n_text[32], samples_text[32];
    snprintf(n_text, sizeof n_text, "%llu", (unsigned long long)n);
    snprintf(samples_text, sizeof samples_text, "%u", samples);
    const char *const arguments[] = {"--n", n_text, "--samples", samples_text, NULL};
    json_t *reply = python_peer_run(report, "numpy_permutation.py", arguments);
    if (!reply)
        return;
    report_fact(report, "numpy", json_string_value(json_object_get(reply, "numpy")));
    numpy_row(report, "numpy Generator.permutation, i64, fresh memory", n, 8, reply,
              "permutation_ns");
    numpy_row(report, "numpy Generator.shuffle, u32", n, 4, reply, "shuffle_ns");
    json_decref(reply);
}

/* ---- In process ---- */

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

/* A sum of hashes: it does not depend on the order of the values, and differs if a value is
 * missing. */
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

void plain_row(struct report *report, uint64_t n)
{
    const struct room room = {touched(n), NULL, n};
    peer_row(report, &room, "philox24, plain scalar loop", plain_loop, 1, 1);
    free(room.values);
}

void shuffle_rows(struct report *report, uint64_t n, unsigned samples)
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
