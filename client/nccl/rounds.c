/* SPDX-License-Identifier: MIT
 *
 * See rounds.h.
 */
#include "rounds.h"

#include <stdbool.h>

uint64_t shuf__nccl_buffer_records(const struct shuf__nccl_segment *segments, unsigned world,
                                   uint64_t rounds)
{
    uint64_t records = 0;
    for (unsigned r = 0; r < world; r++)
        records += shuf__nccl_slice_count(segments[r].count, 0, rounds);
    return records;
}

static uint64_t longest(const struct shuf__nccl_segment *segments, unsigned world)
{
    uint64_t most = 0;
    for (unsigned r = 0; r < world; r++)
        most = segments[r].count > most ? segments[r].count : most;
    return most;
}

uint64_t shuf__nccl_count_rounds(const struct shuf__nccl_segment *leaving,
                                 const struct shuf__nccl_segment *coming, unsigned world,
                                 uint64_t record, uint64_t budget)
{
    const uint64_t room = budget / 2 / record;
    const uint64_t a = longest(leaving, world), b = longest(coming, world);
    uint64_t least = 2, most = a > b ? a : b;
    while (least < most) {
        const uint64_t middle = least + (most - least) / 2;
        const bool fits = shuf__nccl_buffer_records(leaving, world, middle) +
                              shuf__nccl_buffer_records(coming, world, middle) <=
                          room;
        if (fits)
            most = middle;
        else
            least = middle + 1;
    }
    return least;
}
