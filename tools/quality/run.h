/* SPDX-License-Identifier: MIT
 *
 * Lets the rows of one n pass by the tests, on all threads.
 */
#ifndef SHUF__RUN_H
#define SHUF__RUN_H

#include "source.h"

struct shuf__task {
    const struct shuf__origin *origin;
    uint32_t n;
    uint64_t samples; /* rows at most */
    uint32_t tests;   /* bit i: that in row i of the table */
    int threads;
    bool progress; /* on stderr, where that is a terminal */
};

struct shuf__outcome {
    uint64_t rows; /* that were judged */
    double seconds;
    bool interrupted; /* by a signal: shuf__run_catch_signals() */
    bool bad_rows;    /* the run failed because of what was read */
};

#define SHUF__TESTS_ALL UINT32_MAX

/* Adds what the tests find. On failure there is nothing to judge, but for an interrupt, which is
 * no failure. SHUF_INVALID: a row is no permutation. */
shuf_status shuf__run(const struct shuf__task *task, struct shuf__findings *findings,
                      struct shuf__outcome *outcome, struct shuf__error *error);

/* Has SIGINT and SIGTERM end the run that is going on, and those after it at once, so that what
 * was done can be told; a second one ends the process. */
void shuf__run_catch_signals(void);
bool shuf__run_interrupted(void);

#endif
