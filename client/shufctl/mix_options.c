/* SPDX-License-Identifier: MIT
 *
 * The command line of `shufctl mix`, with the mixture that it describes (verbs.h).
 * client/python/src/shufd/_mixture.py has the same arguments.
 */
#include "exit.h"
#include "option.h"
#include "verbs.h"

#include <argp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    BLOCK_DEFAULT = 4096,
    BLOCK_MOST = 1 << 20,
    JSON_PLACES_MOST = 1000000, /* they are in memory, with some hundred bytes each */
};

enum key {
    KEY_SIZES = 0x100,
    KEY_SEED,
    KEY_WEIGHTS,
    KEY_STAGE,
    KEY_EPOCHS,
    KEY_CHUNK,
    KEY_WINDOW,
    KEY_BLOCK,
    KEY_UNTIL,
    KEY_OFFSET,
    KEY_COUNT,
    KEY_STRIDE,
    KEY_COUNTS,
    KEY_OUT,
    KEY_FORMAT,
    KEYS_END,
    KEY_EPOCH, /* of permutations only */
};

#define BIT(key) (1U << ((key)-KEY_SIZES))

static const struct argp_option option_table[] = {
    {"sizes", KEY_SIZES, "LIST", 0, "The records of each source, as in 8e9,2e6,5e5 (required)", 0},
    {"seed", KEY_SEED, "S", 0, "The seed, any number below 2^64 (required)", 0},
    {"weights", KEY_WEIGHTS, "LIST", 0,
     "The share of each source among the positions, as in 0.7,0.2,0.1 or 2/3,1/3,0 (default: the "
     "sizes)",
     1},
    {"stage", KEY_STAGE, "POSITION:LIST", 0,
     "Other weights from POSITION on; the option may occur several times", 1},
    {"epochs", KEY_EPOCHS, "LIST", 0,
     "Each source ends after so many epochs, 0: never (default); one number is that of all sources",
     1},
    {"chunk", KEY_CHUNK, "LIST", 0,
     "The records of a chunk of each source in a windowed order, 0: uniform (default)", 1},
    {"window", KEY_WINDOW, "LIST", 0, "The chunks of a window of each source", 1},
    {"block", KEY_BLOCK, "B", 0,
     "The shares are exact after each B positions, and the order inside is random (default 4096)",
     1},
    {"until", KEY_UNTIL, "first-exhausted|all-exhausted", 0,
     "End when each record of one source, or of all sources, was there", 2},
    {"offset", KEY_OFFSET, "P", 0, "Start at position P (default 0)", 2},
    {"count", KEY_COUNT, "C", 0, "Give C places (default: all to the end)", 2},
    {"stride", KEY_STRIDE, "K", 0, "Give each K-th place only (default 1)", 2},
    {"counts", KEY_COUNTS, NULL, 0,
     "Print how many records of each source stand before position P + C", 3},
    {"out", KEY_OUT, "FILE", 0,
     "Write indices of the records of all sources, one after the other, to FILE, or for - to "
     "standard output",
     4},
    {"format", KEY_FORMAT, SHUF__FORMAT_VALUES, 0, SHUF__FORMAT_HELP, 4},
    {"epoch", KEY_EPOCH, "E", OPTION_HIDDEN, NULL, 4},
    {0},
};

struct parse {
    struct shuf__mix_options *options;
    unsigned given; /* BIT(key) of each option seen */
};

static void check_status(struct argp_state *state, shuf_status status, const char *message)
{
    if (status)
        shuf__option_fail(state, shuf__exit_code(status), "%s", message);
}

/* ---- Lists of whole numbers ---- */

static void add_to(struct argp_state *state, const char *field, uint64_t number,
                   struct shuf__numbers *numbers)
{
    struct shuf__error error;
    check_status(state, shuf__numbers_add(numbers, field, number, &error), error.text);
}

