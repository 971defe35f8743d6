/* SPDX-License-Identifier: MIT
 *
 * Named keys, and the files from which they are read. The file NAME has the 16 bytes of a key, or
 * their 32 hex digits. The optional file NAME.group names the group whose members may use the key.
 * The directory of a service's credentials, which systemd makes, has this form.
 */
#ifndef SHUFD_KEY_FILES_H
#define SHUFD_KEY_FILES_H

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

/* Reads all keys of the directory into *set. The caller has allocated set->bits. Ignores files
 * whose names begin with a dot. Fails with SHUF_IO, or with SHUF_INVALID for a file that is not a
 * key. The message never shows the contents of a file that may have a key. */
shuf_status shuf__key_files_read(const char *directory, struct shuf__key_set *set,
                                 struct shuf__error *error);

#endif
