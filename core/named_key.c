/* SPDX-License-Identifier: MIT
 *
 * Named keys in requests: see request.h. The name of a key is also the name of its file, so only
 * few characters are allowed. The file NAME.group names the group that may use the key NAME.
 */
#include "request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char group_suffix[] = ".group";

bool shuf__key_name_is_group(const char *name)
{
    const size_t length = strlen(name), end = sizeof group_suffix - 1;
    return length > end && strcmp(name + length - end, group_suffix) == 0;
}

bool shuf__key_name_is_valid(const char *name)
{
    static const char allowed[] =
        "-_.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const size_t length = strlen(name);
    return length > 0 && length <= SHUF__KEY_NAME && strspn(name, allowed) == length &&
           strchr(allowed + 3, name[0]) && !shuf__key_name_is_group(name);
}

static struct shuf__permutation *permutation_of(struct shuf__request *request)
{
    return (struct shuf__permutation *)(uintptr_t)shuf__request_permutation(request);
}

/* These two functions return the addresses of the two words of the request's key. NULL: a request
 * of this kind has no key. */
static uint64_t *low_word(struct shuf__request *request)
{
    struct shuf__permutation *p = permutation_of(request);
    return p ? &p->seed : request->kind == SHUF__STREAM ? &request->stream.seed : NULL;
}

static uint64_t *high_word(struct shuf__request *request)
{
    struct shuf__permutation *p = permutation_of(request);
    return p ? &p->seed_high : request->kind == SHUF__STREAM ? &request->stream.seed_high : NULL;
}

shuf_status shuf__request_name_key(struct shuf__request *request, const char *name,
                                   struct shuf__error *error)
{
    const uint64_t *seed = low_word(request);
    if (!name || !*name)
        return SHUF_OK;
    if (!shuf__key_name_is_valid(name))
        return shuf__fail(
            error, SHUF_INVALID,
            "key %.64s: expected a name of 1 to %d letters, digits, '.', '_' and '-', "
            "the first a letter or digit, without .group at its end",
            name, SHUF__KEY_NAME);
    if (seed && *seed != 0)
        return shuf__fail(error, SHUF_INVALID,
                          "seed %" PRIu64 ": expected 0 with key %s, which replaces it", *seed,
                          name);
    snprintf(request->key.name, sizeof request->key.name, "%s", name);
    return SHUF_OK;
}

void shuf__request_set_key(struct shuf__request *request, const shuf_key *key)
{
    uint64_t *low = low_word(request), *high = high_word(request);
    if (!low)
        return;
    *low = key->word[0];
    *high = key->word[1];
}

void shuf__request_clear_key(struct shuf__request *request)
{
    uint64_t *low = low_word(request), *high = high_word(request);
    if (!low || !request->key.name[0])
        return;
    explicit_bzero(low, sizeof *low);
    explicit_bzero(high, sizeof *high);
}
