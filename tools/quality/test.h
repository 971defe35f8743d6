/* SPDX-License-Identifier: MIT
 *
 * A test: what it counts while rows pass by, and what it makes of the counts.
 *
 * Its memory is an array of words that add up: the words of two halves of the
 * rows, added, are those of all rows. So threads need nothing but to add theirs,
 * and a result does not depend on how many there were. A test is one row of the
 * table in tests.c and one function of a file of its family.
 */
#ifndef SHUF__TEST_H
#define SHUF__TEST_H

#include "findings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHUF__N_MAX = 1 << 28 };

/* What a row is compared with besides the row after it. */
enum shuf__relation {
    SHUF__SELF,
    SHUF__NEIGHBOUR, /* the row of the next seed (or epoch, where the rows are those of seeds) */
    SHUF__FLIPPED,   /* the row of a seed with one other bit */
    SHUF__RELATIONS,
};

/* Rows at hand: each a permutation of 0 .. n - 1, which has been checked. */
struct shuf__rows {
    uint32_t n;
    size_t count;
    const uint32_t *row;
    const uint32_t *relative; /* as many rows, or NULL */
    enum shuf__relation relation;
    unsigned bit;      /* FLIPPED: which one, else 0 */
    uint64_t modulus;  /* of differences; 0: none */
    uint64_t seed;     /* of the first row */
    bool vary_seed;    /* each row is that of the next seed, not of the next epoch */
    uint64_t first;    /* the number of the first row; even */
    uint32_t *scratch; /* room for two rows and n / 32 + 1 words, this thread's */
};

struct shuf__test {
    const char *name, *what;
    uint32_t least, most; /* n; most 0: SHUF__N_MAX */
    bool relatives;       /* needs a source that can give them */
    size_t (*words)(uint32_t n);
    void (*add)(const struct shuf__rows *rows, uint64_t *words);
    void (*judge)(uint32_t n, const uint64_t *words, struct shuf__findings *findings);
};

/* Where rows are those of successive seeds, one and the other of a flipped pair are rows at hand,
 * and would count twice: only the one whose bit is clear is. Higher bits lead out of the block. */
enum { SHUF__ROWS_MAX = 4096 };

static inline bool shuf__rows_seen_from_other(const struct shuf__rows *rows, size_t row)
{
    return rows->vary_seed && rows->relation == SHUF__FLIPPED && rows->bit <= 12 &&
           (rows->seed + row) >> rows->bit & 1;
}

/* Ends with a row whose name is NULL. */
extern const struct shuf__test shuf__tests[];

enum { SHUF__TESTS_MAX = 32 };

static inline bool shuf__test_applies(const struct shuf__test *test, uint32_t n, bool relatives)
{
    return n >= test->least && (test->most == 0 || n <= test->most) &&
           (relatives || !test->relatives);
}

#endif
