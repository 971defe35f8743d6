/* SPDX-License-Identifier: MIT
 *
 * The innermost loop of a shuffle. It moves records to or from the places of a list.
 */
#ifndef SHUF__HOST_MOVE_H
#define SHUF__HOST_MOVE_H

#include "request.h"

/* The `count` places p(first), p(first + 1), ... */
struct shuf__places {
    bool narrow;
    const void *p; /* uint32_t if narrow, else uint64_t */
    uint64_t first;
    size_t count;
};

/* Copies record p(i) of `in` to record i of `out`. With shuffle->inverse it copies record i of `in`
 * to record p(i) of `out`. */
void shuf__move(const struct shuf__shuffle *shuffle, const void *in,
                const struct shuf__places *places, void *out);

/* Does the same as shuf__move() for one piece of the first record: `bytes` bytes from `offset` on.
 */
void shuf__move_piece(const struct shuf__shuffle *shuffle, const void *in,
                      const struct shuf__places *places, uint64_t offset, size_t bytes, void *out);

#endif
