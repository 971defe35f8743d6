/* SPDX-License-Identifier: MIT
 *
 * The innermost loop of a shuffle: records to or from places that stand in a list.
 */
#ifndef SHUF__CPU_MOVE_H
#define SHUF__CPU_MOVE_H

#include "backend.h"

/* p(first), p(first + 1), ..., `count` of them. */
struct shuf__places {
    bool narrow;
    const void *p; /* uint32_t where narrow, else uint64_t */
    uint64_t first;
    size_t count;
};

/* Record i of `out` becomes record p(i) of the job's input; with job->inverse the other way. */
void shuf__move(const struct shuf__job *job, const struct shuf__places *places, void *out);

#endif