static void add_number(struct argp_state *state, const char *field, const char *word, void *numbers)
{
    uint64_t number = 0;
    shuf__option_number_in(state, field, word, 0, SHUF__MIX_ENDLESS, &number);
    add_to(state, field, number, numbers);
}

static void add_size(struct argp_state *state, const char *field, const char *word, void *sizes)
{
    uint64_t size = 0;
    shuf__option_number_in(state, field, word, 1, SHUF__MIX_ENDLESS, &size);
    add_to(state, field, size, sizes);
}

static void check_one_for_each(struct argp_state *state, const char *field, size_t given,
                               size_t sources)
{
    if (given != sources)
        shuf__option_fail(state, EX_USAGE, "%s: %zu of them, expected %zu, one for each source",
                          field, given, sources);
}

/* Gives each source the same number if there is one, and 0 if there is none. */
static void complete_list(struct argp_state *state, const char *field,
                          struct shuf__numbers *numbers, size_t sources)
{
    const uint64_t of_all = numbers->count ? numbers->at[0] : 0;
    if (numbers->count <= 1)
        while (numbers->count < sources)
            add_to(state, field, of_all, numbers);
    check_one_for_each(state, field, numbers->count, sources);
}

/* ---- Weights ---- */

static void add_weight(struct argp_state *state, const char *field, const char *word, void *weights)
{
    struct shuf__error error;
    check_status(state, shuf__ratios_add(weights, field, word, &error), error.text);
}

static void finish_weights(struct argp_state *state, const char *field,
                           struct shuf__ratios *weights)
{
    bool positive = false;
    for (size_t i = 0; i < weights->numerators.count; i++)
        positive |= weights->numerators.at[i] > 0;
    if (!positive)
        shuf__option_fail(state, EX_USAGE, "%s: all weights are 0, expected one above 0", field);
    if (!shuf__ratios_make_whole(weights))
        shuf__option_fail(state, EX_USAGE,
                          "%s: as whole numbers, the weights have a sum of 2^61 or more, expected "
                          "less; round them to fewer digits",
                          field);
}

static void read_weights(struct argp_state *state, char *text, struct shuf__ratios *weights)
{
    weights->numerators.count = weights->denominators.count = 0;
    shuf__option_list(state, "--weights", text, "0.7,0.2,0.1", add_weight, weights);
    finish_weights(state, "--weights", weights);
}

/* Without --weights: the sizes. */
static void set_weights(struct argp_state *state, const struct shuf__numbers *sizes,
                        struct shuf__ratios *weights)
{
    for (size_t i = 0; i < sizes->count; i++) {
        add_to(state, "--sizes", sizes->at[i], &weights->numerators);
        add_to(state, "--sizes", 1, &weights->denominators);
    }
    if (!shuf__ratios_make_whole(weights))
        shuf__option_fail(state, EX_USAGE,
                          "--weights: missing; the sizes cannot be the weights, because their sum "
                          "is 2^61 or more");
}

/* Adds a stage without weights. */
static struct shuf__mix_stage *new_stage(struct argp_state *state, const char *field,
                                         struct shuf__mix_options *options)
{
    struct shuf__mix_stage *stages =
        reallocarray(options->stages, options->stage_count + 1, sizeof *stages);
    if (!stages)
        shuf__option_fail(state, EX_OSERR, "%s: out of memory", field);
    options->stages = stages;
    stages[options->stage_count] = (struct shuf__mix_stage){0};
    return &stages[options->stage_count++];
}

static void read_stage(struct argp_state *state, char *text, struct shuf__mix_options *options)
{
    char field[64];
    char *colon = strchr(text, ':');
    if (!colon)
        shuf__option_fail(state, EX_USAGE,
                          "--stage %.64s: expected a position and the weights from there on, as in "
                          "1e6:0.5,0.3,0.2",
                          *text ? text : "''");
    *colon = '\0';
    struct shuf__mix_stage *stage = new_stage(state, "--stage", options);
    shuf__option_number_in(state, "--stage", text, 1, SHUF__MIX_ENDLESS - 1, &stage->first);
    snprintf(field, sizeof field, "--stage %" PRIu64, stage->first);
    shuf__option_list(state, field, colon + 1, "1e6:0.5,0.3,0.2", add_weight, &stage->weights);
    finish_weights(state, field, &stage->weights);
}

