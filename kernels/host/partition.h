/* SPDX-License-Identifier: MIT
 *
 * A shuffle of more than the caches hold, in two passes over memory in order: records go
 * first to the part of the block that they belong to, then to their places in it.
 */
#ifndef SHUF__HOST_PARTITION_H
#define SHUF__HOST_PARTITION_H

#include "backend.h"
#include "simd/simd_ops.h"

/* Whether two passes are faster than moving each record directly. */
bool shuf__partition_pays(const struct shuf__shuffle *shuffle);

/* 2^bits records are a part: the best `bits` for the shuffle on this processor. */
unsigned shuf__partition_bits(const struct shuf__shuffle *shuffle);

/* Bytes that it works in: a place in its part for each record, 2 bytes or, where bits > 16, 4, and
 * some more for each thread. */
uint64_t shuf__partition_bytes(const struct shuf__shuffle *shuffle, int threads, unsigned bits);

/* As shuf__host_shuffle() with primefold and records of at most 127 bytes; 9 <= bits <= 32.
 * `memory` has these bytes, from a whole line of the cache on. */
bool shuf__partition(const struct shuf__simd_ops *simd, int threads,
                     const struct shuf__computation *computation, unsigned bits, void *memory,
                     void *out);

#endif
