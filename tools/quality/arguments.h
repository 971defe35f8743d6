/* SPDX-License-Identifier: MIT
 *
 * Arguments that several verbs read in the same way. After a wrong argument the process prints one
 * line and exits with 64, as it does for errors of argp.
 */
#ifndef SHUF__QUALITY_ARGUMENTS_H
#define SHUF__QUALITY_ARGUMENTS_H

#include "option_parse.h"
#include "option_values.h"

#include <stdbool.h>
#include <stdint.h>

/* The options that all judging verbs share. */
struct shuf__judging {
    uint32_t tests; /* bit i: number i of the verb's tests */
    double alpha;
    int threads;
    bool json;
    const char *plot; /* NULL: none */
};

/* Keys of these options. A verb takes the ones in its table. */
enum {
    SHUF__KEY_TESTS = 0x200,
    SHUF__KEY_ALPHA,
    SHUF__KEY_THREADS,
    SHUF__KEY_JSON,
    SHUF__KEY_PLOT,
};

/* Sets the defaults: all tests, alpha 0.001, a thread for each core. */
void shuf__judging_init(struct shuf__judging *judging);

/* A verb's parser calls this for the keys above. Returns ARGP_ERR_UNKNOWN for any other key, and
 * refuses arguments that are not options. `test` returns the name of test number i, or NULL after
 * the last. */
error_t shuf__judging_parse(int key, char *text, struct argp_state *state,
                            struct shuf__judging *judging, const char *(*test)(int i));

/* Read the argument of an option: a number, or one of two words. The second returns true for the
 * word `yes`. */
uint64_t shuf__quality_number(struct argp_state *state, const char *field, const char *text,
                              uint64_t least, uint64_t most);
bool shuf__quality_choice(struct argp_state *state, const char *field, const char *text,
                          const char *no, const char *yes);

/* Checks that the file can be read, unless it is "-". Ends the process with 66 if not. */
void shuf__quality_check_input(struct argp_state *state, const char *path);

/* Appends a name to the list of a message. */
void shuf__quality_list_name(char *list, size_t size, const char *name);

#endif
