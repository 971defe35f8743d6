/* SPDX-License-Identifier: MIT
 *
 * Shuffles an array that is larger than the caches, in two passes that read and write memory in
 * order. The first pass moves each record to its part of the output. The second pass moves it to
 * its place in the part.
 */
#ifndef SHUF__HOST_PARTITION_H
#define SHUF__HOST_PARTITION_H

#include "backend.h"
#include "simd/simd_ops.h"

/* Whether two passes are faster than moving each record directly. */
bool shuf__partition_pays(const struct shuf__shuffle *shuffle);

/* The best `bits` for the shuffle on this processor: a part has 2^bits records. */
unsigned shuf__partition_bits(const struct shuf__shuffle *shuffle);

/* Bytes of the workspace: for each record its place in its part (2 bytes, or 4 if bits > 16), and
 * some memory for each thread. */
uint64_t shuf__partition_bytes(const struct shuf__shuffle *shuffle, int threads, unsigned bits);

/* Does the work of shuf__host_shuffle(), for primefold and records of at most 127 bytes, with 9 <=
 * bits <= 32. `memory` has shuf__partition_bytes() and is aligned to a cache line. */
bool shuf__partition(const struct shuf__simd_ops *simd, int threads,
                     const struct shuf__computation *computation, unsigned bits, void *memory,
                     void *out);

#endif