/* ---- The mixture ---- */

static void make_mixture(struct argp_state *state, struct shuf__mix_options *o)
{
    const size_t sources = o->sizes.count;
    shuf_source *source = calloc(sources, sizeof *source);
    shuf_stage *stages = calloc(o->stage_count, sizeof *stages);
    if (!source || !stages)
        shuf__option_fail(state, EX_OSERR, "--sizes: out of memory for %zu sources", sources);
    for (size_t i = 0; i < sources; i++)
        source[i] = (shuf_source){o->sizes.at[i], o->epochs.at[i], o->chunk.at[i], o->window.at[i]};
    for (size_t s = 0; s < o->stage_count; s++)
        stages[s] = (shuf_stage){o->stages[s].first, o->stages[s].weights.numerators.at};
    const shuf_mixture_request request = {.seed = o->seed,
                                          .block = o->block,
                                          .sources = source,
                                          .source_count = sources,
                                          .stages = stages,
                                          .stage_count = o->stage_count};
    const shuf_status status = shuf_mixture_make(&request, &o->mixture);
    free(source);
    free(stages);
    check_status(state, status, shuf_message(NULL));
}

static const char *const until_names[] = {
    [SHUF__MIX_UNTIL_FIRST] = "first-exhausted", [SHUF__MIX_UNTIL_ALL] = "all-exhausted", NULL};

/* The length of a mixture that stops when the first source, or when all sources are exhausted. */
static void set_length(struct argp_state *state, struct shuf__mix_options *o)
{
    const size_t sources = o->sizes.count;
    const bool all = o->until == SHUF__MIX_UNTIL_ALL;
    size_t found = 0;
    o->length = shuf_mixture_length(o->mixture);
    if (o->until == SHUF__MIX_UNTIL_END)
        return;
    uint64_t *positions = malloc(sources * sizeof *positions);
    if (!positions)
        shuf__option_fail(state, EX_OSERR, "--until: out of memory for %zu sources", sources);
    shuf_mixture_exhausted(o->mixture, positions);
    for (size_t i = 1; i < sources; i++)
        if (all ? positions[i] > positions[found] : positions[i] < positions[found])
            found = i;
    const uint64_t position = positions[found];
    free(positions);
    if (position > o->length)
        shuf__option_fail(state, EX_USAGE,
                          "--until %s: the mixture never has all records of source %zu",
                          until_names[o->until], found);
    o->length = position;
}

/* ---- The range of positions ---- */

static void check_range(struct argp_state *state, struct shuf__mix_options *o, bool has_count)
{
    if (o->offset > o->length)
        shuf__option_fail(state, EX_USAGE,
                          "--offset %" PRIu64 ": expected at most %" PRIu64
                          ", where the mixture ends",
                          o->offset, o->length);
    if (!has_count && o->length == SHUF__MIX_ENDLESS)
        shuf__option_fail(
            state, EX_USAGE,
            "--count: missing; the mixture has no end: expected it, as in --count 20, "
            "or --until or --epochs");
    const uint64_t left = o->length - o->offset, most = left ? (left - 1) / o->stride + 1 : 0;
    if (!has_count)
        o->count = most;
    if (o->count > most)
        shuf__option_fail(state, EX_USAGE,
                          "--count %" PRIu64 ": expected at most %" PRIu64
                          ", because the mixture ends at position %" PRIu64,
                          o->count, most, o->length);
}

/* ---- Options that exclude each other ---- */

