/* SPDX-License-Identifier: MIT
 *
 * Runs the tests on the rows of one n, on all threads.
 */
#ifndef SHUF__RUN_H
#define SHUF__RUN_H

#include "source.h"

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
    bool interrupted; /* by a signal: shuf__run_catch_signals() */
    bool bad_rows;    /* the run failed because of its input */
};

#define SHUF__TESTS_ALL UINT32_MAX

/* Adds the findings of the tests. A failed run adds none. An interrupted run judges the rows that
 * it has seen. SHUF_INVALID: a row is not a permutation. */
shuf_status shuf__run(const struct shuf__run_options *options, struct shuf__findings *findings,
                      struct shuf__outcome *outcome, struct shuf__error *error);

/* Makes SIGINT and SIGTERM end the current run; later runs then end immediately. So the process can
 * still print a report of the rows that it has seen. A second signal ends the process. */
void shuf__run_catch_signals(void);
bool shuf__run_interrupted(void);

#endif
