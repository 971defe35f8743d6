/* SPDX-License-Identifier: MIT
 *
 * Small changes of one table and what they do to the output. Cumulants add up over tables, so
 * changes of different tables do too, exactly.
 */
#ifndef SHUF__GAUSS_CANDIDATE_H
#define SHUF__GAUSS_CANDIDATE_H

#include "law.h"
#include "random.h"

#include <stdbool.h>

/* A difference moves the output some forty times less than a single change, a curvature four times
 * less again; there it stays, since the squares of changes do not take each other back. Third
 * differences still mix the orders otherwise. */
enum shuf__kind {
    SHUF__SINGLE,     /* a magnitude by one */
    SHUF__DIFFERENCE, /* two that are near each other by one, in opposite directions */
    SHUF__CURVATURE,  /* two such differences, near each other and opposite */
    SHUF__THIRD,      /* two such curvatures */
};

enum { SHUF__MOVES = 8, SHUF__EFFECTS = SHUF__MATCHED + 1 };

struct shuf__candidate {
    int table, moves;
    int at[SHUF__MOVES], by[SHUF__MOVES];
    double effect[SHUF__EFFECTS]; /* [1]: on the sum of squares; [i]: on the defect of order 2i */
};

/* Tables with what belongs to them, kept up to date. */
struct shuf__state {
    shuf__tables tables;
    shuf__series sums[SHUF__TABLES], cumulants[SHUF__TABLES], total; /* total: of S */
    shuf__series defects;
    int64_t room;
    double per_cumulant[SHUF__EFFECTS];
};

void shuf__state_start(struct shuf__state *state, const shuf__tables *tables);

/* A change of the table that leaves all magnitudes in range. */
struct shuf__candidate shuf__candidate_draw(const struct shuf__state *state, enum shuf__kind kind,
                                            int table, struct shuf__random *random);

/* Applies it so many times; -1 takes it back. False, and nothing done, where a magnitude would
 * leave the range. */
bool shuf__candidate_apply(struct shuf__state *state, const struct shuf__candidate *candidate,
                           int times);

/* After candidates were applied: the law anew. */
void shuf__state_update(struct shuf__state *state);

#endif