static void check_given(struct argp_state *state, const struct shuf__mix_options *o, unsigned given)
{
    const struct shuf__required required[] = {
        {given & BIT(KEY_SIZES), "--sizes 8e9,2e6"},
        {given & BIT(KEY_SEED), "--seed 7"},
    };
    shuf__option_require(state, required, sizeof required / sizeof *required);
    if (o->sizes.count > SHUF_SOURCES_MOST)
        shuf__option_fail(state, EX_USAGE, "--sizes: %zu of them, expected at most %d",
                          o->sizes.count, SHUF_SOURCES_MOST);
    if (!(given & BIT(KEY_CHUNK)) != !(given & BIT(KEY_WINDOW)))
        shuf__option_fail(state, EX_USAGE, "%s: missing; %s needs it",
                          given & BIT(KEY_CHUNK) ? "--window" : "--chunk",
                          given & BIT(KEY_CHUNK) ? "--chunk" : "--window");
    if (o->counts && (given & BIT(KEY_STRIDE)))
        shuf__option_refuse_both(state, "--counts", "--stride");
    if (o->counts && o->out)
        shuf__option_refuse_both(state, "--counts", "--out");
    if ((given & BIT(KEY_FORMAT)) && !o->out)
        shuf__option_fail(state, EX_USAGE, "--format: nothing is written; expected --out FILE too");
}

static void complete_sources(struct argp_state *state, struct shuf__mix_options *o, unsigned given)
{
    const size_t sources = o->sizes.count;
    complete_list(state, "--epochs", &o->epochs, sources);
    complete_list(state, "--chunk", &o->chunk, sources);
    complete_list(state, "--window", &o->window, sources);
    if (!(given & BIT(KEY_WEIGHTS)))
        set_weights(state, &o->sizes, &o->stages[0].weights);
    check_one_for_each(state, "--weights", o->stages[0].weights.numerators.count, sources);
    for (size_t s = 1; s < o->stage_count; s++) {
        char field[64];
        snprintf(field, sizeof field, "--stage %" PRIu64, o->stages[s].first);
        check_one_for_each(state, field, o->stages[s].weights.numerators.count, sources);
    }
}

static void finish_mix(struct argp_state *state, struct parse *parse)
{
    struct shuf__mix_options *o = parse->options;
    const unsigned given = parse->given;
    check_given(state, o, given);
    complete_sources(state, o, given);
    make_mixture(state, o);
    set_length(state, o);
    check_range(state, o, given & BIT(KEY_COUNT));
    if (o->out && o->count >= UINT64_C(1) << 60)
        shuf__option_fail(state, EX_USAGE,
                          "--count %" PRIu64 ": so many indices pass 2^63 bytes, expected fewer",
                          o->count);
    if (o->out && !(given & BIT(KEY_FORMAT)))
        o->format = shuf__format_of_file(state, o->out, SHUF__FORMAT_RAW);
    if (o->daemon.json && !o->out && !o->counts && o->count > JSON_PLACES_MOST)
        shuf__option_fail(state, EX_USAGE,
                          "--json: %" PRIu64 " places, expected at most %d; use a smaller "
                          "--count, or --out FILE",
                          o->count, JSON_PLACES_MOST);
}

/* ---- The parser ---- */

static void read_list(struct argp_state *state, const char *field, char *text, const char *example,
                      struct shuf__numbers *numbers)
{
    numbers->count = 0;
    shuf__option_list(state, field, text, example, add_number, numbers);
}

