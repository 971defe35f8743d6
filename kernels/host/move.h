/* SPDX-License-Identifier: MIT
 *
 * The innermost loop of a shuffle: moves records to or from the places of a list.
 */
#ifndef SHUF__HOST_MOVE_H
#define SHUF__HOST_MOVE_H

#include "request.h"

/* p(first), p(first + 1), ..., `count` of them. */
struct shuf__places {
    bool narrow;
    const void *p; /* uint32_t where narrow, else uint64_t */
    uint64_t first;
    size_t count;
};

/* Record i of `out` becomes record p(i) of `in`; with shuffle->inverse record p(i) of `out` becomes
 * record i of `in`. */
void shuf__move(const struct shuf__shuffle *shuffle, const void *in,
                const struct shuf__places *places, void *out);

/* The same for `bytes` bytes from `offset` on of the record at the first place alone. */
void shuf__move_piece(const struct shuf__shuffle *shuffle, const void *in,
                      const struct shuf__places *places, uint64_t offset, size_t bytes, void *out);

#endif
