/* SPDX-License-Identifier: MIT
 *
 * See user_totals.h.
 */
#include "user_totals.h"

struct shuf__user_total *shuf__user_total_of(struct shuf__user_totals *totals, uint32_t uid)
{
    for (size_t i = 0; i < totals->users; i++)
        if (totals->row[i].uid == uid)
            return &totals->row[i];
    if (totals->users == SHUF__USER_TOTALS - 1)
        return &totals->row[SHUF__USER_TOTALS - 1];
    struct shuf__user_total *fresh = &totals->row[totals->users++];
    fresh->uid = uid;
    return fresh;
}
