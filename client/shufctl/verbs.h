/* SPDX-License-Identifier: MIT
 *
 * The verbs of shufctl. Each has one row in main.c, and its own file verb_NAME.c; those of random
 * numbers are all shuf__verb_draw(). The tests parse some of their command lines.
 */
#ifndef SHUF__VERBS_H
#define SHUF__VERBS_H

#include "chunk_list.h"
#include "number_list.h"
#include "shuf.h"
#include "verb_options.h"

#include <stdbool.h>
#include <stddef.h>

/* argv[0] is "shufctl VERB". Each returns the exit code. Wrong options end the process with 64, as
 * argp does, and --help with 0. */
int shuf__verb_bench(int argc, char **argv);
int shuf__verb_doctor(int argc, char **argv);
int shuf__verb_index(int argc, char **argv);
int shuf__verb_draw(int argc, char **argv);
int shuf__verb_drop(int argc, char **argv);
int shuf__verb_leases(int argc, char **argv);
int shuf__verb_metrics(int argc, char **argv);
int shuf__verb_mix(int argc, char **argv);
int shuf__verb_permute(int argc, char **argv);
int shuf__verb_shuffle(int argc, char **argv);
int shuf__verb_status(int argc, char **argv);
int shuf__verb_top(int argc, char **argv);
int shuf__verb_version(int argc, char **argv);

/* ---- Command lines, parsed and checked ---- */

/* Each function ends the process as argp does: 0 after --help, else with one line on a wrong
 * option. */

/* The caller sets request->numbers.distribution only. */
void shuf__draw_options(int argc, char **argv, shuf_request *request,
                        struct shuf__output_options *options);

void shuf__permute_options(int argc, char **argv, shuf_request *request,
                           struct shuf__output_options *options);

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

/* The caller frees options->places.at and options->chunks. */
void shuf__index_options(int argc, char **argv, struct shuf__index_options *options);

struct shuf__shuffle_options {
    const char *in, *out;
    uint64_t record;      /* bytes; 0: from the file */
    shuf_records records; /* without n and record */
    struct shuf__daemon_options daemon;
};

void shuf__shuffle_options(int argc, char **argv, struct shuf__shuffle_options *options);

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

void shuf__mix_options(int argc, char **argv, struct shuf__mix_options *options);

void shuf__mix_options_free(struct shuf__mix_options *options);

#endif
