/* SPDX-License-Identifier: MIT
 *
 * See option_parse.h. This file checks all words before getopt does, because getopt has its own
 * message for an unknown option.
 */
#include "option_parse.h"

#include "error.h"
#include "nearest.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

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

bool shuf__option_exists(const struct argp *argp, const char *name)
{
    return every_option(argp, is_named, &name);
}

static const char *find_synonym(const struct argp *argp, const char *word)
{
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (strcmp(word, synonyms[i][0]) == 0 && shuf__option_exists(argp, synonyms[i][1]))
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
