/* SPDX-License-Identifier: MIT
 *
 * The sizes of allocations. See allocations.h.
 */
#include "allocations.h"

#include <unistd.h>

static uint64_t round_up(uint64_t bytes, uint64_t step)
{
    return (bytes + step - 1) / step * step;
}

/* A block for a result below 2 MiB in host memory has whole pages. All other blocks have whole
 * units of 2 MiB: those of a device, of large results, and of workspaces, which use huge pages. */
static uint64_t unit_of(enum shuf__memory kind, uint64_t bytes)
{
    const bool is_small = kind == SHUF__MEMORY_MEMFD && bytes < SHUF__BLOCK_UNIT;
    return is_small ? (uint64_t)sysconf(_SC_PAGESIZE) : SHUF__BLOCK_UNIT;
}

uint64_t shuf__allocations_least_size(enum shuf__memory kind, uint64_t bytes)
{
    return round_up(bytes, unit_of(kind, bytes));
}

/* Rounds up to one of eight sizes between two powers of two. */
uint64_t shuf__allocations_size(const struct shuf__allocations *allocations, enum shuf__memory kind,
                                uint64_t bytes)
{
    uint64_t step = unit_of(kind, bytes);
    while (step <= bytes / 16)
        step *= 2;
    uint64_t rounded = round_up(bytes, step);
    return rounded <= allocations->budgets[shuf__side_of(kind)].limit
               ? rounded
               : shuf__allocations_least_size(kind, bytes);
}
