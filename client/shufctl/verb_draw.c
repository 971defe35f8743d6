/* SPDX-License-Identifier: MIT
 *
 * The verbs that compute random numbers of a stream, one for each distribution.
 */
#include "exit.h"
#include "number.h"
#include "option.h"
#include "request.h"
#include "run_request.h"
#include "summary.h"
#include "verb_options.h"
#include "verbs.h"

#include <string.h>
#include <sysexits.h>

/* ---- The options ---- */

enum key {
    KEY_COUNT = 0x100,
    KEY_SEED,
    KEY_KEY,
    KEY_STREAM,
    KEY_OFFSET,
    KEY_MEAN,
    KEY_STD,
    KEY_BOUND,
    KEY_DTYPE,
    KEY_METHOD,
    KEY_SUMMARY,
    KEY_EPOCH, /* of permutations only */
    KEY_LOW,   /* of other programs, up to KEY_MAX */
    KEY_HIGH,
    KEY_MIN,
    KEY_MAX,
    KEYS_END,
};

#define BIT(key) (1U << ((key)-KEY_COUNT))

#define COMMON_OPTIONS                                                                             \
    {"count", KEY_COUNT, "N", 0, "Compute N values (required)", 0},                                \
        SHUF__SEED_OPTIONS(KEY_SEED, KEY_KEY),                                                     \
        {"stream", KEY_STREAM, "T", 0, "Select one of the streams of the seed or key (default 0)", \
         1},                                                                                       \
        {"offset", KEY_OFFSET, "O", 0, "Skip the first O values of the stream (default 0)", 1},    \
        {"epoch", KEY_EPOCH, "E", OPTION_HIDDEN, NULL, 1},                                         \
    {                                                                                              \
        "summary", KEY_SUMMARY, NULL, 0,                                                           \
            "Also print mean, variance, skewness, kurtosis, least and largest value", 3            \
    }

static const struct argp_option gauss_table[] = {
    COMMON_OPTIONS,
    {"mean", KEY_MEAN, "M", 0, "The mean (default 0)", 2},
    {"std", KEY_STD, "D", 0, "The standard deviation (default 1)", 2},
    {"dtype", KEY_DTYPE, "f64|f32|f16|bf16", 0, "The type of the values (default f64)", 2},
    {"method", KEY_METHOD, "table|box-muller", 0,
     "table (default) is faster on a GPU; box-muller has no blocks", 2},
    {0},
};

static const struct argp_option uniform_table[] = {
    COMMON_OPTIONS,
    {"dtype", KEY_DTYPE, "f64|f32|u32|u64", 0,
     "The type of the values: f64 (default) and f32 are in [0, 1)", 2},
    {"mean", KEY_MEAN, "M", OPTION_HIDDEN, NULL, 2},
    {"std", KEY_STD, "D", OPTION_HIDDEN, NULL, 2},
    {"method", KEY_METHOD, "METHOD", OPTION_HIDDEN, NULL, 2},
    {"low", KEY_LOW, "A", OPTION_HIDDEN, NULL, 2},
    {"high", KEY_HIGH, "B", OPTION_HIDDEN, NULL, 2},
    {"min", KEY_MIN, "A", OPTION_HIDDEN, NULL, 2},
    {"max", KEY_MAX, "B", OPTION_HIDDEN, NULL, 2},
    {0},
};

static const struct argp_option exponential_table[] = {
    COMMON_OPTIONS,
    {"mean", KEY_MEAN, "M", 0, "The mean (default 1)", 2},
    {"dtype", KEY_DTYPE, "f64|f32", 0, "The type of the values (default f64)", 2},
    {"std", KEY_STD, "D", OPTION_HIDDEN, NULL, 2},
    {"method", KEY_METHOD, "METHOD", OPTION_HIDDEN, NULL, 2},
    {0},
};

static const struct argp_option bernoulli_table[] = {
    COMMON_OPTIONS,
    {"probability", KEY_MEAN, "P", 0, "The probability of a 1 (default 0.5)", 2},
    {"dtype", KEY_DTYPE, "u32|u64", 0, "The type of the words: 32 bits (default) or 64", 2},
    {"std", KEY_STD, "D", OPTION_HIDDEN, NULL, 2},
    {"method", KEY_METHOD, "METHOD", OPTION_HIDDEN, NULL, 2},
    {0},
};

