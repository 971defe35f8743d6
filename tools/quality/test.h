/* SPDX-License-Identifier: MIT
 *
 * The interface of a test. A test counts while it sees rows, and then judges the counts.
 *
 * The counts are in an array of words. To join the counts of two groups of rows, the words are
 * added. So each thread counts in its own words, and a result does not depend on the number of
 * threads. A test is one row of the table in tests.c and one function in the file of its family.
 */
#ifndef SHUF__TEST_H
#define SHUF__TEST_H

#include "findings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHUF__N_MAX = 1 << 28 };

/* A test may compare each row with another one, its relative. */
enum shuf__relation {
    SHUF__SELF,      /* the row itself: no relative */
    SHUF__NEIGHBOUR, /* the row of the next seed (or of the next epoch, if rows vary the seed) */
    SHUF__FLIPPED,   /* the row of a seed with one changed bit */
    SHUF__RELATIONS,
};

/* A group of rows. Each is a permutation of 0 .. n - 1, and has been checked. */
struct shuf__rows {
    uint32_t n;
    size_t count;
    const uint32_t *row;
    const uint32_t *relative; /* the other rows, or NULL */
    enum shuf__relation relation;
    unsigned bit;      /* for FLIPPED, the changed bit; else 0 */
    uint64_t modulus;  /* the modulus of differences; 0: none */
    uint64_t seed;     /* the seed of the first row */
    bool vary_seed;    /* each row has the next seed; if not set, the next epoch */
    uint64_t first;    /* the number of the first row; it is even */
    uint32_t *scratch; /* room for two rows and n / 32 + 1 words, for this thread */
};

struct shuf__test {
    const char *name, *what;
    uint32_t least, most; /* the range of n; most = 0 means SHUF__N_MAX */
    bool relatives;       /* the test needs a source with seeds and epochs */
    size_t (*words)(uint32_t n);
    void (*add)(const struct shuf__rows *rows, uint64_t *words);
    void (*judge)(uint32_t n, const uint64_t *words, struct shuf__findings *findings);
};

/* If rows have successive seeds, a group may have both rows of a pair whose seeds differ in one
 * bit. The pair must count once, so it counts for the row whose bit is 0. For the other row the
 * function below returns true. With a bit above 12, the other row is in another group. */
enum { SHUF__ROWS_MAX = 4096 };

static inline bool shuf__rows_seen_from_other(const struct shuf__rows *rows, size_t row)
{
    return rows->vary_seed && rows->relation == SHUF__FLIPPED && rows->bit <= 12 &&
           (rows->seed + row) >> rows->bit & 1;
}

/* ---- The tests, each in the file of its family ---- */

#define SHUF__FAMILY(name)                                          \
    size_t shuf__##name##_words(uint32_t n);                        \
    void shuf__##name##_add(const struct shuf__rows *, uint64_t *); \
    void shuf__##name##_judge(uint32_t n, const uint64_t *, struct shuf__findings *)

SHUF__FAMILY(orders);
SHUF__FAMILY(places);
SHUF__FAMILY(differences);
SHUF__FAMILY(parallelograms);
SHUF__FAMILY(ratios);
SHUF__FAMILY(characters);
SHUF__FAMILY(fixed_points);
SHUF__FAMILY(cycles);
SHUF__FAMILY(descents);
SHUF__FAMILY(inverse_descents);
SHUF__FAMILY(inversions);
SHUF__FAMILY(patterns);
SHUF__FAMILY(second_differences);
SHUF__FAMILY(mallows);
SHUF__FAMILY(epochs);
SHUF__FAMILY(seeds);
SHUF__FAMILY(avalanche);

/* The table ends with a row whose name is NULL. */
extern const struct shuf__test shuf__tests[];

enum { SHUF__TESTS_MAX = 32 };

static inline bool shuf__test_applies(const struct shuf__test *test, uint32_t n, bool relatives)
{
    return n >= test->least && (test->most == 0 || n <= test->most) &&
           (relatives || !test->relatives);
}

#endif
