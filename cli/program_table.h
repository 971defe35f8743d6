/* SPDX-License-Identifier: MIT
 *
 * The table of a program of verbs.
 */
#ifndef SHUF__PROGRAM_TABLE_H
#define SHUF__PROGRAM_TABLE_H

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

#endif
