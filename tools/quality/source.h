/* SPDX-License-Identifier: MIT
 *
 * Where permutations come from. A kind of source is a small table of functions at the end of its
 * file; it gives rows as they are asked for and need not check them.
 */
#ifndef SHUF__SOURCE_H
#define SHUF__SOURCE_H

#include "error.h"
#include "shuf.h"
#include "test.h"

struct shuf__generator;

/* Which one, and what it is to give. */
struct shuf__origin {
    const struct shuf__source_type *type;
    const struct shuf__generator *generator; /* of "generator" */
    unsigned rounds;
    const char *input;     /* of "file": a path, or "-" */
    bool wide;             /* of "file": u64 */
    const char *socket;    /* of "daemon"; NULL: the default */
    const char *algorithm; /* of "daemon"; NULL: the default */
    uint64_t seed, epoch;  /* of row 0 */
    bool vary_seed;        /* row s is of seed + s, else of epoch + s */
    uint64_t modulus;      /* that was asked for; 0: the generator's */
};

/* A question for rows. */
struct shuf__ask {
    uint64_t first;
    size_t count;
    enum shuf__relation relation;
    unsigned bit;
};

struct shuf__source_type {
    const char *name;
    bool parallel;  /* threads may read at once; else in order, one at a time */
    bool relatives; /* it knows seeds and epochs */
    bool data;      /* what is invalid about it is what was read, not what was asked */
    size_t state;   /* bytes that a source needs, zeroed */
    shuf_status (*open)(void *state, const struct shuf__origin *, uint32_t n, struct shuf__error *);
    /* *count: how many rows there were, less than asked for only at the end. */
    shuf_status (*read)(void *state, const struct shuf__ask *, uint32_t *rows, size_t *count,
                        struct shuf__error *);
    void (*close)(void *state);
};

extern const struct shuf__source_type shuf__source_generator, shuf__source_file,
    shuf__source_daemon;

/* Modulo what differences of a row's values are looked at; 0: they are plain numbers. */
uint64_t shuf__origin_modulus(const struct shuf__origin *origin, uint32_t n);

/* The seed and epoch of the row number `row`. */
struct shuf__place {
    uint64_t seed, epoch;
};

struct shuf__place shuf__place_of(const struct shuf__origin *origin, enum shuf__relation relation,
                                  unsigned bit, uint64_t row);

/* SHUF_INVALID and a line that names the row and the value unless all rows are permutations.
 * `first` is the number of the first; `marks` has room for n / 32 + 1 words. */
shuf_status shuf__rows_check(uint32_t n, const uint32_t *rows, size_t count, uint64_t first,
                             uint32_t *marks, struct shuf__error *error);

#endif
