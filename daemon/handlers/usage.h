/* SPDX-License-Identifier: MIT
 *
 * The connections, leases and memory of each user at present.
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
    uint64_t bytes, idle; /* of blocks; of these, idle */
};

struct shuf__usages {
    struct shuf__usage user[SHUF__USAGES];
    size_t count;
    uint32_t only; /* this user; SHUF__NO_USER: all */
};

/* Counts the first 32 users found, and leaves out others. */
void shuf__usages_count(const struct shuf__service *service, uint32_t only,
                        struct shuf__usages *usages);

#endif
