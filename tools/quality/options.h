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
    uint64_t samples; /* the number of rows; 0: it depends on n */
    unsigned first_rounds, last_rounds;
    bool sweep; /* the verb is `rounds`, and the option --rounds was given */
    bool all;
    const char *backend; /* NULL: the tests run on the CPU */
    struct shuf__judging judging;
};

/* Reads the options. As argp does, it exits with 0 after --help. On an error it prints one line and
 * exits with 64. */
void shuf__quality_options(int argc, char **argv, enum shuf__quality_verb verb,
                           struct shuf__quality_options *options);

/* The number of rows for n. */
uint64_t shuf__quality_samples(const struct shuf__quality_options *options, uint32_t n);

#endif
