/* SPDX-License-Identifier: MIT
 *
 * The parts of bench_stream_cpu.
 */
#ifndef SHUF__BENCH_STREAM_CPU_H
#define SHUF__BENCH_STREAM_CPU_H

#include "report.h"

#include <stdint.h>

enum { SAMPLES_MOST = 99 };

/* What the calling thread has computed for: it stands while others have the core. */
double thread_ns(void);

/* So many durations of drawing n values become a row of rates. */
void rate_row(struct report *report, const char *label, uint64_t n, double *ns, unsigned samples);

/* numpy's, in a process of its own. */
void numpy_rows(struct report *report, uint64_t n, unsigned samples);

/* The loops of peers/normals.h. */
void plain_rows(struct report *report, uint64_t n, unsigned samples);

#endif
