/* SPDX-License-Identifier: MIT
 *
 * Totals of each user since the start of the daemon, for the metrics. The first 63 users have a row
 * of their own. The last row is for all others. memory/accounts.h has what each user holds now. All
 * calls are on the loop's thread.
 */
#ifndef SHUFD_USER_TOTALS_H
#define SHUFD_USER_TOTALS_H

#include <stddef.h>
#include <stdint.h>

enum { SHUF__USER_TOTALS = 64 };

struct shuf__user_total {
    uint32_t uid;
    uint64_t requests, values, device_ns;
};

struct shuf__user_totals {
    struct shuf__user_total row[SHUF__USER_TOTALS];
    size_t users; /* number of users that have a row of their own */
};

/* The row of the user, which stays valid. */
struct shuf__user_total *shuf__user_total_of(struct shuf__user_totals *totals, uint32_t uid);

/* The row that counts all users without a row. */
static inline const struct shuf__user_total *
shuf__user_totals_others(const struct shuf__user_totals *totals)
{
    return &totals->row[SHUF__USER_TOTALS - 1];
}

#endif
