/* SPDX-License-Identifier: MIT
 *
 * See options.h.
 */
#include "options.h"

#include "algorithm.h"
#include "device_run.h"
#include "generator.h"
#include "nearest.h"
#include "number.h"
#include "option.h"
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- Sizes ---- */

/* Reads one number, or A:B, of `length` characters. */
static shuf_status parse_range(const char *field, const char *text, int length, uint64_t range[2],
                               struct shuf__error *error)
{
    char word[80];
    snprintf(word, sizeof word, "%.*s", length, text);
    char *colon = strchr(word, ':');
    if (colon)
        *colon = '\0';
    shuf_status status = shuf__number_parse(field, word, &range[0], error);
    range[1] = range[0];
    if (status == SHUF_OK && colon)
        status = shuf__number_parse(field, colon + 1, &range[1], error);
    return status;
}

shuf_status shuf__sizes_parse(const char *field, const char *text, uint32_t least, uint32_t most,
                              uint32_t *sizes, unsigned room, unsigned *count,
                              struct shuf__error *error)
{
    uint64_t range[2];
    *count = 0;
    for (const char *p = text;; p++) {
        const char *end = strchrnul(p, ',');
        shuf_status status = parse_range(field, p, (int)(end - p), range, error);
        if (status != SHUF_OK)
            return status;
        if (range[0] < least || range[1] > most || range[0] > range[1])
            return shuf__fail(error, SHUF_INVALID,
                              "%s %.64s: expected numbers from %" PRIu32 " to %" PRIu32
                              ", or A:B with A at most B",
                              field, text, least, most);
        if (range[1] - range[0] >= room - *count)
            return shuf__fail(error, SHUF_INVALID, "%s %.64s: expected at most %u numbers", field,
                              text, room);
        for (uint64_t n = range[0]; n <= range[1]; n++)
            sizes[(*count)++] = (uint32_t)n;
        p = end;
        if (!*p)
            return SHUF_OK;
    }
}

uint64_t shuf__sizes_samples(uint32_t n)
{
    static const struct {
        uint32_t from;
        uint64_t samples;
    } rows[] = {{1 << 20, 1000}, {32768, 10000}, {1000, 100000},
                {9, 1000000},    {4, 10000000},  {0, 1000000}};
    int i = 0;
    while (n < rows[i].from)
        i++;
    return rows[i].samples;
}

/* ---- Arguments ---- */

uint64_t shuf__quality_number(struct argp_state *state, const char *field, const char *text,
                              uint64_t least, uint64_t most)
{
    uint64_t value;
    shuf__option_number_in(state, field, text, least, most, &value);
    return value;
}

bool shuf__quality_choice(struct argp_state *state, const char *field, const char *text,
                          const char *no, const char *yes)
{
    const char *const words[] = {no, yes, NULL};
    char expected[64];
    snprintf(expected, sizeof expected, "%s or %s", no, yes);
    return shuf__option_choice(state, field, text, words, expected) == 1;
}

void shuf__quality_check_input(struct argp_state *state, const char *path)
{
    if (strcmp(path, "-") != 0 && access(path, R_OK) != 0)
        shuf__option_fail(state, EX_NOINPUT, "--in %.128s: %s", *path ? path : "''",
                          strerror(errno));
}

void shuf__quality_list_name(char *list, size_t size, const char *name)
{
    const size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s", used > 0 ? ", " : "", name);
}

/* ---- Of all that judge ---- */

static double read_alpha(struct argp_state *state, const char *text)
{
    struct shuf__error error;
    double alpha;
    if (shuf__decimal_parse("--alpha", text, &alpha, &error) != SHUF_OK ||
        !(alpha > 0 && alpha < 1))
        shuf__option_fail(state, EX_USAGE, "--alpha %.64s: expected a number between 0 and 1",
                          text);
    return alpha;
}

static void refuse_tests(struct argp_state *state, const char *text, const char *(*test)(int i))
{
    char names[512] = "";
    for (int i = 0; test(i); i++)
        shuf__quality_list_name(names, sizeof names, test(i));
    shuf__option_fail(state, EX_USAGE, "--tests %.64s: expected names from %s", *text ? text : "''",
                      names);
}

static uint32_t read_tests(struct argp_state *state, const char *text, const char *(*test)(int i))
{
    uint32_t tests = 0;
    for (const char *p = text, *end; *p; p = end + 1) {
        end = strchrnul(p, ',');
        const size_t length = (size_t)(end - p);
        int i = 0;
        while (test(i) && (strlen(test(i)) != length || strncmp(test(i), p, length) != 0))
            i++;
        if (!test(i))
            break;
        tests |= UINT32_C(1) << i;
        if (!*end)
            return tests;
    }
    refuse_tests(state, text, test);
    return 0;
}

void shuf__judging_init(struct shuf__judging *judging)
{
    *judging = (struct shuf__judging){
        .tests = SHUF__TESTS_ALL, .alpha = 0.001, .threads = omp_get_max_threads()};
}

error_t shuf__judging_parse(int key, char *text, struct argp_state *state,
                            struct shuf__judging *judging, const char *(*test)(int i))
{
    switch (key) {
    case SHUF__KEY_TESTS:
        judging->tests = read_tests(state, text, test);
        return 0;
    case SHUF__KEY_ALPHA:
        judging->alpha = read_alpha(state, text);
        return 0;
    case SHUF__KEY_THREADS:
        judging->threads = (int)shuf__quality_number(state, "--threads", text, 1, 1024);
        return 0;
    case SHUF__KEY_JSON:
        judging->json = true;
        return 0;
    case SHUF__KEY_PLOT:
        judging->plot = text;
        return 0;
    default:
        return shuf__option_common(key, text, state);
    }
}

/* ---- Options ---- */

/* One table has the options of all verbs. A row names the verbs that take the option. */

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

/* ---- Checks of options that depend on each other ---- */

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

/* ---- One option ---- */

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
