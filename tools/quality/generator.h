/* SPDX-License-Identifier: MIT
 *
 * Generators of permutations that need no daemon. A new generator is a struct and a
 * row of the table in generators.c.
 */
#ifndef SHUF__GENERATOR_H
#define SHUF__GENERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHUF__GENERATOR_STATE = 2048 };

struct shuf__generator {
    const char *name, *what;
    unsigned rounds, most_rounds; /* the usual and the largest number of rounds; 0: no rounds */
    /* Prepares (n, seed, epoch). `state` is aligned memory of SHUF__GENERATOR_STATE bytes, with
     * zeros before the first call. The next call has the same n and rounds, and gets the state of
     * this call. So values that depend on n and rounds alone are computed only once. */
    void (*make)(void *state, uint32_t n, uint64_t seed, uint64_t epoch, unsigned rounds);
    /* Writes the n values. */
    void (*fill)(const void *state, uint32_t n, uint32_t *row);
    /* Returns the modulus of the generator's arithmetic, at least n, or 0 if it has none. NULL: it
     * has none. */
    uint64_t (*modulus)(uint32_t n);
};

/* The table ends with a row whose name is NULL. */
extern const struct shuf__generator *const shuf__generators[];

const struct shuf__generator *shuf__generator_find(const char *name);

extern const struct shuf__generator shuf__generator_philox24, shuf__generator_lcg,
    shuf__generator_fisher_yates, shuf__generator_primefold, shuf__generator_broken_primefold;

/* ---- Single values, for an n that is too large for whole rows ---- */

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
