/* SPDX-License-Identifier: MIT
 *
 * See seed_or_key.h.
 */
#include "seed_or_key.h"

#include "json.h"
#include "option_values.h"
#include "print_key.h"
#include "request.h"

#include <inttypes.h>
#include <sysexits.h>

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
