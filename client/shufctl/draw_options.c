/* SPDX-License-Identifier: MIT
 *
 * See draw_options.h.
 */
#include "draw_options.h"

#include "exit.h"
#include "number.h"
#include "subject.h"

#include <string.h>
#include <sysexits.h>

enum key {
    KEY_COUNT = 0x100,
    KEY_SEED,
    KEY_STREAM,
    KEY_OFFSET,
    KEY_MEAN,
    KEY_STD,
    KEY_DTYPE,
    KEY_METHOD,
    KEY_SUMMARY,
    KEY_EPOCH, /* what only permutations have */
    KEYS_END,
};

#define BIT(key) (1U << ((key)-KEY_COUNT))

#define COMMON_OPTIONS                                                                        \
    {"count", KEY_COUNT, "N", 0, "How many values (required)", 1},                            \
        {"seed", KEY_SEED, "S", 0, "The seed, any number below 2^64 (required)", 1},          \
        {"stream", KEY_STREAM, "T", 0, "The stream, independent of the seed (default 0)", 1}, \
        {"offset", KEY_OFFSET, "O", 0, "The number of the first value (default 0)", 1},       \
        {"epoch", KEY_EPOCH, "E", OPTION_HIDDEN, NULL, 1},                                    \
    {                                                                                         \
        "summary", KEY_SUMMARY, NULL, 0,                                                      \
            "Also tell mean, variance, skewness, kurtosis and extremes of the values", 3      \
    }

static const struct argp_option gauss_table[] = {
    COMMON_OPTIONS,
    {"mean", KEY_MEAN, "M", 0, "The mean (default 0)", 2},
    {"std", KEY_STD, "D", 0, "The standard deviation (default 1)", 2},
    {"dtype", KEY_DTYPE, "TYPE", 0, "f64 (default), f32, f16 or bf16", 2},
    {"method", KEY_METHOD, "METHOD", 0, "table (default) or box-muller", 2},
    {0},
};

static const struct argp_option uniform_table[] = {
    COMMON_OPTIONS,
    {"dtype", KEY_DTYPE, "TYPE", 0, "f64 (default) or f32, both in [0, 1), u32 or u64", 2},
    {"mean", KEY_MEAN, "M", OPTION_HIDDEN, NULL, 2},
    {"std", KEY_STD, "D", OPTION_HIDDEN, NULL, 2},
    {"method", KEY_METHOD, "METHOD", OPTION_HIDDEN, NULL, 2},
    {0},
};

struct parse {
    shuf_numbers *what;
    struct shuf__order *order;
    unsigned given; /* BIT(key) of each option seen */
};

static const char *option_name(int key)
{
    static char name[32];
    for (const struct argp_option *o = gauss_table; o->name; o++)
        if (o->key == key)
            snprintf(name, sizeof name, "--%s", o->name);
    return name;
}

static uint64_t *number_of(shuf_numbers *what, int key)
{
    switch (key) {
    case KEY_COUNT:
        return &what->count;
    case KEY_SEED:
        return &what->seed;
    case KEY_STREAM:
        return &what->stream;
    case KEY_OFFSET:
        return &what->offset;
    default:
        return NULL;
    }
}

static void read_number(struct argp_state *state, int key, const char *text, uint64_t *value)
{
    struct shuf__error error;
    if (shuf__number_parse(option_name(key), text, value, &error))
        argp_failure(state, EX_USAGE, 0, "%s", error.text);
}

static void check_gauss(struct argp_state *state, int key, const shuf_numbers *what)
{
    if (what->distribution != SHUF_GAUSS)
        argp_failure(state, EX_USAGE, 0, "%s: uniform has none; expected shufctl gauss",
                     option_name(key));
}

static void read_decimal(struct argp_state *state, int key, const char *text,
                         const shuf_numbers *what, double *value)
{
    struct shuf__error error;
    check_gauss(state, key, what);
    if (shuf__decimal_parse(option_name(key), text, value, &error))
        argp_failure(state, EX_USAGE, 0, "%s", error.text);
}

