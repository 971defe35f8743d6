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

/* Reads --json FILE from the arguments; ends the program on any other. */
struct report *report_begin(const char *title, int argc, char **argv);

/* A fact about the machine: "device", "driver", ... */
void report_fact(struct report *report, const char *name, const char *value);

/* `samples` durations in nanoseconds of doing `items` items named `unit`, moving `bytes`
 * bytes (0: not said). Sorts the samples. */
void report_add(struct report *report, const char *what, uint64_t n, uint64_t items,
                const char *unit, uint64_t bytes, double *ns, size_t samples);

/* Writes the JSON file; returns the exit code. Frees. */
int report_end(struct report *report);

#ifdef __cplusplus
}
#endif

#endif
