/* SPDX-License-Identifier: MIT
 *
 * See index_options.h.
 */
#include "index_options.h"

#include "algorithm_option.h"
#include "exit.h"
#include "number.h"
#include "option_parse.h"
#include "option_values.h"
#include "request.h"
#include "seed_or_key.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum key {
    KEY_N = 0x100,
    KEY_SEED,
    KEY_KEY,
    KEY_EPOCH,
    KEY_ALGORITHM,
    KEY_AT,
    KEY_INVERSE,
    KEY_OUT,
    KEY_FORMAT,
    KEYS_END,
    KEY_SLICE, /* options of `permute` only */
    KEY_EPOCHS,
    KEY_DTYPE,
};

#define BIT(key) (1U << ((key)-KEY_N))

static const struct argp_option option_table[] = {
    {"n", KEY_N, "N", 0, "Permute the numbers 0 to N - 1 (required)", 0},
    {"at", KEY_AT, "LIST", 0,
     "The positions, as in 0,5,1e8; - reads them from standard input (required)", 0},
    SHUF__SEED_OPTIONS(KEY_SEED, KEY_KEY),
    {"epoch", KEY_EPOCH, "E", 0, "Select one of the permutations of the seed or key (default 0)",
     1},
    {"algorithm", KEY_ALGORITHM, SHUF__ALGORITHM_CHOICES, 0,
     "The algorithm (default primefold); with the others, the first look-up is slow", 1},
    {"inverse", KEY_INVERSE, NULL, 0, "LIST has values; print the position of each", 2},
    {"out", KEY_OUT, "FILE", 0, "Write to FILE instead of standard output", 3},
    {"format", KEY_FORMAT, SHUF__FORMAT_VALUES, 0, SHUF__FORMAT_HELP ", text to standard output",
     3},
    {"offset", KEY_SLICE, "O", OPTION_HIDDEN, NULL, 4},
    {"count", KEY_SLICE, "C", OPTION_HIDDEN, NULL, 4},
    {"stride", KEY_SLICE, "K", OPTION_HIDDEN, NULL, 4},
    {"rank", KEY_SLICE, "R", OPTION_HIDDEN, NULL, 4},
    {"world", KEY_SLICE, "W", OPTION_HIDDEN, NULL, 4},
    {"step", KEY_SLICE, "K", OPTION_HIDDEN, NULL, 4},
    {"drop-last", KEY_SLICE, NULL, OPTION_HIDDEN, NULL, 4},
    {"epochs", KEY_EPOCHS, "A:B", OPTION_HIDDEN, NULL, 4},
    {"dtype", KEY_DTYPE, "TYPE", OPTION_HIDDEN, NULL, 4},
    {0},
};

struct parse {
    struct shuf__index_options *options;
    unsigned given; /* BIT(key) of each option seen */
    int other;      /* a given option that only `permute` has, or 0 */
};

/* ---- Places ------------------------------------------------------------------ */

/* False when out of memory. */
static bool add_place(struct shuf__places *places, uint64_t place)
{
    if (places->count == places->room) {
        size_t room = places->room ? 2 * places->room : 64;
        uint64_t *at = reallocarray(places->at, room, sizeof *at);
        if (!at)
            return false;
        places->at = at;
        places->room = room;
    }
    places->at[places->count++] = place;
    return true;
}

/* Adds one number of a list. `field` names its source in errors. */
static shuf_status add_text(struct shuf__places *places, const char *field, const char *text,
                            struct shuf__error *error)
{
    uint64_t place = 0;
    if (shuf__number_parse(field, text, &place, error))
        return error->status;
    if (!add_place(places, place))
        return shuf__fail(error, SHUF_NO_MEMORY, "%s: out of memory for %zu numbers", field,
                          places->count + 1);
    return SHUF_OK;
}

/* Whether the word looks like 0:5 or 0-5. */
static bool is_range(const char *word)
{
    const size_t digits = strspn(word, "0123456789");
    return digits > 0 && (word[digits] == ':' || word[digits] == '-');
}

static void read_list(struct argp_state *state, char *text, struct shuf__places *places)
{
    struct shuf__error error;
    char *word;
    for (size_t number = 1; (word = strsep(&text, ",")) != NULL; number++) {
        if (!*word)
            shuf__option_fail(
                state, EX_USAGE,
                "--at: number %zu of the list is empty; expected numbers with one comma "
                "between them, as in 0,5,1e8",
                number);
        if (is_range(word))
            shuf__option_fail(
                state, EX_USAGE,
                "--at %.64s: expected numbers with commas between them, as in 0,5,1e8; for "
                "a range: seq 0 4 | shufctl index --at -",
                word);
        if (add_text(places, "--at", word, &error))
            shuf__option_fail(state, shuf__exit_code(error.status), "%s", error.text);
    }
}

static shuf_status add_line(struct shuf__places *places, char *line, size_t length, size_t number,
                            struct shuf__error *error)
{
    static const char blanks[] = " \t\r\n\v\f";
    char field[64], *rest;
    snprintf(field, sizeof field, "--at -, line %zu", number);
    if (strlen(line) != length)
        return shuf__fail(error, SHUF_INVALID, "%s: a byte of 0, expected text", field);
    for (char *word = strtok_r(line, blanks, &rest); word; word = strtok_r(NULL, blanks, &rest))
        if (add_text(places, field, word, error))
            return error->status;
    return SHUF_OK;
}

