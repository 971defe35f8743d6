/* SPDX-License-Identifier: MIT
 *
 * See options.h. One table has the options of all verbs. A row names the verbs that take the
 * option.
 */
#include "options.h"

#include "algorithm.h"
#include "device_run.h"
#include "generator.h"
#include "nearest.h"
#include "option_parse.h"
#include "sizes.h"

#include <inttypes.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum key {
    KEY_N = 0x100,
    KEY_GENERATOR,
    KEY_ROUNDS,
    KEY_DAEMON,
    KEY_ALGORITHM,
    KEY_SOCKET,
    KEY_IN,
    KEY_DTYPE,
    KEY_SEED,
    KEY_EPOCH,
    KEY_VARY,
    KEY_SAMPLES,
    KEY_MODULUS,
    KEY_BACKEND,
    KEY_ALL,
};

enum { J = SHUF__JUDGE, S = SHUF__SUITE, R = SHUF__ROUNDS, ANY = J | S | R };

static const struct {
    unsigned verbs;
    struct argp_option option;
} table[] = {
    {J, {"n", KEY_N, "N", 0, "Judge permutations of 0 to N - 1 (required)", 1}},
    {S,
     {"n-list", KEY_N, "LIST", 0, "The sizes, as in 2:64,100,127:129 (default: see the manual)",
      1}},
    {R, {"n", KEY_N, "LIST", 0, "The sizes, as in 16,64:66 (required)", 1}},
    {ANY,
     {"generator", KEY_GENERATOR, "NAME", 0,
      "Judge this generator; shuf-quality list prints the names", 2}},
    {J | S,
     {"rounds", KEY_ROUNDS, "R", 0, "Use R rounds of the generator (default: its usual number)",
      2}},
    {R, {"rounds", KEY_ROUNDS, "A:B", 0, "From A rounds to B (default: the usual number)", 2}},
    {ANY, {"daemon", KEY_DAEMON, NULL, 0, "Judge the permutations of a running shufd", 3}},
    {ANY,
     {"algorithm", KEY_ALGORITHM, SHUF__ALGORITHM_CHOICES, 0,
      "The algorithm of the daemon (default: primefold)", 3}},
    {ANY, {"socket", KEY_SOCKET, "PATH", 0, "The socket of the daemon", 3}},
    {J,
     {"in", KEY_IN, "FILE", 0, "Judge raw permutations from FILE (default -, standard input)", 4}},
    {J, {"dtype", KEY_DTYPE, "u32|u64", 0, "The type of the values in FILE (default u32)", 4}},
    {ANY, {"seed", KEY_SEED, "S", 0, "The seed of the first permutation (default 0)", 5}},
    {ANY, {"epoch", KEY_EPOCH, "E", 0, "The epoch of the first permutation (default 0)", 5}},
    {ANY,
     {"vary", KEY_VARY, "WHAT", 0,
      "Change this from one permutation to the next: epoch (default) or seed", 5}},
    {ANY,
     {"samples", KEY_SAMPLES, "COUNT", 0,
      "Judge so many permutations (default: depends on N; of FILE, all)", 6}},
    {J,
     {"modulus", KEY_MODULUS, "M", 0,
      "The modulus of differences (default: that of the generator, if any)", 6}},
    {J | S, {"backend", KEY_BACKEND, "SPEC", 0, "cuda: compute and count on the GPU", 6}},
    {J | S,
     {"tests", SHUF__KEY_TESTS, "LIST", 0,
      "Run only these tests, as in mmd,cycles; shuf-quality list prints the names", 6}},
    {ANY,
     {"alpha", SHUF__KEY_ALPHA, "P", 0,
      "The probability that a good generator fails (default 0.001)", 6}},
    {ANY,
     {"threads", SHUF__KEY_THREADS, "COUNT", 0, "The number of threads (default: one a core)", 6}},
    {ANY, {"json", SHUF__KEY_JSON, NULL, 0, "Print one JSON object instead of a table", 7}},
    {S, {"all", KEY_ALL, NULL, 0, "Print every finding, not only those that failed", 7}},
    {R, {"plot", SHUF__KEY_PLOT, "FILE.svg", 0, "Also draw the result, with gnuplot", 7}},
    {ANY, SHUF__OPTION_HELP},
};

enum { ROWS = sizeof table / sizeof *table };

struct parse {
    struct shuf__quality_options *options;
    enum shuf__quality_verb verb;
    const char *generator, *sizes, *rounds; /* texts of options that depend on each other */
    bool daemon, of_daemon, of_file, of_seed;
};

/* ---- Checks of options that depend on each other ------------------------------ */

