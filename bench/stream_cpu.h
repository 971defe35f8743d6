/* SPDX-License-Identifier: MIT
 *
 * The parts of bench_stream_cpu.
 */
#ifndef SHUF__BENCH_STREAM_CPU_H
#define SHUF__BENCH_STREAM_CPU_H

#include "report.h"

#include <stdint.h>

enum { SAMPLES_MOST = 99 };

/* Processor time of the calling thread in nanoseconds. */
double thread_ns(void);

/* Adds a row of rates from `samples` durations of drawing n values. */
void rate_row(struct report *report, const char *label, uint64_t n, double *ns, unsigned samples);

/* Rows of numpy, in a separate process. */
void numpy_rows(struct report *report, uint64_t n, unsigned samples);

/* The loops of peers/normals.h. */
void plain_rows(struct report *report, uint64_t n, unsigned samples);

#endif
