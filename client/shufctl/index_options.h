/* SPDX-License-Identifier: MIT
 *
 * The command line of `shufctl index`, read and checked, and the places that it
 * names or that standard input does.
 */
#ifndef SHUF__INDEX_OPTIONS_H
#define SHUF__INDEX_OPTIONS_H

#include "daemon_options.h"
#include "order.h"
#include "shuf.h"

#include <stdbool.h>
#include <stddef.h>

/* Positions, or values. */
struct shuf__places {
    uint64_t *at;
    size_t count, room;
};

struct shuf__index_options {
    shuf_permutation what;
    shuf_direction direction;
    struct shuf__places places;
    bool read_places; /* --at -: standard input has them */
    const char *out;  /* never NULL */
    enum shuf__format format;
    struct shuf__daemon_options daemon;
};

/* Ends the process as argp does: 0 after --help, 64 with one line when wrong. */
void shuf__index_options(int argc, char **argv, struct shuf__index_options *options);

/* Takes the places from standard input, to its end; 0, or the exit code after a line. */
int shuf__index_read_places(struct shuf__places *places);

#endif
