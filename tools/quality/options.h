/* SPDX-License-Identifier: MIT
 *
 * Reads and checks the command line of the judging verbs.
 */
#ifndef SHUF__QUALITY_OPTIONS_H
#define SHUF__QUALITY_OPTIONS_H

#include "arguments.h"
#include "run.h"

enum shuf__quality_verb { SHUF__JUDGE = 1, SHUF__SUITE = 2, SHUF__ROUNDS = 4 };

enum { SHUF__SIZES_MAX = 4096 };

struct shuf__quality_options {
    struct shuf__origin origin;
    uint32_t sizes[SHUF__SIZES_MAX]; /* the sizes n, in their order on the command line */
    unsigned size_count;
    uint64_t samples; /* 0: depends on n */
    unsigned first_rounds, last_rounds;
    bool sweep; /* verb `rounds` has the option --rounds */
    bool all;
    const char *backend; /* NULL: the tests' own code, on the CPU */
    struct shuf__judging judging;
};

/* Ends the process as argp does: with 0 after --help, with 64 and one line on an error. */
void shuf__quality_options(int argc, char **argv, enum shuf__quality_verb verb,
                           struct shuf__quality_options *options);

/* The number of rows for n. */
uint64_t shuf__quality_samples(const struct shuf__quality_options *options, uint32_t n);

#endif
