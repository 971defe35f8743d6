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

struct shuf__program {
    const char *name, *summary, *version;
    const struct shuf__verb *verbs;   /* the last has no name */
    const struct shuf__topic *topics; /* the same, or NULL */
    const struct argp *global;        /* options that may stand before the verb too, or NULL */
};

/* Finds the verb and runs it. Handles `help`, --help and --version. Output that cannot be written
 * ends every verb with 74. */
int shuf__program_run(const struct shuf__program *program, int argc, char **argv);

#endif
