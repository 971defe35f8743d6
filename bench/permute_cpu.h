/* SPDX-License-Identifier: MIT
 *
 * The parts of bench_permute_cpu.
 */
#ifndef SHUF__BENCH_PERMUTE_CPU_H
#define SHUF__BENCH_PERMUTE_CPU_H

#include "report.h"

#include <stdint.h>

enum { SAMPLES_MOST = 99 };

/* Rows of numpy, in a separate process. Call it before this process has threads. */
void numpy_rows(struct report *report, uint64_t n, unsigned samples);

/* philox24 in a plain loop without the backend. One sample, because it takes a minute. */
void plain_row(struct report *report, uint64_t n);

/* The shuffles of peers/shuffles.h; n < 2^32. */
void shuffle_rows(struct report *report, uint64_t n, unsigned samples);

/* Cost against n on one thread, to FILE.csv and FILE.svg. Returns the exit code. */
int cost_of_sizes(const char *path);

#endif
