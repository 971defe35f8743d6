/* SPDX-License-Identifier: MIT
 *
 * See order_options.h.
 */
#include "order_options.h"

#include "json.h"
#include "option_parse.h"
#include "option_values.h"
#include "request.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

static bool is_key(const char *key)
{
    return key && *key;
}

void shuf__check_seed_options(struct argp_state *state, bool seed, bool key)
{
    if (seed && key)
        shuf__option_refuse_both(state, "--key", "--seed");
}

const char *shuf__key_option(struct argp_state *state, const char *text)
{
    if (!shuf__key_name_is_valid(text))
        shuf__option_fail(
            state, EX_USAGE,
            "--key %.64s: expected the name of a key, 1 to %d letters, digits, '.', '_' and "
            "'-'",
            *text ? text : "''", SHUF__KEY_NAME);
    return text;
}

const char *shuf__seed_text(char text[SHUF__SEED_TEXT], const char *key, uint64_t seed)
{
    if (is_key(key))
        snprintf(text, SHUF__SEED_TEXT, "key %s", key);
    else
        snprintf(text, SHUF__SEED_TEXT, "seed %" PRIu64, seed);
    return text;
}

void shuf__print_seed(FILE *to, const char *key, uint64_t seed)
{
    shuf__print_key(to, is_key(key) ? "key" : "seed");
    if (is_key(key))
        fprintf(to, "%s\n", key);
    else
        fprintf(to, "%" PRIu64 "\n", seed);
}

void shuf__json_seed(json_t *object, const char *key, uint64_t seed)
{
    if (is_key(key))
        shuf__json_text(object, "key", key);
    else
        shuf__json_decimal(object, "seed", seed);
}

/* ---- the algorithm ---- */

void shuf__json_windows(json_t *object, const shuf_permutation *permutation)
{
    if (permutation->window == 0)
        return;
    shuf__json_integer(object, "chunk", permutation->chunk);
    shuf__json_integer(object, "window", permutation->window);
}

const char *shuf__algorithm_option(struct argp_state *state, const char *text)
{
    char expected[SHUF__ALGORITHM_LIST];
    struct shuf__error error;
    enum shuf_algorithm algorithm;
    if (!*text) /* libshuf would take the default */
        shuf__option_fail(state, EX_USAGE, "--algorithm \"\": expected %s",
                          shuf__algorithm_list(expected));
    if (shuf__algorithm_parse(text, &algorithm, &error))
        shuf__option_fail(state, EX_USAGE, "%s", error.text);
    return text;
}

/* ---- printing a key ---- */

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static bool has_colours(FILE *to)
{
    const char *terminal = getenv("TERM");
    return isatty(fileno(to)) && !is_set("NO_COLOR") && terminal && strcmp(terminal, "dumb") != 0;
}

void shuf__print_key(FILE *to, const char *key)
{
    const bool bold = has_colours(to);
    fprintf(to, "%s%-12s%s", bold ? "\033[1m" : "", key, bold ? "\033[0m" : "");
}