static void check_given(struct argp_state *state, unsigned given)
{
    if (!(given & BIT(KEY_COUNT)))
        argp_failure(state, EX_USAGE, 0, "--count: missing; expected it, as in --count 1e9");
    if (!(given & BIT(KEY_SEED)))
        argp_failure(state, EX_USAGE, 0, "--seed: missing; expected it, as in --seed 7");
}

/* Values on standard output leave room for a summary on standard error. */
static bool is_summed_up(const struct parse *parse)
{
    const struct shuf__order *order = parse->order;
    return !order->prefetch &&
           (order->daemon.json || !shuf__order_to_stdout(order) || parse->what->moments);
}

static void finish(struct argp_state *state, struct parse *parse)
{
    struct shuf__order *order = parse->order;
    char message[256];
    check_given(state, parse->given);
    shuf_status status = shuf_numbers_shape(parse->what, &order->shape, message, sizeof message);
    if (status != SHUF_OK)
        argp_failure(state, shuf__exit_code(status), 0, "%s", message);
    order->numbers = parse->what;
    shuf__order_complete(state, order);
    if (order->prefetch && parse->what->moments)
        shuf__order_refuse_both(state, "--prefetch", "--summary");
    parse->what->fingerprint = is_summed_up(parse);
}

/* Of those that there are, the library knows which of them the distribution has. */
static void read_dtype(struct argp_state *state, const char *text, shuf_numbers *what)
{
    const bool gauss = what->distribution == SHUF_GAUSS;
    what->dtype =
        (shuf_dtype)(shuf__order_name(state, "--dtype", text, shuf__dtype_names + 1,
                                      gauss ? "f64, f32, f16 or bf16" : "f64, f32, u32 or u64") +
                     1);
}

static void read_method(struct argp_state *state, const char *text, shuf_numbers *what)
{
    check_gauss(state, KEY_METHOD, what);
    what->method = (shuf_method)shuf__order_name(state, "--method", text, shuf__method_names,
                                                 "table or box-muller");
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct parse *parse = state->input;
    shuf_numbers *what = parse->what;
    if (key == ARGP_KEY_INIT)
        state->child_inputs[0] = parse->order;
    if (key == ARGP_KEY_END)
        finish(state, parse);
    if (key < KEY_COUNT || key >= KEYS_END)
        return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
    parse->given |= BIT(key);
    if (key == KEY_EPOCH)
        argp_failure(state, EX_USAGE, 0, "--epoch: numbers have none; expected --stream T");
    uint64_t *number = number_of(what, key);
    if (number)
        read_number(state, key, text, number);
    else if (key == KEY_MEAN || key == KEY_STD)
        read_decimal(state, key, text, what, key == KEY_MEAN ? &what->mean : &what->std);
    else if (key == KEY_DTYPE)
        read_dtype(state, text, what);
    else if (key == KEY_METHOD)
        read_method(state, text, what);
    else
        what->moments = true;
    return 0;
}

#define NOTES                                                                                  \
    "\vNumbers may be written 1000000, 1_000_000, 1e6, 64Ki, 0x7. Value i of a stream is the " \
    "same whatever part of it is asked for, on every machine. Without --out the values stay "  \
    "in the daemon and only a summary with their fingerprint comes back. With values on "      \
    "standard output the summary is told only with --json or --summary, on standard error.\n"

void shuf__draw_options(int argc, char **argv, shuf_numbers *what, struct shuf__order *order)
{
    static const struct argp_child children[] = {{&shuf__order_argp, 0, NULL, 4}, {0}};
    const bool gauss = what->distribution == SHUF_GAUSS;
    const struct argp argp = {
        .children = children,
        .options = gauss ? gauss_table : uniform_table,
        .parser = parse_option,
        .args_doc = "--count N --seed S",
        .doc = gauss ? "Has the daemon compute normally distributed numbers, and shows a summary "
                       "of them or writes them." NOTES
                     : "Has the daemon compute uniformly distributed numbers, and shows a summary "
                       "of them or writes them." NOTES,
    };
    struct parse parse = {.what = what, .order = order};
    what->std = gauss;
    *order = (struct shuf__order){0};
    argp_parse(&argp, argc, argv, 0, NULL, &parse);
}
