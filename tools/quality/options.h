/* SPDX-License-Identifier: MIT
 *
 * The command line of the verbs that judge, read and checked.
 */
#ifndef SHUF__QUALITY_OPTIONS_H
#define SHUF__QUALITY_OPTIONS_H

#include "arguments.h"
#include "run.h"

enum shuf__quality_verb { SHUF__JUDGE = 1, SHUF__SUITE = 2, SHUF__ROUNDS = 4 };

enum { SHUF__SIZES_MAX = 4096 };

struct shuf__quality_options {
    struct shuf__origin origin;
    uint32_t sizes[SHUF__SIZES_MAX]; /* the n's, in the order given */
    unsigned size_count;
    uint64_t samples; /* 0: by n */
    unsigned first_rounds, last_rounds;
    bool sweep; /* --rounds was given to `rounds` */
    bool all;
    const char *backend; /* NULL: the tests' own code, on the CPU */
    struct shuf__judging judging;
};

/* Ends the process as argp does: 0 after --help, 64 with one line when wrong. */
void shuf__quality_options(int argc, char **argv, enum shuf__quality_verb verb,
                           struct shuf__quality_options *options);

/* How many rows of n there will be. */
uint64_t shuf__quality_samples(const struct shuf__quality_options *options, uint32_t n);

#endif