static const struct argp_option integers_table[] = {
    {"bound", KEY_BOUND, "B", 0, "Compute integers from 0 to B - 1 (required)", 0},
    COMMON_OPTIONS,
    {"dtype", KEY_DTYPE, "u32|u64", 0,
     "The type of the values (default u32, or u64 for a bound above 2^32)", 2},
    {"mean", KEY_MEAN, "M", OPTION_HIDDEN, NULL, 2},
    {"std", KEY_STD, "D", OPTION_HIDDEN, NULL, 2},
    {"method", KEY_METHOD, "METHOD", OPTION_HIDDEN, NULL, 2},
    {0},
};

#define NOTES                                                                                    \
    " Prints a summary, or writes the values with --out."                                        \
    "\vNumbers may be written 1000000, 1e6, 10M or 64Ki: see shufctl help units. The same "      \
    "options "                                                                                   \
    "give the same values on every machine. With --out -, standard output has only the values; " \
    "--json and --summary then print on standard error.\n"

/* A verb: its options, the defaults of the mean and the deviation, and the text of --help. */
static const struct draw_verb {
    const struct argp_option *options;
    double mean, std;
    const char *doc;
} verbs[] = {
    [SHUF_GAUSS] = {gauss_table, 0, 1, "Computes normally distributed random numbers." NOTES},
    [SHUF_UNIFORM] = {uniform_table, 0, 0, "Computes uniformly distributed random numbers." NOTES},
    [SHUF_EXPONENTIAL] = {exponential_table, 1, 0,
                          "Computes exponentially distributed random numbers." NOTES},
    [SHUF_BERNOULLI] = {bernoulli_table, 0.5, 0,
                        "Computes independent random bits, as words of 32 or 64 bits." NOTES},
    [SHUF_INTEGERS] = {integers_table, 0, 0,
                       "Computes integers below a bound, all equally likely." NOTES},
};

struct parse {
    shuf_request *request;
    struct shuf__output_options *output;
    unsigned given; /* BIT(key) of each option seen */
};

static uint64_t *stream_number(shuf_numbers *numbers, int key)
{
    switch (key) {
    case KEY_COUNT:
        return &numbers->count;
    case KEY_SEED:
        return &numbers->seed;
    case KEY_STREAM:
        return &numbers->stream;
    case KEY_OFFSET:
        return &numbers->offset;
    case KEY_BOUND:
        return &numbers->bound;
    default:
        return NULL;
    }
}

static void check_gauss(struct argp_state *state, int key, const shuf_numbers *numbers)
{
    if (numbers->distribution != SHUF_GAUSS)
        shuf__option_fail(state, EX_USAGE, "%s: only gauss has this option; expected shufctl gauss",
                          shuf__option_name(gauss_table, key));
}

static void check_mean(struct argp_state *state, const shuf_numbers *numbers)
{
    if (!shuf__distribution_has_mean(numbers->distribution))
        shuf__option_fail(state, EX_USAGE,
                          "--mean: uniform numbers have no mean; expected shufctl gauss or "
                          "shufctl exponential");
}

static void read_decimal(struct argp_state *state, int key, const char *text,
                         const shuf_numbers *numbers, double *value)
{
    const struct argp_option *options = verbs[numbers->distribution].options;
    struct shuf__error error;
    if (key == KEY_MEAN)
        check_mean(state, numbers);
    else
        check_gauss(state, key, numbers);
    if (shuf__decimal_parse(shuf__option_name(options, key), text, value, &error))
        shuf__option_fail(state, EX_USAGE, "%s", error.text);
    if (numbers->distribution == SHUF_BERNOULLI && !(*value >= 0 && *value <= 1))
        shuf__option_fail(state, EX_USAGE, "--probability %s: expected 0 to 1", text);
}

static void check_draw_given(struct argp_state *state, const shuf_numbers *numbers, unsigned given)
{
    const struct shuf__required required[] = {
        {given & BIT(KEY_COUNT), "--count 1e9"},
        {given & (BIT(KEY_SEED) | BIT(KEY_KEY)), "--seed 7"},
        {numbers->distribution != SHUF_INTEGERS || given & BIT(KEY_BOUND), "--bound 1000"},
    };
    shuf__option_require(state, required, sizeof required / sizeof *required);
    shuf__check_seed_options(state, given & BIT(KEY_SEED), given & BIT(KEY_KEY));
}

/* With values on standard output, --summary prints the moments on standard error. */
static bool has_summary(const struct parse *parse)
{
    const struct shuf__output_options *options = parse->output;
    return !options->prefetch && (options->daemon.json || !shuf__writes_to_stdout(options) ||
                                  parse->request->numbers.moments);
}

