/* SPDX-License-Identifier: MIT
 *
 * Named keys. Their bits are in memory of their own (keyring.h).
 */
#ifndef SHUFD_KEY_SET_H
#define SHUFD_KEY_SET_H

#include "request.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

enum { SHUF__KEYS_MAX = 256 };

/* One key without its bits. */
struct shuf__key_facts {
    char name[SHUF__KEY_NAME + 1];
    uint64_t check; /* of its bits: as in struct shuf__named_key */
    bool has_group;
    gid_t group; /* its members may use the key, besides root and the daemon's user */
};

/* Keys and their bits, in the same order. */
struct shuf__key_set {
    struct shuf__key_facts facts[SHUF__KEYS_MAX];
    unsigned count;
    shuf_key *bits; /* an array of SHUF__KEYS_MAX in locked memory; NULL before the first load */
};

/* NULL: the set has no key of this name. */
static inline const struct shuf__key_facts *shuf__key_set_find(const struct shuf__key_set *set,
                                                               const char *name)
{
    for (unsigned i = 0; i < set->count; i++)
        if (strcmp(set->facts[i].name, name) == 0)
            return &set->facts[i];
    return NULL;
}

#endif
