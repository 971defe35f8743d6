/* SPDX-License-Identifier: MIT
 *
 * See option_values.h.
 */
#include "option_values.h"

#include "nearest.h"
#include "number.h"
#include "option_parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

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
            shuf__option_exists(state->root_argp, rows[i].option) &&
            !is_given(state, rows[i].option))
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
