/* SPDX-License-Identifier: MIT
 *
 * The present number of connections and leases, and the memory, of each user.
 */
#ifndef SHUFD_USAGE_H
#define SHUFD_USAGE_H

#include "service.h"

#include <stddef.h>
#include <stdint.h>

enum { SHUF__USAGES = 32 };

struct shuf__usage {
    uint32_t uid;
    uint64_t clients, leases, blocks;
    uint64_t bytes, idle; /* bytes of all blocks, and of the idle ones among them */
};

struct shuf__usages {
    struct shuf__usage user[SHUF__USAGES];
    size_t count;
    uint32_t only; /* counts only this user; SHUF__NO_USER: all users */
};

/* Counts the first 32 users that it finds, and leaves out the others. */
void shuf__usages_count(const struct shuf__service *service, uint32_t only,
                        struct shuf__usages *usages);

#endif
