/* SPDX-License-Identifier: MIT
 *
 * A shuffle of more than the caches hold, in two passes over memory in order: records go
 * first to the part of the block that they belong to, then to their places in it.
 */
#ifndef SHUF__CPU_PARTITION_H
#define SHUF__CPU_PARTITION_H

#include "backend.h"
#include "lanes.h"

/* Whether that is faster than moving each record at once. */
bool shuf__partition_pays(const struct shuf__job *job);

/* 2^bits records are a part: what is best for the job on this processor. */
unsigned shuf__partition_bits(const struct shuf__job *job);

/* As shuf__cpu_shuffle() with primefold and records of at most 127 bytes, `*done` for what that
 * returns; 9 <= bits <= 32. False, and nothing done, where there is no memory for a list of places,
 * of 2 or 4 bytes a record. */
bool shuf__partition(const struct shuf__lanes *lanes, int threads, const struct shuf__job *job,
                     unsigned bits, void *out, bool *done);

#endif
