/* SPDX-License-Identifier: MIT
 *
 * Whether two arrays of a caller overlap.
 */
#ifndef SHUF__OVERLAP_H
#define SHUF__OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

/* Both have `bytes` bytes. */
static inline bool shuf__overlap(const void *a, const void *b, uint64_t bytes)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return x < y ? y - x < bytes : x - y < bytes;
}

#endif
