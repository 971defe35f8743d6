/* SPDX-License-Identifier: MIT
 *
 * See user_counts.h.
 */
#include "user_counts.h"

struct shuf__user_count *shuf__user_count_of(struct shuf__user_counts *counts, uint32_t uid)
{
    for (size_t i = 0; i < counts->users; i++)
        if (counts->row[i].uid == uid)
            return &counts->row[i];
    if (counts->users == SHUF__USER_ROWS - 1)
        return &counts->row[SHUF__USER_ROWS - 1];
    struct shuf__user_count *fresh = &counts->row[counts->users++];
    fresh->uid = uid;
    return fresh;
}