static void read_sizes(struct argp_state *state, const struct parse *parse)
{
    struct shuf__quality_options *o = parse->options;
    struct shuf__error error;
    const char *field = parse->verb == SHUF__SUITE ? "--n-list" : "--n";
    const char *text = parse->sizes;
    if (!text && parse->verb == SHUF__SUITE)
        text = SHUF__SIZES_DEFAULT;
    if (!text)
        shuf__option_fail(state, EX_USAGE, "--n: missing; expected it, as in --n 1000");
    if (shuf__sizes_parse(field, text, 2, o->backend ? SHUF__DEVICE_N_MAX : SHUF__N_MAX, o->sizes,
                          SHUF__SIZES_MAX, &o->size_count, &error) != SHUF_OK)
        shuf__option_fail(state, EX_USAGE, "%s", error.text);
    if (parse->verb == SHUF__JUDGE && o->size_count != 1)
        shuf__option_fail(state, EX_USAGE, "--n %.64s: expected one number", text);
}

static void read_rounds(struct argp_state *state, const struct parse *parse)
{
    struct shuf__quality_options *o = parse->options;
    const struct shuf__generator *g = o->origin.generator;
    uint32_t rounds[SHUF__SIZES_MAX];
    unsigned count;
    struct shuf__error error;
    if (!g || g->most_rounds == 0)
        shuf__option_fail(state, EX_USAGE, "--rounds %.64s: expected a --generator that has rounds",
                          parse->rounds);
    if (shuf__sizes_parse("--rounds", parse->rounds, 1, g->most_rounds, rounds, SHUF__SIZES_MAX,
                          &count, &error) != SHUF_OK)
        shuf__option_fail(state, EX_USAGE, "%s", error.text);
    o->first_rounds = rounds[0];
    o->last_rounds = rounds[count - 1];
    o->origin.rounds = count == 1 ? rounds[0] : 0; /* 0 for a range */
    o->sweep = true;
    if (strchr(parse->rounds, ',') || (parse->verb != SHUF__ROUNDS && count > 1))
        shuf__option_fail(state, EX_USAGE, "--rounds %.64s: expected %s", parse->rounds,
                          parse->verb == SHUF__ROUNDS ? "A:B" : "one number");
}

static void refuse_generator(struct argp_state *state, const char *text)
{
    char names[256] = "", hint[SHUF__HINT];
    struct shuf__nearest nearest = {.text = text};
    for (const struct shuf__generator *const *g = shuf__generators; *g; g++) {
        shuf__quality_list_name(names, sizeof names, (*g)->name);
        shuf__nearest_offer(&nearest, (*g)->name);
    }
    shuf__option_fail(state, EX_USAGE, "--generator %.64s: expected one of %s%s",
                      *text ? text : "''", names, shuf__nearest_hint(&nearest, hint));
}

static void find_generator(struct argp_state *state, const struct parse *parse)
{
    struct shuf__quality_options *o = parse->options;
    o->origin.type = &shuf__source_generator;
    o->origin.generator = shuf__generator_find(parse->generator);
    if (!o->origin.generator)
        refuse_generator(state, parse->generator);
    o->origin.rounds = o->first_rounds = o->last_rounds = o->origin.generator->rounds;
}

static void check_source(struct argp_state *state, const struct parse *parse)
{
    struct shuf__quality_options *o = parse->options;
    const bool file = !parse->generator && !parse->daemon;
    if ((parse->generator != NULL) + parse->daemon + parse->of_file > 1)
        shuf__option_fail(state, EX_USAGE, "expected one of --generator, --daemon and --in");
    if (parse->of_daemon && !parse->daemon)
        shuf__option_fail(state, EX_USAGE, "--algorithm, --socket: expected --daemon beside them");
    if (file && parse->verb != SHUF__JUDGE)
        shuf__option_fail(state, EX_USAGE, "expected --generator NAME or --daemon");
    if (file && parse->of_seed)
        shuf__option_fail(state, EX_USAGE,
                          "--seed, --epoch, --vary: expected --generator or --daemon beside them");
    if (parse->daemon)
        o->origin.type = &shuf__source_daemon;
    if (file)
        shuf__quality_check_input(state, o->origin.input);
    if (file && strcmp(o->origin.input, "-") == 0 && isatty(STDIN_FILENO))
        shuf__option_fail(
            state, EX_USAGE,
            "standard input is a terminal; expected rows there, --in FILE, --generator "
            "NAME or --daemon");
}

