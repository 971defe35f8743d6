/* SPDX-License-Identifier: MIT
 *
 * See option.h. This file checks all words before getopt does, because getopt has its own
 * message for an unknown option.
 */
#include "option.h"

#include "error.h"
#include "nearest.h"
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

/* ---- Parsing ---- */

/* The options that argp adds to every table. */
static const struct argp_option added[] = {
    {"help", '?', NULL, 0, NULL, 0},
    {"usage", 0x7f00, NULL, 0, NULL, 0},
    {"version", 'V', NULL, 0, NULL, 0},
    {0},
};

static bool is_end(const struct argp_option *o)
{
    return !o->key && !o->name && !o->doc && !o->group;
}

bool shuf__option_each(const struct argp *argp, bool (*see)(void *, const struct argp_option *),
                       void *context)
{
    for (const struct argp_option *o = argp->options; o && !is_end(o); o++)
        if (see(context, o))
            return true;
    for (const struct argp_child *child = argp->children; child && child->argp; child++)
        if (shuf__option_each(child->argp, see, context))
            return true;
    return false;
}

static bool every_option(const struct argp *argp, bool (*see)(void *, const struct argp_option *),
                         void *context)
{
    static const struct argp standard = {.options = added};
    return shuf__option_each(argp, see, context) || shuf__option_each(&standard, see, context);
}

struct search {
    const char *word; /* behind its dashes */
    size_t length;    /* up to a "=" */
    bool is_long, is_exact, is_ambiguous;
    const struct argp_option *found;
};

static bool match(void *context, const struct argp_option *o)
{
    struct search *s = context;
    if (!s->is_long) {
        s->is_exact = o->key == (unsigned char)*s->word;
        if (s->is_exact)
            s->found = o;
        return s->is_exact;
    }
    if (!o->name || strncmp(o->name, s->word, s->length) != 0)
        return false;
    s->is_exact = o->name[s->length] == '\0';
    s->is_ambiguous = !s->is_exact && s->found && strcmp(s->found->name, o->name) != 0;
    s->found = o; /* an abbreviation: argp accepts it if it fits only one option */
    return s->is_exact || s->is_ambiguous;
}

static struct search search_of(const char *option)
{
    const bool is_long = option[1] == '-';
    const char *word = option + 1 + is_long;
    return (struct search){.word = word, .length = strcspn(word, "="), .is_long = is_long};
}

int shuf__option_words(const struct argp *argp, const char *option)
{
    struct search s = search_of(option);
    every_option(argp, match, &s);
    if (!s.found)
        return 0;
    const char *value = s.is_long ? s.word + s.length : s.word + 1;
    return s.found->arg && !*value ? 2 : 1;
}

static bool offer(void *nearest, const struct argp_option *o)
{
    if (o->name && !(o->flags & OPTION_HIDDEN))
        shuf__nearest_offer(nearest, o->name);
    return false;
}

/* Names of the same options in other verbs and programs: numpy, torch, shuf(1). Of two rows for a
 * name, the first one counts whose option the verb has. */
static const char *const synonyms[][2] = {
    {"n", "count"},           {"size", "n"},
    {"size", "count"},        {"length", "n"},
    {"length", "count"},      {"shape", "count"},
    {"replicas", "world"},    {"num-replicas", "world"},
    {"world-size", "world"},  {"random-seed", "seed"},
    {"random-state", "seed"}, {"o", "out"},
    {"output", "out"},        {"outfile", "out"},
    {"input", "in"},          {"infile", "in"},
    {"gpu", "backend"},       {"device", "backend"},
    {"loc", "mean"},          {"mu", "mean"},
    {"scale", "std"},         {"sigma", "std"},
    {"stddev", "std"},
};

static bool is_named(void *name, const struct argp_option *o)
{
    const char *const *wanted = name;
    return o->name && !(o->flags & OPTION_HIDDEN) && strcmp(o->name, *wanted) == 0;
}

/* Whether a parser or one of its children has a visible option of this name, without dashes. */
static bool option_exists(const struct argp *argp, const char *name)
{
    return every_option(argp, is_named, &name);
}

static const char *find_synonym(const struct argp *argp, const char *word)
{
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (strcmp(word, synonyms[i][0]) == 0 && option_exists(argp, synonyms[i][1]))
            return synonyms[i][1];
    return NULL;
}