static void finish_draw(struct argp_state *state, struct parse *parse)
{
    struct shuf__output_options *options = parse->output;
    char message[256];
    check_draw_given(state, &parse->request->numbers, parse->given);
    shuf_status status = shuf_shape_of(parse->request, &options->shape, message, sizeof message);
    if (status != SHUF_OK)
        shuf__option_fail(state, shuf__exit_code(status), "%s", message);
    options->request = parse->request;
    shuf__output_options_complete(state, options);
    if (options->prefetch && parse->request->numbers.moments)
        shuf__option_refuse_both(state, "--prefetch", "--summary");
    parse->request->numbers.fingerprint = has_summary(parse);
}

static void read_dtype_option(struct argp_state *state, const char *text, shuf_numbers *numbers)
{
    const unsigned set = shuf__dtype_set((enum shuf__distribution)numbers->distribution);
    numbers->dtype = shuf__option_dtype(state, "--dtype", text, set);
}

static void read_method_option(struct argp_state *state, const char *text, shuf_numbers *numbers)
{
    check_gauss(state, KEY_METHOD, numbers);
    numbers->method = (shuf_method)shuf__option_choice(state, "--method", text, shuf__method_names,
                                                       "table or box-muller");
}

/* Ends the process on an option that streams do not have, but other requests or programs. */
static void refuse_foreign(struct argp_state *state, int key)
{
    if (key == KEY_EPOCH)
        shuf__option_fail(state, EX_USAGE,
                          "--epoch: random numbers have no epoch; expected --stream T");
    if (key >= KEY_LOW)
        shuf__option_fail(
            state, EX_USAGE,
            "%s: no such option; values of f64 and f32 are in [0, 1), those of u32 and u64 "
            "have all bits random: scale them where you use them; for integers below a bound, "
            "expected shufctl integers",
            shuf__option_name(uniform_table, key));
}

static error_t parse_draw_option(int key, char *text, struct argp_state *state)
{
    struct parse *parse = state->input;
    shuf_numbers *numbers = &parse->request->numbers;
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = parse->output;
    if (key == ARGP_KEY_END)
        finish_draw(state, parse);
    if (key < KEY_COUNT || key >= KEYS_END)
        return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
    parse->given |= BIT(key);
    refuse_foreign(state, key);
    uint64_t *number = stream_number(numbers, key);
    const struct argp_option *options = verbs[numbers->distribution].options;
    if (number)
        shuf__option_number(state, shuf__option_name(options, key), text, number);
    else if (key == KEY_MEAN || key == KEY_STD)
        read_decimal(state, key, text, numbers, key == KEY_MEAN ? &numbers->mean : &numbers->std);
    else if (key == KEY_KEY)
        numbers->key = shuf__key_option(state, text);
    else if (key == KEY_DTYPE)
        read_dtype_option(state, text, numbers);
    else if (key == KEY_METHOD)
        read_method_option(state, text, numbers);
    else
        numbers->moments = true;
    return 0;
}

void shuf__draw_options(int argc, char **argv, shuf_request *request,
                        struct shuf__output_options *options)
{
    static const struct argp_child children[] = {{&shuf__output_argp, 0, NULL, 4}, {0}};
    const struct draw_verb *verb = &verbs[request->numbers.distribution];
    const struct argp argp = {
        .children = children,
        .options = verb->options,
        .parser = parse_draw_option,
        .args_doc = request->numbers.distribution == SHUF_INTEGERS ? "--count N --bound B --seed S"
                                                                   : "--count N --seed S",
        .doc = verb->doc,
    };
    struct parse parse = {.request = request, .output = options};
    request->numbers.mean = verb->mean;
    request->numbers.std = verb->std;
    *options = (struct shuf__output_options){0};
    shuf__options_parse(&argp, argc, argv, &parse);
}

/* ---- The verbs ---- */

/* The distribution has the name of the verb, which is the last word of argv[0]. */
static shuf_distribution distribution_of(const char *program)
{
    const char *const space = strrchr(program, ' '), *const verb = space ? space + 1 : program;
    int distribution = SHUF_GAUSS;
    while (!shuf__distribution_is_named(distribution) ||
           strcmp(shuf__distribution_name((unsigned)distribution), verb) != 0)
        distribution++;
    return (shuf_distribution)distribution;
}

int shuf__verb_draw(int argc, char **argv)
{
    shuf_request request = {.kind = SHUF_NUMBERS,
                            .numbers = {.distribution = distribution_of(argv[0])}};
    struct shuf__output_options options;
    shuf__draw_options(argc, argv, &request, &options);
    return shuf__run_request(&options);
}
