/* SPDX-License-Identifier: MIT
 *
 * `shufctl index`: values at single positions of a permutation, or positions of values.
 */
#include "clock.h"
#include "connect.h"
#include "exit.h"
#include "json.h"
#include "number.h"
#include "option.h"
#include "progress.h"
#include "request.h"
#include "summary.h"
#include "value_file.h"
#include "verb_options.h"
#include "verbs.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum key {
    KEY_N = 0x100,
    KEY_SEED,
    KEY_KEY,
    KEY_EPOCH,
    KEY_ALGORITHM,
    KEY_CHUNK,
    KEY_CHUNKS,
    KEY_WINDOW,
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
    {"chunk", KEY_CHUNK, "S", 0, "The records of a chunk of a windowed order", 1},
    {"chunks", KEY_CHUNKS, "FILE", 0,
     "The sizes of all chunks, .npy or text, without a daemon; instead of --n and --chunk", 1},
    {"window", KEY_WINDOW, "W", 0, "The chunks of a window", 1},
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

/* ---- Places ---- */

/* Adds one number of a list. `field` names its source in errors. */
static shuf_status add_text(struct shuf__numbers *places, const char *field, const char *text,
                            struct shuf__error *error)
{
    uint64_t place = 0;
    if (shuf__number_parse(field, text, &place, error))
        return error->status;
    return shuf__numbers_add(places, field, place, error);
}

/* Whether the word looks like 0:5 or 0-5. */
static bool is_range(const char *word)
{
    const size_t digits = strspn(word, "0123456789");
    return digits > 0 && (word[digits] == ':' || word[digits] == '-');
}

static void add_word(struct argp_state *state, const char *field, const char *word, void *places)
{
    struct shuf__error error;
    if (is_range(word))
        shuf__option_fail(state, EX_USAGE,
                          "%s %.64s: expected numbers with commas between them, as in 0,5,1e8; for "
                          "a range: seq 0 4 | shufctl index --at -",
                          field, word);
    if (add_text(places, field, word, &error))
        shuf__option_fail(state, shuf__exit_code(error.status), "%s", error.text);
}

static shuf_status add_line(struct shuf__numbers *places, char *line, size_t length, size_t number,
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

/* Reads standard input to its end. Returns EX_OK, or prints one line and returns the exit code. */
static int read_places_of_stdin(struct shuf__numbers *places)
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

/* ---- Options ---- */

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
        {given & (BIT(KEY_N) | BIT(KEY_CHUNKS)), "--n 1e9"},
        {given & (BIT(KEY_SEED) | BIT(KEY_KEY)), "--seed 7"},
        {given & BIT(KEY_AT), "--at 0,5,1e8"},
    };
    refuse_other(state, parse);
    shuf__option_require(state, required, sizeof required / sizeof *required);
    shuf__check_seed_options(state, given & BIT(KEY_SEED), given & BIT(KEY_KEY));
    if (given & BIT(KEY_CHUNKS))
        shuf__chunk_list_check(
            state, &(struct shuf__beside_chunks){given & BIT(KEY_N), given & BIT(KEY_CHUNK),
                                                 given & BIT(KEY_KEY), given & BIT(KEY_ALGORITHM),
                                                 given & BIT(KEY_WINDOW)});
    else if (!(given & BIT(KEY_CHUNK)) != !(given & BIT(KEY_WINDOW)))
        shuf__option_fail(state, EX_USAGE,
                          "%s: missing; the other one of --chunk and --window needs it",
                          given & BIT(KEY_CHUNK) ? "--window" : "--chunk");
    if (options->read_places && options->places.count > 0)
        shuf__option_fail(state, EX_USAGE, "--at -: excludes other positions");
    if (options->read_places && options->chunks.path && strcmp(options->chunks.path, "-") == 0)
        shuf__option_fail(state, EX_USAGE,
                          "--chunks -: excludes --at -; expected standard input for one of them");
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
    if (options->chunks.path)
        shuf__chunk_list_read(state, &options->permutation, &options->chunks);
}

