/* SPDX-License-Identifier: MIT
 *
 * How every benchmark reports: samples go in, a table with medians comes out on
 * stdout, and with --json FILE the raw samples with what is needed to read them
 * later: device, date, commit, command.
 */
#ifndef SHUF__BENCH_REPORT_H
#define SHUF__BENCH_REPORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct report;

/* Options of a benchmark besides --json FILE. */
struct report_option {
    const char *name;  /* "--n" */
    const char *value; /* what follows it, "N"; NULL where nothing does */
    const char **text; /* is set to what follows, or to the name */
};

/* Reads the options, up to one whose name is NULL, and --json FILE from the arguments; ends the
 * program on any other. `options` may be NULL: none. */
struct report *report_begin_with(const char *title, const struct report_option *options, int argc,
                                 char **argv);
struct report *report_begin(const char *title, int argc, char **argv);

/* A fact about the machine: "device", "driver", ... */
void report_fact(struct report *report, const char *name, const char *value);

/* `samples` durations in nanoseconds of doing `items` items named `unit`, moving `bytes`
 * bytes (0: not said). Sorts the samples. */
void report_add(struct report *report, const char *label, uint64_t n, uint64_t items,
                const char *unit, uint64_t bytes, double *ns, size_t samples);

/* `samples` durations in nanoseconds, of which the slow ones matter too. Sorts them. Of more than a
 * thousand, the JSON has the percentiles. */
void report_latency(struct report *report, const char *label, uint64_t n, double *ns,
                    size_t samples);

/* `samples` rates in `unit` a second. Sorts them. */
void report_rate(struct report *report, const char *label, uint64_t n, const char *unit,
                 double *rates, size_t samples);

/* One figure. */
void report_value(struct report *report, const char *label, uint64_t n, double value,
                  const char *unit);

/* What a kernel takes: registers of a thread, bytes of local and of shared memory, and the warps
 * that a multiprocessor has at once. */
struct report_taken {
    int registers, local, shared, warps;
};

/* As report_add(), of a kernel. */
void report_kernel(struct report *report, const char *label, uint64_t n, uint64_t items,
                   const char *unit, double *ns, size_t samples, const struct report_taken *taken);

/* A figure next to what it should be and the standard error of that; `spread`: how far parts of
 * what it was made of differ, as a ratio to what that error says. */
void report_expected(struct report *report, const char *label, uint64_t n, double value,
                     double expected, double error, double spread);

/* Writes the JSON file; returns the exit code. Frees. */
int report_end(struct report *report);

#ifdef __cplusplus
}
#endif

#endif
