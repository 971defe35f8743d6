/* SPDX-License-Identifier: MIT
 *
 * Reads and checks the command line of the judging verbs.
 */
#ifndef SHUF__QUALITY_OPTIONS_H
#define SHUF__QUALITY_OPTIONS_H

#include "error.h"
#include "option.h"
#include "run.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- Sizes ---- */

/* The default sizes of `suite`. */
#define SHUF__SIZES_DEFAULT "2:64,100,127:129,255:257,1000,1023:1025,4096,65535:65537"

/* Reads a list of at most `room` numbers, each from `least` to `most`. A:B means all numbers from A
 * to B. */
shuf_status shuf__sizes_parse(const char *field, const char *text, uint32_t least, uint32_t most,
                              uint32_t *sizes, unsigned room, unsigned *count,
                              struct shuf__error *error);

/* The default number of rows for n: enough to show faults, in reasonable time. */
uint64_t shuf__sizes_samples(uint32_t n);

/* ---- Options of several verbs ---- */

/* After a wrong argument the process prints one line and exits with 64, as argp does. */

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
