/* SPDX-License-Identifier: MIT
 *
 * Runs the tests on the rows of one n, on all threads.
 */
#ifndef SHUF__RUN_H
#define SHUF__RUN_H

#include "source.h"

#include <stdbool.h>
#include <stdint.h>

struct shuf__run_options {
    const struct shuf__origin *origin;
    uint32_t n;
    uint64_t samples; /* the most rows to judge */
    uint32_t tests;   /* bit i is set to run the test in row i of the table */
    int threads;
    bool progress; /* on stderr, if it is a terminal */
};

struct shuf__outcome {
    uint64_t rows; /* the number of judged rows */
    double seconds;
    bool interrupted; /* by a signal: shuf__catch_interrupts() */
    bool bad_rows;    /* the run failed because of its input */
};

#define SHUF__TESTS_ALL UINT32_MAX

/* Adds the findings of the tests. A failed run adds none. An interrupted run judges the rows that
 * it has seen. SHUF_INVALID: a row is not a permutation. */
shuf_status shuf__run(const struct shuf__run_options *options, struct shuf__findings *findings,
                      struct shuf__outcome *outcome, struct shuf__error *error);

/* ---- Progress ---- */

/* A progress line on stderr, five times a second. */
struct shuf__quality_progress {
    bool enabled;
    uint32_t n;       /* 0: the line has no n */
    uint64_t all;     /* UINT64_MAX: unknown */
    const char *unit; /* "rows" */
    uint64_t start_ns, shown_ns;
};

/* Starts the clock. The caller has set the first four fields. */
void shuf__quality_progress_start(struct shuf__quality_progress *progress);
void shuf__quality_progress_show(struct shuf__quality_progress *progress, uint64_t done);

/* Clears the line. */
void shuf__quality_progress_end(const struct shuf__quality_progress *progress);

/* Seconds since the start. */
double shuf__quality_progress_seconds(const struct shuf__quality_progress *progress);

#endif