/* The option that is meant by a word behind dashes; NULL: none is near. Python's names of arguments
 * have "_" for "-". */
static const char *find_meant(const struct argp *argp, const struct search *s)
{
    char word[64];
    struct shuf__nearest nearest = {.text = word};
    snprintf(word, sizeof word, "%.*s", (int)s->length, s->word);
    for (char *c = word; *c; c++)
        if (*c == '_')
            *c = '-';
    every_option(argp, offer, &nearest);
    return nearest.name ? nearest.name : find_synonym(argp, word);
}

static void (*tell_mistake)(const char *mistake);
static char mistake[256];
static bool is_parsing;

static int __attribute__((format(printf, 2, 3)))
refuse(const char *program, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(mistake, sizeof mistake, format, args);
    va_end(args);
    shuf__make_printable(mistake);
    fprintf(stderr, "%s: %s\n", program, mistake);
    return EX_USAGE;
}

void shuf__option_fail(const struct argp_state *state, int code, const char *format, ...)
{
    va_list args;
    char text[SHUF__ERROR_TEXT];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    shuf__make_printable(text);
    argp_failure(state, code, 0, "%s", text);
}

int shuf__option_refuse_unknown(const struct argp *argp, const char *program, const char *option)
{
    const struct search s = search_of(option);
    const char *meant = find_meant(argp, &s);
    return meant ? refuse(program, "unrecognized option '%.64s'; did you mean --%s?", option, meant)
                 : refuse(program, "unrecognized option '%.64s'; %s --help lists the options",
                          option, program);
}

int shuf__option_refuse_valueless(const struct argp *argp, const char *program, const char *option)
{
    struct search s = search_of(option);
    every_option(argp, match, &s);
    return refuse(program, "option '%.64s' requires an argument; expected %.64s %s", option, option,
                  s.found->arg);
}

/* For an abbreviation that fits several options. getopt would print the word as it is. */
static int refuse_ambiguous(const char *program, const char *option)
{
    return refuse(program, "option '%.64s' is ambiguous; %s --help lists the options", option,
                  program);
}

static bool is_ambiguous(const struct argp *argp, const char *option)
{
    struct search s = search_of(option);
    every_option(argp, match, &s);
    return s.is_ambiguous;
}

/* argp and getopt print their own messages and call exit(), so only an exit handler sees every
 * mistake. */
static void tell_at_exit(int code, void *context)
{
    (void)context;
    if (is_parsing && code == EX_USAGE)
        tell_mistake(*mistake ? mistake
                              : "options: a mistake on the command line; the log of the daemon "
                                "names it");
}

void shuf__options_tell(void (*tell)(const char *mistake))
{
    tell_mistake = tell;
    on_exit(tell_at_exit, NULL);
}

static void (*list_instead)(const struct argp *argp);

void shuf__options_list_instead(void (*list)(const struct argp *argp))
{
    list_instead = list;
}

void shuf__options_parse(const struct argp *argp, int argc, char **argv, void *input)
{
    const char *slash = strrchr(argv[0], '/'), *program = slash ? slash + 1 : argv[0];
    if (list_instead) {
        list_instead(argp);
        exit(EX_OK);
    }
    is_parsing = true;
    for (int i = 1, words; i < argc && strcmp(argv[i], "--") != 0; i += words) {
        words = 1;
        if (argv[i][0] != '-' || !argv[i][1])
            continue;
        if (is_ambiguous(argp, argv[i]))
            exit(refuse_ambiguous(program, argv[i]));
        words = shuf__option_words(argp, argv[i]);
        if (words == 0)
            exit(shuf__option_refuse_unknown(argp, program, argv[i]));
        if (i + words > argc)
            exit(shuf__option_refuse_valueless(argp, program, argv[i]));
    }
    const error_t error = argp_parse(argp, argc, argv, 0, NULL, input);
    if (error != 0) { /* it has parsed nothing */
        fprintf(stderr, "%s: options: %s\n", program, strerror(error));
        exit(error == ENOMEM ? EX_OSERR : EX_USAGE);
    }
    is_parsing = false;
}

/* ---- Values ---- */

static bool is_given(const struct argp_state *state, const char *option)
{
    const size_t length = strlen(option);
    for (int i = 1; i < state->argc; i++)
        if (strncmp(state->argv[i], "--", 2) == 0 &&
            strncmp(state->argv[i] + 2, option, length) == 0 &&
            strchr("=", state->argv[i][2 + length]))
            return true;
    return false;
}

