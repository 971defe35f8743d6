/* SPDX-License-Identifier: MIT
 *
 * The command line of the verbs that judge, read and checked.
 */
#ifndef SHUF__QUALITY_OPTIONS_H
#define SHUF__QUALITY_OPTIONS_H

#include "run.h"

#include <argp.h>

enum shuf__quality_verb { SHUF__JUDGE = 1, SHUF__SUITE = 2, SHUF__ROUNDS = 4 };

enum { SHUF__SIZES_MAX = 4096 };

struct shuf__quality_options {
    struct shuf__origin origin;
    uint32_t sizes[SHUF__SIZES_MAX]; /* the n's, in the order given */
    unsigned size_count;
    uint64_t samples; /* 0: by n */
    unsigned first_rounds, last_rounds;
    bool sweep; /* --rounds was given to `rounds` */
    uint32_t tests;
    double alpha;
    int threads;
    bool json, all;
    const char *plot; /* NULL: none */
};

/* Ends the process as argp does: 0 after --help, 64 with one line when wrong. */
void shuf__quality_options(int argc, char **argv, enum shuf__quality_verb verb,
                           struct shuf__quality_options *options);

/* How many rows of n there will be. */
uint64_t shuf__quality_samples(const struct shuf__quality_options *options, uint32_t n);

/* The number, the probability, or one of two words (true: `yes`), that an option was given; else
 * as above. */
uint64_t shuf__quality_number(struct argp_state *state, const char *field, const char *text,
                              uint64_t least, uint64_t most);
double shuf__quality_alpha(struct argp_state *state, const char *text);
bool shuf__quality_choice(struct argp_state *state, const char *field, const char *text,
                          const char *no, const char *yes);

/* That the file, if it is not "-", can be read; else ends the process with 66. */
void shuf__quality_check_input(struct argp_state *state, const char *path);

/* Appends a name to those that a message lists. */
void shuf__quality_list_name(char *list, size_t size, const char *name);

#endif
