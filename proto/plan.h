/* SPDX-License-Identifier: MIT
 *
 * What a Permute request means: every default filled in, every range checked,
 * slices and shards reduced to one form. The daemon trusts only this; the
 * client uses the same function to size its memory.
 */
#ifndef SHUF__PLAN_H
#define SHUF__PLAN_H

#include "error.h"
#include "shuf.pb-c.h"

#include <stdint.h>

#define SHUF__N_MAX (UINT64_C(1) << 62)

struct shuf__plan {
    uint64_t n, seed;
    uint64_t epoch, rows; /* row r has epoch + r (mod 2^64) */
    /* Value i of a row stands at position (offset + i * stride) mod n, where
     * offset < n and 1 <= stride <= 2^62. Only a padded shard wraps, once at most, by
     * its last value. count may be 0 (a shard with drop_last and world > n). */
    uint64_t offset, count, stride;
    Shuf__Dtype dtype; /* never AUTO */
    unsigned width;    /* bytes of a value: 4 or 8 */
    uint64_t bytes;    /* rows * count * width */
};

/* The algorithm's name is not looked at: which ones exist is the daemon's to
 * say. Fails with SHUF_INVALID, or SHUF_NO_MEMORY for a size past 2^63. */
shuf_status shuf__plan_make(const Shuf__Permute *request, struct shuf__plan *plan,
                            struct shuf__error *error);

#endif