/* Whether a word consists of numbers: 1000, 1e6, 64Ki or 0,5,1e8. "1.npy" does not. */
static bool is_numeric(const char *word)
{
    return isdigit((unsigned char)*word) && !word[strspn(word, "0123456789_.,+exkKMGTPEi")];
}

/* Refuses a word without an option before it. Names an option that lacks, and takes such a word. */
static void refuse_argument(struct argp_state *state, const char *text)
{
    static const struct {
        const char *option;
        bool is_numeric;
    } rows[] = {{"in", false},   {"n", true},  {"sizes", true},
                {"count", true}, {"at", true}, {"out", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_numeric == is_numeric(text) &&
            option_exists(state->root_argp, rows[i].option) && !is_given(state, rows[i].option))
            shuf__option_fail(state, EX_USAGE,
                              "argument '%.64s': expected only options; did you mean --%s %.64s?",
                              text, rows[i].option, text);
    shuf__option_fail(state, EX_USAGE, "argument '%.64s': expected only options", text);
}

error_t shuf__option_common(int key, const char *text, struct argp_state *state)
{
    if (key == 'h')
        argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
    else if (key == ARGP_KEY_ARG)
        refuse_argument(state, text);
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

const char *shuf__option_name(const struct argp_option *table, int key)
{
    static char name[32];
    for (const struct argp_option *o = table; o->name; o++)
        if (o->key == key)
            snprintf(name, sizeof name, "--%s", o->name);
    return name;
}

void shuf__option_number(struct argp_state *state, const char *field, const char *text,
                         uint64_t *value)
{
    struct shuf__error error;
    if (shuf__number_parse(field, text, value, &error))
        shuf__option_fail(state, EX_USAGE, "%s", error.text);
}

void shuf__option_number_in(struct argp_state *state, const char *field, const char *text,
                            uint64_t least, uint64_t most, uint64_t *value)
{
    struct shuf__error error;
    if (shuf__number_parse_in(field, text, least, most, value, &error))
        shuf__option_fail(state, EX_USAGE, "%s", error.text);
}

void shuf__option_list(struct argp_state *state, const char *field, char *text, const char *example,
                       void (*take)(struct argp_state *state, const char *field, const char *word,
                                    void *context),
                       void *context)
{
    char *word;
    for (size_t number = 1; (word = strsep(&text, ",")) != NULL; number++) {
        if (!*word)
            shuf__option_fail(
                state, EX_USAGE,
                "%s: number %zu of the list is empty; expected numbers with one comma "
                "between them, as in %s",
                field, number, example);
        take(state, field, word, context);
    }
}

shuf_dtype shuf__option_dtype(struct argp_state *state, const char *field, const char *text,
                              unsigned set)
{
    struct shuf__error error;
    shuf_dtype dtype = SHUF_AUTO;
    if (shuf__dtype_parse(field, text, set, &dtype, &error))
        shuf__option_fail(state, EX_USAGE, "%s", error.text);
    return dtype;
}

void shuf__option_require(struct argp_state *state, const struct shuf__required *options,
                          size_t count)
{
    char names[128] = "", examples[256] = "";
    size_t named = 0, shown = 0, missing = 0;
    for (size_t i = 0; i < count; i++) {
        const char *example = options[i].example;
        if (options[i].given)
            continue;
        named += (size_t)snprintf(names + named, sizeof names - named, "%s%.*s",
                                  missing ? ", " : "", (int)strcspn(example, " "), example);
        shown += (size_t)snprintf(examples + shown, sizeof examples - shown, " %s", example);
        missing++;
    }
    if (missing > 0)
        shuf__option_fail(state, EX_USAGE, "%s: missing; expected %s, as in%s", names,
                          missing == 1 ? "it" : "them", examples);
}

int shuf__option_choice(struct argp_state *state, const char *field, const char *text,
                        const char *const names[], const char *expected)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    char hint[SHUF__HINT];
    shuf__option_fail(state, EX_USAGE, "%s %.64s: expected %s%s", field, *text ? text : "''",
                      expected, shuf__hint_of(text, names, hint));
    return 0;
}

void shuf__option_refuse_both(struct argp_state *state, const char *one, const char *other)
{
    shuf__option_fail(state, EX_USAGE, "%s: excludes %s; expected only one of the two", one, other);
}
