/* SPDX-License-Identifier: MIT
 *
 * Single values of permutations, for an n that is too large for whole rows. A new algorithm is one
 * row of the table in lookups.c.
 */
#ifndef SHUF__LOOKUPS_H
#define SHUF__LOOKUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHUF__LOOKUPS_STATE = 1024 };

struct shuf__lookups {
    const char *name;
    bool compacted; /* single values are available only if n is the size of the domain */
    /* `state` is aligned memory of SHUF__LOOKUPS_STATE bytes. The caller fills it with zeros before
     * the first call, and keeps it for the next call, which has the same n. 2 <= n <= 2^62. */
    void (*make)(void *state, uint64_t n, uint64_t seed, uint64_t epoch);
    /* Writes the values at positions 0, stride, ..., all below n. */
    void (*values)(const void *state, uint64_t stride, size_t count, uint64_t *value);
};

/* The table ends with a row whose name is NULL. */
extern const struct shuf__lookups shuf__lookups[];

#endif
