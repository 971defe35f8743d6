/* SPDX-License-Identifier: MIT
 *
 * Arguments that several verbs read in the same way. What is wrong ends the process as argp does:
 * with 64 and one line.
 */
#ifndef SHUF__QUALITY_ARGUMENTS_H
#define SHUF__QUALITY_ARGUMENTS_H

#include "option_parse.h"
#include "option_values.h"

#include <stdbool.h>
#include <stdint.h>

/* What is said to all verbs that judge, whatever they judge. */
struct shuf__judging {
    uint32_t tests; /* bit i: number i of the verb's tests */
    double alpha;
    int threads;
    bool json;
    const char *plot; /* NULL: none */
};

/* Keys of its options, of which a verb takes those that are in its table. */
enum {
    SHUF__KEY_TESTS = 0x200,
    SHUF__KEY_ALPHA,
    SHUF__KEY_THREADS,
    SHUF__KEY_JSON,
    SHUF__KEY_PLOT,
};

/* All tests, 0.001, a thread a core. */
void shuf__judging_init(struct shuf__judging *judging);

/* For a verb's parser: ARGP_ERR_UNKNOWN for any other key; an argument that is no option is
 * refused. `test`: the name of test number i, NULL behind the last. */
error_t shuf__judging_parse(int key, char *text, struct argp_state *state,
                            struct shuf__judging *judging, const char *(*test)(int i));

/* The number, or one of two words (true: `yes`), that an option was given. */
uint64_t shuf__quality_number(struct argp_state *state, const char *field, const char *text,
                              uint64_t least, uint64_t most);
bool shuf__quality_choice(struct argp_state *state, const char *field, const char *text,
                          const char *no, const char *yes);

/* That the file, if it is not "-", can be read; else ends the process with 66. */
void shuf__quality_check_input(struct argp_state *state, const char *path);

/* Appends a name to those that a message lists. */
void shuf__quality_list_name(char *list, size_t size, const char *name);

#endif
