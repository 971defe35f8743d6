/* SPDX-License-Identifier: MIT
 *
 * Single values of keyed permutations, for n too large for whole rows. A new one is
 * one row of the table in lookups.c.
 */
#ifndef SHUF__LOOKUPS_H
#define SHUF__LOOKUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHUF__LOOKUPS_STATE = 1024 };

struct shuf__lookups {
    const char *name;
    bool compacted; /* the values below n are known one by one only where n is the whole domain */
    /* `state` is aligned memory of SHUF__LOOKUPS_STATE bytes, zeroed before the first call and
     * kept for the next, whose n is the same. 2 <= n <= 2^62. */
    void (*make)(void *state, uint64_t n, uint64_t seed, uint64_t epoch);
    /* The values at positions 0, stride, ..., all below n. */
    void (*values)(const void *state, uint64_t stride, size_t count, uint64_t *value);
};

/* Ends with a row whose name is NULL. */
extern const struct shuf__lookups shuf__lookups[];

#endif
