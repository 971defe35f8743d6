/* SPDX-License-Identifier: MIT
 *
 * The report of a benchmark. It prints a table with medians on stdout. With --json FILE it writes
 * the raw samples with device, date, commit and command.
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
    const char *value; /* the argument, "N"; NULL: the option has none */
    const char **text; /* set to the argument or, without one, to the name */
};

/* Reads --json FILE and `options`, which end with a NULL name, from the arguments. Ends the program
 * on any other option. `options` may be NULL. */
struct report *report_begin_with(const char *title, const struct report_option *options, int argc,
                                 char **argv);
struct report *report_begin(const char *title, int argc, char **argv);

/* A fact about the machine: "device", "driver", ... */
void report_fact(struct report *report, const char *name, const char *value);

/* Adds `samples` durations in nanoseconds of `items` items named `unit`, which move `bytes` bytes
 * (0: unknown). Sorts the samples. */
void report_add(struct report *report, const char *label, uint64_t n, uint64_t items,
                const char *unit, uint64_t bytes, double *ns, size_t samples);

/* Adds `samples` durations in nanoseconds whose high percentiles matter. Sorts them. With more than
 * a thousand, the JSON has percentiles instead. */
void report_latency(struct report *report, const char *label, uint64_t n, double *ns,
                    size_t samples);

/* Adds `samples` rates in `unit` a second. Sorts them. */
void report_rate(struct report *report, const char *label, uint64_t n, const char *unit,
                 double *rates, size_t samples);

/* One figure. */
void report_value(struct report *report, const char *label, uint64_t n, double value,
                  const char *unit);

/* The resources of a kernel: registers of a thread, bytes of local and of shared memory, and
 * resident warps of a multiprocessor. */
struct report_resources {
    int registers, local, shared, warps;
};

/* As report_add(), for a kernel. */
void report_kernel(struct report *report, const char *label, uint64_t n, uint64_t items,
                   const char *unit, double *ns, size_t samples,
                   const struct report_resources *resources);

/* Adds a figure with its expected value and its standard error. The figure is a mean of several
 * partial figures. `spread` is the ratio of two standard deviations of a partial figure: the
 * measured one, and the one that follows from `error`. */
void report_expected(struct report *report, const char *label, uint64_t n, double value,
                     double expected, double error, double spread);

/* Writes the JSON file and frees `report`. Returns the exit code. */
int report_end(struct report *report);

#ifdef __cplusplus
}
#endif

#endif
