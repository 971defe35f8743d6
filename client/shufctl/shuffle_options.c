/* SPDX-License-Identifier: MIT
 *
 * See shuffle_options.h.
 */
#include "shuffle_options.h"

#include "option_parse.h"
#include "option_values.h"
#include "order_options.h"
#include "output_options.h"

#include <argp.h>
#include <sysexits.h>

enum key {
    KEY_IN = 0x100,
    KEY_RECORD,
    KEY_SEED,
    KEY_KEY,
    KEY_EPOCH,
    KEY_ALGORITHM,
    KEY_INVERSE,
    KEY_OUT
};

static const struct argp_option option_table[] = {
    {"in", KEY_IN, "FILE", 0, "The array: an .npy, or raw records with --record (required)", 0},
    {"out", KEY_OUT, "FILE", 0,
     "Write the shuffled array to FILE, which may be the file of --in, or to standard output for - "
     "(required)",
     0},
    SHUF__SEED_OPTIONS(KEY_SEED, KEY_KEY),
    {"record", KEY_RECORD, "BYTES", 0,
     "The size of a raw record, at least 1. Not needed for an .npy: there a record is the elements "
     "of one index of the first dimension",
     1},
    {"epoch", KEY_EPOCH, "E", 0, "Select one of the permutations of the seed or key (default 0)",
     2},
    {"algorithm", KEY_ALGORITHM, SHUF__ALGORITHM_CHOICES, 0, "The algorithm (default primefold)",
     2},
    {"inverse", KEY_INVERSE, NULL, 0, "Undo a shuffle that had the same options: restore the order",
     2},
    {0},
};

struct parse {
    struct shuf__shuffle_options *options;
    bool seed;
};

static void read_record(struct argp_state *state, const char *text, uint64_t *record)
{
    shuf__option_number_in(state, "--record", text, 1, INT64_MAX, record);
}

static void finish_shuffle(struct argp_state *state, const struct parse *parse)
{
    const struct shuf__required required[] = {
        {parse->options->in, "--in rows.npy"},
        {parse->seed || parse->options->records.key, "--seed 7"},
        {parse->options->out, "--out shuffled.npy"},
    };
    shuf__option_require(state, required, sizeof required / sizeof *required);
    shuf__check_seed_options(state, parse->seed, parse->options->records.key);
}

static error_t parse_shuffle_option(int key, char *text, struct argp_state *state)
{
    struct parse *parse = state->input;
    struct shuf__shuffle_options *options = parse->options;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &options->daemon;
        return 0;
    case ARGP_KEY_END:
        finish_shuffle(state, parse);
        return 0;
    case KEY_IN:
        if (!*text)
            shuf__option_fail(state, EX_USAGE, "--in '': expected a file");
        options->in = text;
        return 0;
    case KEY_RECORD:
        read_record(state, text, &options->record);
        return 0;
    case KEY_SEED:
        parse->seed = true;
        shuf__option_number(state, "--seed", text, &options->records.seed);
        return 0;
    case KEY_KEY:
        options->records.key = shuf__key_option(state, text);
        return 0;
    case KEY_EPOCH:
        shuf__option_number(state, "--epoch", text, &options->records.epoch);
        return 0;
    case KEY_ALGORITHM:
        options->records.algorithm = shuf__algorithm_option(state, text);
        return 0;
    case KEY_INVERSE:
        options->records.inverse = true;
        return 0;
    case KEY_OUT:
        shuf__check_out_option(state, text);
        options->out = text;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

void shuf__shuffle_options(int argc, char **argv, struct shuf__shuffle_options *options)
{
    static const struct argp_child children[] = {{&shuf__daemon_argp, 0, NULL, 4}, {0}};
    static const struct argp argp = {
        .children = children,
        .options = option_table,
        .parser = parse_shuffle_option,
        .args_doc = "--in FILE --seed S --out FILE",
        .doc =
            "Shuffles the records of an array by a permutation p: record i of the output is record "
            "p(i) of the input."
            "\vNumbers may be written 1000000, 1e6, 10M or 64Ki: see shufctl help units. p is the "
            "permutation that shufctl permute gives for N = the number of records. The daemon "
            "shuffles the array if it has memory for twice its size; otherwise shufctl moves the "
            "records. With --out -, standard output has only the array; --json then prints the "
            "summary on standard error.\n",
    };
    struct parse parse = {.options = options};
    *options = (struct shuf__shuffle_options){0};
    shuf__options_parse(&argp, argc, argv, &parse);
}
