/* SPDX-License-Identifier: MIT
 *
 * Single values of keyed permutations, for n that are too large for whole rows. A new permutation
 * is one row of the table in lookups.c.
 */
#ifndef SHUF__LOOKUPS_H
#define SHUF__LOOKUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHUF__LOOKUPS_STATE = 1024 };

struct shuf__lookups {
    const char *name;
    bool compacted; /* single values are available only if n is the whole domain */
    /* `state` is aligned memory of SHUF__LOOKUPS_STATE bytes. It is zero before the first call and
     * kept for the next, which has the same n. 2 <= n <= 2^62. */
    void (*make)(void *state, uint64_t n, uint64_t seed, uint64_t epoch);
    /* The values at positions 0, stride, ..., all below n. */
    void (*values)(const void *state, uint64_t stride, size_t count, uint64_t *value);
};

/* Ends with a row whose name is NULL. */
extern const struct shuf__lookups shuf__lookups[];

#endif