static void parse_mixture_word(int key, char *text, struct argp_state *state,
                               struct shuf__mix_options *o)
{
    switch (key) {
    case KEY_SIZES:
        o->sizes.count = 0;
        shuf__option_list(state, "--sizes", text, "8e9,2e6,5e5", add_size, &o->sizes);
        break;
    case KEY_SEED:
        shuf__option_number(state, "--seed", text, &o->seed);
        break;
    case KEY_WEIGHTS:
        read_weights(state, text, &o->stages[0].weights);
        break;
    case KEY_STAGE:
        read_stage(state, text, o);
        break;
    case KEY_EPOCHS:
        read_list(state, "--epochs", text, "1,0,3", &o->epochs);
        break;
    case KEY_CHUNK:
        read_list(state, "--chunk", text, "1000,0,64", &o->chunk);
        break;
    case KEY_WINDOW:
        read_list(state, "--window", text, "64,0,8", &o->window);
        break;
    case KEY_BLOCK:
        shuf__option_number_in(state, "--block", text, 1, BLOCK_MOST, &o->block);
        break;
    }
}

static void parse_output_word(int key, const char *text, struct argp_state *state,
                              struct shuf__mix_options *o)
{
    switch (key) {
    case KEY_UNTIL:
        o->until = SHUF__MIX_UNTIL_FIRST + shuf__option_choice(state, "--until", text,
                                                               until_names + SHUF__MIX_UNTIL_FIRST,
                                                               "first-exhausted or all-exhausted");
        break;
    case KEY_OFFSET:
        shuf__option_number(state, "--offset", text, &o->offset);
        break;
    case KEY_COUNT:
        shuf__option_number_in(state, "--count", text, 1, SHUF__MIX_ENDLESS, &o->count);
        break;
    case KEY_STRIDE:
        shuf__option_number_in(state, "--stride", text, 1, SHUF__MIX_ENDLESS, &o->stride);
        break;
    case KEY_COUNTS:
        o->counts = true;
        break;
    case KEY_OUT:
        shuf__check_out_option(state, text);
        o->out = text;
        break;
    case KEY_FORMAT:
        o->format = shuf__format_option(state, text);
        break;
    }
}

static error_t parse_mix_option(int key, char *text, struct argp_state *state)
{
    struct parse *parse = state->input;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = &parse->options->daemon;
        new_stage(state, "--weights", parse->options);
    }
    if (key == ARGP_KEY_END)
        finish_mix(state, parse);
    if (key == KEY_EPOCH) /* argp would take it as --epochs */
        shuf__option_fail(state, EX_USAGE,
                          "--epoch: the sources run through their epochs; expected --epochs for "
                          "the number after which they end");
    if (key < KEY_SIZES || key >= KEYS_END)
        return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
    parse->given |= BIT(key);
    parse_mixture_word(key, text, state, parse->options);
    parse_output_word(key, text, state, parse->options);
    return 0;
}

void shuf__mix_options(int argc, char **argv, struct shuf__mix_options *options)
{
    static const struct argp_child children[] = {{&shuf__daemon_argp, 0, NULL, 5}, {0}};
    static const struct argp argp = {
        .children = children,
        .options = option_table,
        .parser = parse_mix_option,
        .args_doc = "--sizes LIST --seed S",
        .doc = "Computes a mixture of data sets by weights, in this process: no daemon is needed. "
               "Prints the source, epoch and record at each position, or writes indices with "
               "--out."
               "\vNumbers may be written 1000000, 1e6, 10M or 64Ki: see shufctl help units. "
               "Weights may also be decimals or ratios: 0.7, 1e-3 or 2/3.\n",
    };
    struct parse parse = {.options = options};
    *options = (struct shuf__mix_options){.block = BLOCK_DEFAULT, .stride = 1};
    shuf__options_parse(&argp, argc, argv, &parse);
}

static void free_stages(struct shuf__mix_stage *stages, size_t count)
{
    for (size_t s = 0; s < count; s++)
        shuf__ratios_free(&stages[s].weights);
    free(stages);
}

void shuf__mix_options_free(struct shuf__mix_options *options)
{
    struct shuf__numbers *lists[] = {&options->sizes, &options->epochs, &options->chunk,
                                     &options->window};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        free(lists[i]->at);
    free_stages(options->stages, options->stage_count);
    shuf_mixture_free(options->mixture);
    *options = (struct shuf__mix_options){0};
}
