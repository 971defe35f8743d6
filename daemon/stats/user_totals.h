/* SPDX-License-Identifier: MIT
 *
 * Counts for each user since the start of the daemon. The first 63 users have a row of their own.
 * The last row is for all others. All calls are on the loop's thread.
 */
#ifndef SHUFD_USER_COUNTS_H
#define SHUFD_USER_COUNTS_H

#include <stddef.h>
#include <stdint.h>

enum { SHUF__USER_ROWS = 64 };

struct shuf__user_count {
    uint32_t uid;
    uint64_t requests, values, device_ns;
};

struct shuf__user_counts {
    struct shuf__user_count row[SHUF__USER_ROWS];
    size_t users; /* number of users that have a row of their own */
};

/* The row of the user, which stays valid. */
struct shuf__user_count *shuf__user_count_of(struct shuf__user_counts *counts, uint32_t uid);

/* The row that counts all users without a row. */
static inline const struct shuf__user_count *
shuf__user_count_others(const struct shuf__user_counts *counts)
{
    return &counts->row[SHUF__USER_ROWS - 1];
}

#endif
