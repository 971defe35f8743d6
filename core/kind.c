/* SPDX-License-Identifier: MIT
 *
 * The functions of request.h that all kinds have: the named key of a request, and the table of the
 * kinds.
 */
#include "kind.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Named keys ---- */

/* The name of a key is also the name of its file, so only few characters are allowed. The file
 * NAME.group names the group that may use the key NAME. */

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

/* ---- All kinds ---- */

static const struct shuf__kind *kind_of(const struct shuf__request *request)
{
    static const struct shuf__kind *const kinds[] = {
        [SHUF__PERMUTATION] = &shuf__permutation_kind, [SHUF__STREAM] = &shuf__stream_kind,
        [SHUF__SHUFFLE] = &shuf__shuffle_kind,         [SHUF__LOOK_UP] = &shuf__look_up_kind,
        [SHUF__BUFFER] = &shuf__buffer_kind,           [SHUF__EXCHANGE] = &shuf__exchange_kind,
    };
    return kinds[request->kind];
}

_Static_assert(offsetof(struct shuf__shuffle, permutation) == 0 &&
                   offsetof(struct shuf__look_up, permutation) == 0 &&
                   offsetof(struct shuf__plan, permutation) == 0,
               "the permutation of a request is its first member");

const struct shuf__permutation *shuf__request_permutation(const struct shuf__request *request)
{
    return kind_of(request)->has_permutation ? &request->permutation : NULL;
}

enum shuf__distribution shuf__request_distribution(const struct shuf__request *request)
{
    return request->kind == SHUF__STREAM ? request->stream.distribution : SHUF_DISTRIBUTION_NONE;
}

struct shuf__shape shuf__request_shape(const struct shuf__request *request)
{
    const struct shuf__kind *kind = kind_of(request);
    return kind->shape ? kind->shape(request) : (struct shuf__shape){0};
}

const char *shuf__request_name(const struct shuf__request *request)
{
    return request->kind == SHUF__STREAM ? shuf__distribution_name(request->stream.distribution)
                                         : kind_of(request)->name;
}

int shuf__request_compare(const struct shuf__request *a, const struct shuf__request *b)
{
    const int names = strcmp(a->key.name, b->key.name);
    SHUF__RETURN_UNLESS_EQUAL(a->kind, b->kind);
    SHUF__RETURN_UNLESS_EQUAL(names, 0);
    SHUF__RETURN_UNLESS_EQUAL(a->key.check, b->key.check);
    if (a->kind != SHUF__PERMUTATION)
        SHUF__RETURN_UNLESS_EQUAL(a->dtype, b->dtype);
    return kind_of(a)->compare(a, b);
}

const char *shuf__request_describe(const struct shuf__request *request, bool all,
                                   char text[SHUF__REQUEST_TEXT])
{
    kind_of(request)->describe(request, all, text);
    return text;
}
