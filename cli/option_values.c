/* SPDX-License-Identifier: MIT
 *
 * See option_values.h.
 */
#include "option_values.h"

#include "nearest.h"
#include "number.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

error_t shuf__option_common(int key, const char *text, struct argp_state *state)
{
    if (key == 'h')
        argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
    else if (key == ARGP_KEY_ARG)
        argp_failure(state, EX_USAGE, 0, "argument '%.64s': expected only options", text);
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
        argp_failure(state, EX_USAGE, 0, "%s", error.text);
}

void shuf__option_number_in(struct argp_state *state, const char *field, const char *text,
                            uint64_t least, uint64_t most, uint64_t *value)
{
    struct shuf__error error;
    if (shuf__number_parse_in(field, text, least, most, value, &error))
        argp_failure(state, EX_USAGE, 0, "%s", error.text);
}

shuf_dtype shuf__option_dtype(struct argp_state *state, const char *field, const char *text,
                              unsigned set)
{
    struct shuf__error error;
    shuf_dtype dtype = SHUF_AUTO;
    if (shuf__dtype_parse(field, text, set, &dtype, &error))
        argp_failure(state, EX_USAGE, 0, "%s", error.text);
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
        argp_failure(state, EX_USAGE, 0, "%s: missing; expected %s, as in%s", names,
                     missing == 1 ? "it" : "them", examples);
}

int shuf__option_choice(struct argp_state *state, const char *field, const char *text,
                        const char *const names[], const char *expected)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    char hint[SHUF__HINT];
    argp_failure(state, EX_USAGE, 0, "%s %.64s: expected %s%s", field, *text ? text : "''",
                 expected, shuf__hint_of(text, names, hint));
    return 0;
}

void shuf__option_refuse_both(struct argp_state *state, const char *one, const char *other)
{
    argp_failure(state, EX_USAGE, 0, "%s: excludes %s; expected only one of the two", one, other);
}
