/* SPDX-License-Identifier: MIT
 *
 * Generators of permutations that need no daemon. A new one is one file and one
 * row of the table in generators.c.
 */
#ifndef SHUF__GENERATOR_H
#define SHUF__GENERATOR_H

#include <stddef.h>
#include <stdint.h>

enum { SHUF__GENERATOR_STATE = 2048 };

struct shuf__generator {
    const char *name, *what;
    unsigned rounds, most_rounds; /* the algorithm's rounds, and the most possible; 0: no rounds */
    /* Prepares (n, seed, epoch). `state` is aligned memory of SHUF__GENERATOR_STATE bytes. It is
     * zero before the first call and kept for the next, which has the same n and rounds. So parts
     * that depend only on these are made once. */
    void (*make)(void *state, uint32_t n, uint64_t seed, uint64_t epoch, unsigned rounds);
    /* Writes the n values. */
    void (*fill)(const void *state, uint32_t n, uint32_t *row);
    /* The modulus of its arithmetic, at least n. 0, or NULL here: none. */
    uint64_t (*modulus)(uint32_t n);
};

/* Ends with a row whose name is NULL. */
extern const struct shuf__generator *const shuf__generators[];

const struct shuf__generator *shuf__generator_find(const char *name);

extern const struct shuf__generator shuf__generator_philox24, shuf__generator_lcg,
    shuf__generator_fisher_yates, shuf__generator_primefold, shuf__generator_broken_primefold;

#endif