int shuf__index_read_places(struct shuf__places *places)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    struct shuf__error error = {0};
    errno = 0;
    for (size_t number = 1; !error.status && (length = getline(&line, &room, stdin)) >= 0; number++)
        add_line(places, line, (size_t)length, number, &error);
    int cause = errno;
    free(line);
    if (error.status)
        return shuf__fail_with(shuf__exit_code(error.status), "%s", error.text);
    if (!feof(stdin))
        return shuf__fail_with(EX_IOERR, "--at -: cannot read: %s", strerror(cause));
    return EX_OK;
}

/* ---- Options ----------------------------------------------------------------- */

static void refuse_other(struct argp_state *state, const struct parse *parse)
{
    if (parse->other == KEY_EPOCHS)
        shuf__option_fail(state, EX_USAGE,
                          "--epochs: index takes only one epoch, expected --epoch");
    if (parse->other == KEY_DTYPE)
        shuf__option_fail(state, EX_USAGE, "--dtype: index always gives u64, expected no --dtype");
    if (parse->other == KEY_SLICE && parse->options->direction == SHUF_INVERSE)
        shuf__option_fail(
            state, EX_USAGE,
            "the inverse of a slice is not defined: expected the whole permutation; rank "
            "p %% WORLD has position p, at step p / WORLD");
    if (parse->other == KEY_SLICE)
        shuf__option_fail(
            state, EX_USAGE,
            "positions are those of the whole permutation: expected no slice or shard; "
            "rank R of WORLD has position R + K * WORLD at step K");
}

static void check_index_given(struct argp_state *state, const struct parse *parse)
{
    const struct shuf__index_options *options = parse->options;
    const unsigned given = parse->given;
    const struct shuf__required required[] = {
        {given & BIT(KEY_N), "--n 1e9"},
        {given & (BIT(KEY_SEED) | BIT(KEY_KEY)), "--seed 7"},
        {given & BIT(KEY_AT), "--at 0,5,1e8"},
    };
    refuse_other(state, parse);
    shuf__option_require(state, required, sizeof required / sizeof *required);
    shuf__check_seed_options(state, given & BIT(KEY_SEED), given & BIT(KEY_KEY));
    if (options->read_places && options->places.count > 0)
        shuf__option_fail(state, EX_USAGE, "--at -: excludes other positions");
    if (options->daemon.json && (given & (BIT(KEY_OUT) | BIT(KEY_FORMAT))))
        shuf__option_fail(state, EX_USAGE,
                          "--json: excludes --out and --format; the JSON object has the values");
}

static void finish_index(struct argp_state *state, struct parse *parse)
{
    struct shuf__index_options *options = parse->options;
    check_index_given(state, parse);
    if (!(parse->given & BIT(KEY_FORMAT)))
        options->format = shuf__format_of_file(state, options->out, SHUF__FORMAT_TEXT);
}

static void read_at_option(struct argp_state *state, char *text,
                           struct shuf__index_options *options)
{
    if (strcmp(text, "-") == 0)
        options->read_places = true;
    else
        read_list(state, text, &options->places);
}

static void parse_index_word(int key, char *text, struct argp_state *state,
                             struct shuf__index_options *options)
{
    switch (key) {
    case KEY_N:
        shuf__option_number_in(state, "--n", text, 1, SHUF__N_MAX, &options->permutation.n);
        break;
    case KEY_SEED:
        shuf__option_number(state, "--seed", text, &options->permutation.seed);
        break;
    case KEY_KEY:
        options->permutation.key = shuf__key_option(state, text);
        break;
    case KEY_EPOCH:
        shuf__option_number(state, "--epoch", text, &options->permutation.epoch);
        break;
    case KEY_ALGORITHM:
        options->permutation.algorithm = shuf__algorithm_option(state, text);
        break;
    case KEY_AT:
        read_at_option(state, text, options);
        break;
    case KEY_INVERSE:
        options->direction = SHUF_INVERSE;
        break;
    case KEY_OUT:
        shuf__check_out_option(state, text);
        options->out = text;
        break;
    case KEY_FORMAT:
        options->format = shuf__format_option(state, text);
        break;
    }
}

static error_t parse_index_option(int key, char *text, struct argp_state *state)
{
    struct parse *parse = state->input;
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = &parse->options->daemon;
    if (key == ARGP_KEY_END)
        finish_index(state, parse);
    if (key > KEYS_END && key <= KEY_DTYPE) {
        parse->other = key;
        return 0;
    }
    if (key < KEY_N || key >= KEYS_END)
        return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
    parse->given |= BIT(key);
    parse_index_word(key, text, state, parse->options);
    return 0;
}

void shuf__index_options(int argc, char **argv, struct shuf__index_options *options)
{
    static const struct argp_child children[] = {{&shuf__daemon_argp, 0, NULL, 5}, {0}};
    static const struct argp argp = {
        .children = children,
        .options = option_table,
        .parser = parse_index_option,
        .args_doc = "--n N --seed S --at LIST",
        .doc = "Prints the values at single positions of a permutation, one a line in the order of "
               "LIST; with --inverse, the positions of values. The rest of the permutation is not "
               "computed."
               "\vNumbers may be written 1000000, 1e6, 10M or 64Ki: see shufctl help units. On "
               "standard input, blanks or line ends separate them.\n",
    };
    struct parse parse = {.options = options};
    *options = (struct shuf__index_options){.out = "-"};
    shuf__options_parse(&argp, argc, argv, &parse);
}