static void read_at_option(struct argp_state *state, char *text,
                           struct shuf__index_options *options)
{
    if (strcmp(text, "-") == 0)
        options->read_places = true;
    else
        shuf__option_list(state, "--at", text, "0,5,1e8", add_word, &options->places);
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
    case KEY_CHUNK:
        shuf__option_number(state, "--chunk", text, &options->permutation.chunk);
        break;
    case KEY_CHUNKS:
        options->chunks.path = text;
        break;
    case KEY_WINDOW:
        shuf__option_number(state, "--window", text, &options->permutation.window);
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

/* ---- Values to a file ---- */

static int write_found(const struct shuf__index_options *o, const uint64_t *found)
{
    static struct shuf__value_file file;
    const uint64_t count = o->places.count;
    const shuf_shape shape = {1, count, SHUF_U64, sizeof *found, count * sizeof *found};
    int code = shuf__value_file_open(&file, o->out, o->format, &shape, false);
    if (code != EX_OK)
        return code;
    code = shuf__value_file_write(&file, found, shape.bytes) ? shuf__value_file_commit(&file)
                                                             : shuf__output_failed(&file.output);
    shuf__value_file_close(&file);
    shuf__progress_end();
    return code;
}

/* ---- JSON ---- */

static int print_look_up_json(const struct shuf__index_options *o, const uint64_t *found,
                              uint64_t seen_ns)
{
    shuf__progress_end();
    json_t *object = json_object();
    const bool inverse = o->direction == SHUF_INVERSE;
    json_t *given = shuf__json_array(o->places.at, o->places.count);
    json_t *looked_up = shuf__json_array(found, o->places.count);
    if (o->permutation.algorithm)
        shuf__json_text(object, "algorithm", o->permutation.algorithm);
    shuf__json_integer(object, "n", o->permutation.n);
    shuf__json_seed(object, o->permutation.key, o->permutation.seed);
    shuf__json_decimal(object, "epoch", o->permutation.epoch);
    shuf__json_windows(object, &o->permutation);
    if (o->chunks.path)
        shuf__json_chunks(object, &o->chunks);
    json_object_set_new(object, "inverse", json_boolean(inverse));
    json_object_set_new(object, "positions", inverse ? looked_up : given);
    json_object_set_new(object, "values", inverse ? given : looked_up);
    shuf__json_seconds(object, "total_seconds", seen_ns);
    shuf__json_print(object, stdout);
    return EX_OK;
}

/* ---- The verb ---- */

/* Checks n by a request for a slice of one value, because that has the same limits of n. */
static int check_permutation_n(const shuf_permutation *permutation)
{
    char message[256];
    shuf_shape shape;
    shuf_request one = {.permutation = *permutation};
    one.permutation.view = SHUF_VIEW_SLICE;
    one.permutation.count = one.permutation.stride = 1;
    shuf_status status = shuf_shape_of(&one, &shape, message, sizeof message);
    return status ? shuf__fail_with(shuf__exit_code(status), "%s", message) : EX_OK;
}

/* Checks the positions here, so a wrong one is reported even if no daemon answers. */
static int check_places(const shuf_permutation *permutation, const struct shuf__numbers *places)
{
    int code = check_permutation_n(permutation);
    for (size_t i = 0; i < places->count && code == EX_OK; i++)
        if (places->at[i] >= permutation->n)
            code = shuf__fail_with(EX_USAGE, "at[%zu] %" PRIu64 ": expected less than n = %" PRIu64,
                                   i, places->at[i], permutation->n);
    return code;
}

/* `found` may be the list itself. But --json prints both, so it needs a separate array. */
static int look_up(shuf *daemon, const struct shuf__index_options *o, uint64_t *found)
{
    const struct shuf__numbers *places = &o->places;
    uint64_t begin = shuf__clock_ns();
    shuf__progress_phase("computing", 0);
    shuf_status status =
        o->chunks.path
            ? shuf_chunks_index(o->chunks.order, o->direction, 1, places->at, places->count, found)
            : shuf_index(daemon, &o->permutation, o->direction, places->at, places->count, found);
    uint64_t seen_ns = shuf__clock_ns() - begin;
    if (status != SHUF_OK)
        return shuf__fail_call(daemon, status, &o->daemon);
    return o->daemon.json ? print_look_up_json(o, found, seen_ns) : write_found(o, found);
}

static int index_places(shuf *daemon, const struct shuf__index_options *o)
{
    const struct shuf__numbers *places = &o->places;
    uint64_t *copy = NULL;
    if (o->daemon.json && !(copy = malloc((places->count + 1) * sizeof *copy)))
        return shuf__fail_with(EX_OSERR, "--at: out of memory for %zu numbers", places->count);
    int code = look_up(daemon, o, copy ? copy : places->at);
    free(copy);
    return code;
}

static int index_by_daemon(const struct shuf__index_options *o)
{
    shuf *daemon;
    int code = shuf__connect_or_fail(&daemon, &o->daemon);
    if (code == EX_OK)
        code = index_places(daemon, o);
    shuf_close(daemon);
    return code;
}

int shuf__verb_index(int argc, char **argv)
{
    struct shuf__index_options options;
    shuf__index_options(argc, argv, &options);
    shuf__progress_set_quiet(options.daemon.quiet);
    int code = options.read_places ? read_places_of_stdin(&options.places) : EX_OK;
    if (code == EX_OK)
        code = check_places(&options.permutation, &options.places);
    if (code == EX_OK)
        code = options.chunks.path ? index_places(NULL, &options) : index_by_daemon(&options);
    shuf__chunk_list_free(&options.chunks);
    free(options.places.at);
    return code;
}
