/* SPDX-License-Identifier: MIT
 *
 * The memory of each user, and its present number of connections and leases.
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
    const struct shuf__account *account;
};

struct shuf__usages {
    struct shuf__usage user[SHUF__USAGES];
    size_t count;
};

/* The first 32 users found. If `only` is not SHUF__NO_USER, only this user. */
void shuf__usages_read(const struct shuf__service *service, uint32_t only,
                       struct shuf__usages *usages);

#endif
