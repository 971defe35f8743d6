/* SPDX-License-Identifier: MIT
 *
 * The command line of `shufctl shuffle`, read and checked.
 */
#ifndef SHUF__SHUFFLE_OPTIONS_H
#define SHUF__SHUFFLE_OPTIONS_H

#include "daemon_options.h"
#include "shuf.h"

struct shuf__shuffle_options {
    const char *in, *out;
    uint64_t record;   /* 0: the file tells */
    shuf_records what; /* but for n and record */
    struct shuf__daemon_options daemon;
};

/* Ends the process as argp does: 0 after --help, 64 with one line when wrong. */
void shuf__shuffle_options(int argc, char **argv, struct shuf__shuffle_options *options);

#endif
