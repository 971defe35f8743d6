/* SPDX-License-Identifier: MIT
 *
 * The command line of `shufctl shuffle`, parsed and checked.
 */
#ifndef SHUF__SHUFFLE_OPTIONS_H
#define SHUF__SHUFFLE_OPTIONS_H

#include "daemon_options.h"
#include "shuf.h"

struct shuf__shuffle_options {
    const char *in, *out;
    uint64_t record;      /* bytes; 0: from the file */
    shuf_records records; /* without n and record */
    struct shuf__daemon_options daemon;
};

/* Ends the process as argp does: 0 after --help, 64 with one line on a wrong option. */
void shuf__shuffle_options(int argc, char **argv, struct shuf__shuffle_options *options);

#endif
