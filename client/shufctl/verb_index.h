/* SPDX-License-Identifier: MIT
 *
 * The command line of `shufctl index`, parsed and checked, and the list of positions or values from
 * the command line or standard input.
 */
#ifndef SHUF__VERB_INDEX_H
#define SHUF__VERB_INDEX_H

#include "chunk_list.h"
#include "daemon_options.h"
#include "number_list.h"
#include "output_options.h"
#include "shuf.h"

#include <stdbool.h>

struct shuf__index_options {
    shuf_permutation permutation;
    shuf_direction direction;
    struct shuf__numbers places;    /* with --inverse, values */
    bool read_places;               /* --at -: from standard input */
    struct shuf__chunk_list chunks; /* of --chunks, if its path is not NULL */
    const char *out;                /* never NULL */
    enum shuf__format format;
    struct shuf__daemon_options daemon;
};

/* Ends the process as argp does: 0 after --help, 64 with one line on a wrong option. The caller
 * frees options->places.at and options->chunks. */
void shuf__index_options(int argc, char **argv, struct shuf__index_options *options);

/* Reads standard input to its end. Returns EX_OK, or prints one line and returns the exit code. */
int shuf__index_read_places(struct shuf__numbers *places);

#endif
