/* SPDX-License-Identifier: MIT
 *
 * The command line of `shufctl mix`, parsed and checked, with the mixture that it describes.
 */
#ifndef SHUF__MIX_OPTIONS_H
#define SHUF__MIX_OPTIONS_H

#include "daemon_options.h"
#include "number_list.h"
#include "output_options.h"
#include "ratios.h"
#include "shuf.h"

#include <stdbool.h>
#include <stddef.h>

/* The weights from a position on. The numerators are whole numbers, as small as possible. */
struct shuf__mix_stage {
    uint64_t first;
    struct shuf__ratios weights;
};

struct shuf__mix_options {
    struct shuf__numbers sizes, epochs, chunk, window; /* one for each source */
    struct shuf__mix_stage *stages;                    /* the first one is --weights */
    size_t stage_count;
    uint64_t seed, block;
    shuf_mixture *mixture;
    int until;                      /* enum shuf__mix_until */
    uint64_t length;                /* positions; SHUF__MIX_ENDLESS: without end */
    uint64_t offset, count, stride; /* inside the length */
    bool counts;
    const char *out; /* NULL: standard output has the table */
    enum shuf__format format;
    struct shuf__daemon_options daemon;
};

enum shuf__mix_until { SHUF__MIX_UNTIL_END, SHUF__MIX_UNTIL_FIRST, SHUF__MIX_UNTIL_ALL };

#define SHUF__MIX_ENDLESS (UINT64_C(1) << 62)

/* Ends the process as argp does: 0 after --help, else with one line on a wrong option. */
void shuf__mix_options(int argc, char **argv, struct shuf__mix_options *options);

void shuf__mix_options_free(struct shuf__mix_options *options);

#endif