static void finish(struct argp_state *state, const struct parse *parse)
{
    struct shuf__quality_options *o = parse->options;
    check_source(state, parse);
    if (parse->generator)
        find_generator(state, parse);
    if (o->backend && (!parse->generator || parse->rounds))
        shuf__option_fail(state, EX_USAGE,
                          "--backend %.64s: expected --generator beside it, and no --rounds",
                          o->backend);
    read_sizes(state, parse);
    if (parse->rounds)
        read_rounds(state, parse);
    if (o->origin.modulus != 0 && o->origin.modulus < o->sizes[0])
        shuf__option_fail(state, EX_USAGE, "--modulus %" PRIu64 ": expected at least n, %" PRIu32,
                          o->origin.modulus, o->sizes[0]);
    for (unsigned i = 0; i < o->size_count; i++)
        if (o->samples > (UINT64_C(1) << 47) / o->sizes[i])
            shuf__option_fail(state, EX_USAGE,
                              "--samples %" PRIu64 ": with n %" PRIu32
                              " these are too many values; expected at most 2^47",
                              o->samples, o->sizes[i]);
}

/* ---- One option --------------------------------------------------------------- */

static void parse_source(int key, char *text, struct argp_state *state, struct parse *parse)
{
    struct shuf__origin *origin = &parse->options->origin;
    parse->of_daemon |= key == KEY_ALGORITHM || key == KEY_SOCKET;
    parse->of_file |= key == KEY_IN || key == KEY_DTYPE;
    parse->of_seed |= key == KEY_SEED || key == KEY_EPOCH || key == KEY_VARY;
    if (key == KEY_GENERATOR)
        parse->generator = text;
    else if (key == KEY_ROUNDS)
        parse->rounds = text;
    else if (key == KEY_DAEMON)
        parse->daemon = true;
    else if (key == KEY_ALGORITHM)
        origin->algorithm = text;
    else if (key == KEY_SOCKET)
        origin->socket = text;
    else if (key == KEY_IN)
        origin->input = text;
    else if (key == KEY_DTYPE)
        origin->wide =
            shuf__option_dtype(state, "--dtype", text, 1U << SHUF_U32 | 1U << SHUF_U64) == SHUF_U64;
    else if (key == KEY_SEED)
        origin->seed = shuf__quality_number(state, "--seed", text, 0, UINT64_MAX);
    else if (key == KEY_EPOCH)
        origin->epoch = shuf__quality_number(state, "--epoch", text, 0, UINT64_MAX);
    else
        origin->vary_seed = shuf__quality_choice(state, "--vary", text, "epoch", "seed");
}

static const char *test_name(int i)
{
    return shuf__tests[i].name;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct parse *parse = state->input;
    struct shuf__quality_options *o = parse->options;
    switch (key) {
    case KEY_N:
        parse->sizes = text;
        return 0;
    case KEY_SAMPLES:
        o->samples = shuf__quality_number(state, "--samples", text, 2, UINT64_C(1) << 46);
        return 0;
    case KEY_BACKEND:
        o->backend = text;
        return 0;
    case KEY_MODULUS:
        o->origin.modulus = shuf__quality_number(state, "--modulus", text, 2, UINT64_C(1) << 62);
        return 0;
    case KEY_ALL:
        o->all = true;
        return 0;
    case ARGP_KEY_END:
        finish(state, parse);
        return 0;
    default:
        if (key < KEY_GENERATOR || key > KEY_VARY)
            return shuf__judging_parse(key, text, state, &o->judging, test_name);
        parse_source(key, text, state, parse);
        return 0;
    }
}

void shuf__quality_options(int argc, char **argv, enum shuf__quality_verb verb,
                           struct shuf__quality_options *options)
{
    static const char *const docs[] = {
        [SHUF__JUDGE] = "Judges permutations of one size.",
        [SHUF__SUITE] = "Judges permutations of many sizes, all findings together.",
        [SHUF__ROUNDS] = "Prints the maximum mean discrepancy for each number of rounds.",
    };
    struct argp_option taken[ROWS + 1] = {0};
    const struct argp argp = {.options = taken, .parser = parse_option, .doc = docs[verb]};
    struct parse parse = {.options = options, .verb = verb};
    unsigned count = 0;
    for (unsigned i = 0; i < ROWS; i++)
        if (table[i].verbs & verb)
            taken[count++] = table[i].option;
    *options = (struct shuf__quality_options){
        .origin = {.type = &shuf__source_file, .input = "-"},
    };
    shuf__judging_init(&options->judging);
    shuf__options_parse(&argp, argc, argv, &parse);
}

uint64_t shuf__quality_samples(const struct shuf__quality_options *options, uint32_t n)
{
    if (options->samples != 0)
        return options->samples;
    return options->origin.type == &shuf__source_file ? UINT64_MAX : shuf__sizes_samples(n);
}
