/* SPDX-License-Identifier: MIT
 *
 * A program of verbs: shufctl and shuf-quality. Its main() is a table and one call.
 */
#ifndef SHUF__PROGRAM_H
#define SHUF__PROGRAM_H

#include <argp.h>

struct shuf__verb {
    const char *name, *help;
    int (*run)(int argc, char **argv); /* argv[0] is "PROGRAM VERB"; the exit code */
};

/* A page of `PROGRAM help NAME`. */
struct shuf__topic {
    const char *name, *help, *text;
};

/* A word that users type instead of a verb or a topic, and the advice that they get. */
struct shuf__other_word {
    const char *word, *advice;
};

struct shuf__program {
    const char *name, *summary, *version;
    const struct shuf__verb *verbs;        /* ends with a row without a name; or NULL */
    const struct shuf__topic *topics;      /* ends with a row without a name; or NULL */
    const struct shuf__other_word *others; /* ends with a row without a word; or NULL */
    const struct argp *global;             /* options that may stand before the verb too, or NULL */
};

/* Finds the verb and runs it. Handles `help`, --help and --version. If the output cannot be
 * written, every verb ends with 74. */
int shuf__program_run(const struct shuf__program *program, int argc, char **argv);

/* Prints a script by which bash, zsh or fish completes the options of a program, from its tables of
 * options (completion.c): `PROGRAM --completion bash` (`shell`). Returns the exit code. If the
 * argument of an option is "one|other", it completes to these values. If it is FILE or PATH, it
 * completes to files.
 */
int shuf__completion_print(const struct shuf__program *program, const char *shell);

#endif
