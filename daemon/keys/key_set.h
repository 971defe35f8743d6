/* SPDX-License-Identifier: MIT
 *
 * Named keys and their bits, which are apart: keyring.h says where.
 */
#ifndef SHUFD_KEY_SET_H
#define SHUFD_KEY_SET_H

#include "request.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { SHUF__KEYS_MAX = 256 };

/* One key without its bits. */
struct shuf__key_facts {
    char name[SHUF__KEY_NAME + 1];
    uint64_t generation;
    bool has_group;
    gid_t group; /* whose members may use it, besides root and the daemon's user */
};

/* Keys and their bits, in the same order. */
struct shuf__key_set {
    struct shuf__key_facts facts[SHUF__KEYS_MAX];
    unsigned count;
    shuf_key *bits; /* SHUF__KEYS_MAX of them, in the mapping; NULL before the first load */
};

#endif
