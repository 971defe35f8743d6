/* SPDX-License-Identifier: MIT
 *
 * See search.h. First a lattice finds how often to take each of many single changes, which leaves
 * what comes of their not adding up exactly. Then changes of four different tables, which do add
 * up: of all ways to take one of each table's list, the best.
 */
#include "search.h"

#include "candidate.h"
#include "lattice.h"
#include "neighbours.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SINGLES = 4000,
    LATTICES = 8,
    FINENESS = 16, /* a lattice's integers are so many to what is aimed at */
    COST = 16,
    TAIL = 16, /* magnitudes of a table */
    LIST = 1024,
    PAIRS = LIST * LIST,
    PATIENCE = 100,
    ROOM = 3, /* what leaves A nearest 2^-19; proof.h says how much else will do */
};

/* What a stage aims at, the squares' sum and then order by order: what later stages can still take
 * back, which is less the higher the order is. */
typedef double aims[SHUF__EFFECTS];

static const aims of_lattices = {0, 4, 1e-13, 3e-15, 1e-16, 3e-18, 1e-19, 3e-20, 3e-20};

static const struct stage {
    const char *name;
    enum shuf__kind kind;
    int rounds;
    aims aim;
} stages[] = {
    {"differences", SHUF__DIFFERENCE, 6, {0, 5, 1e-13, 5e-16, 1e-17, 1e-18, 1e-19, 3e-20, 3e-20}},
    {"curvatures", SHUF__CURVATURE, 8, {0, 2, 2e-17, 2e-18, 5e-19, 2e-19, 2e-19, 3e-20, 3e-20}},
    {"third differences",
     SHUF__THIRD,
     3,
     {0, 0.5, 1e-19, 1e-19, 1e-19, 1e-19, 1e-19, 3e-20, 3e-20}},
};

struct search {
    struct shuf__state state;
    struct shuf__random *random;
    double weight[SHUF__EFFECTS], defect[SHUF__EFFECTS]; /* as a candidate's effects */
    struct shuf__candidate list[4][LIST];                /* [0] of each: no change */
    struct shuf__point *right;                           /* all pairs of the last two lists */
    uint8_t *axis;
};

static void aim_at(struct search *s, const aims aim)
{
    for (int i = 1; i < SHUF__EFFECTS; i++)
        s->weight[i] = 1 / aim[i];
}

/* The weighted squares of the defects; that of the squares' sum is how far it is from what leaves
 * the uniform part its room. */
static double measure(struct search *s)
{
    double squares = 0;
    shuf__state_update(&s->state);
    for (int i = 1; i < SHUF__EFFECTS; i++) {
        s->defect[i] = i == 1 ? (double)(ROOM - s->state.room) : (double)s->state.defects.of[i];
        squares += s->weight[i] * s->defect[i] * s->weight[i] * s->defect[i];
    }
    return squares;
}

static void tell(const struct search *s, const char *what, int round)
{
    fprintf(stderr, "gauss-tables: %s %d: room %" PRId64 ", delta %.2e\n", what, round,
            s->state.room, shuf__law_delta(&s->state.defects));
}

/* Single changes that bring the squares' sum nearer, until a lattice can take the rest. */
static void make_room(struct search *s)
{
    for (int n = 0; n < SINGLES; n++) {
        const struct shuf__candidate c =
            shuf__candidate_draw(&s->state, SHUF__SINGLE, n % SHUF__TABLES, s->random);
        if (fabs(s->defect[1] + c.effect[1]) < fabs(s->defect[1])) {
            shuf__candidate_apply(&s->state, &c, 1);
            measure(s);
        }
    }
}

/* ---- Lattices ---------------------------------------------------------------- */

/* Different magnitudes, from all tables in turn; half of them among the largest, without which
 * the highest orders take ten times as many changes of others. */
static void draw_singles(struct search *s, struct shuf__candidate *single)
{
    for (int k = 0; k < SHUF__VECTORS; k++) {
        bool known; /* or not wanted */
        do {
            single[k] = shuf__candidate_draw(&s->state, SHUF__SINGLE, k % SHUF__TABLES, s->random);
            known = k < SHUF__VECTORS / 2 && single[k].at[0] < SHUF__MAGNITUDES - TAIL;
            for (int other = k % SHUF__TABLES; other < k; other += SHUF__TABLES)
                known = known || single[other].at[0] == single[k].at[0];
        } while (known);
    }
}

/* How often to take each, so that the defects are taken back as far as effects add up. */
static void cancel(const struct search *s, const struct shuf__candidate *single, int *times)
{
    double vector[SHUF__VECTORS][SHUF__COORDINATES], target[SHUF__COORDINATES];
    for (int i = 1; i < SHUF__EFFECTS; i++) {
        target[i - 1] = FINENESS * s->weight[i] * s->defect[i];
        for (int k = 0; k < SHUF__VECTORS; k++)
            vector[k][i - 1] = FINENESS * s->weight[i] * single[k].effect[i];
    }
    shuf__lattice_cancel(vector, target, COST, times);
}

static void run_lattices(struct search *s)
{
    double found = measure(s);
    for (int round = 1; round <= LATTICES; round++) {
        struct shuf__candidate single[SHUF__VECTORS];
        int times[SHUF__VECTORS];
        const struct shuf__state before = s->state;
        draw_singles(s, single);
        cancel(s, single, times);
        bool fits = true;
        for (int k = 0; k < SHUF__VECTORS; k++)
            fits = fits && shuf__candidate_apply(&s->state, &single[k], times[k]);
        const double now = measure(s);
        if (fits && now < found)
            found = now;
        else
            s->state = before;
        tell(s, "lattice", round);
    }
}

/* ---- Pairs of pairs ---------------------------------------------------------- */

static void draw_lists(struct search *s, enum shuf__kind kind)
{
    int table[SHUF__TABLES];
    for (int t = 0; t < SHUF__TABLES; t++)
        table[t] = t;
    for (int l = 0; l < 4; l++) {
        const int other = l + shuf__random_below(s->random, SHUF__TABLES - l), t = table[other];
        table[other] = table[l];
        s->list[l][0] = (struct shuf__candidate){.table = t};
        for (int n = 1; n < LIST; n++)
            s->list[l][n] = shuf__candidate_draw(&s->state, kind, t, s->random);
    }
}

/* The weighted effects of a change of this list together with one of the next. */
static struct shuf__point pair_of(const struct search *s, int list, int n)
{
    const int first = n / LIST, second = n % LIST;
    struct shuf__point pair = {.first = (uint16_t)first, .second = (uint16_t)second};
    const double *one = s->list[list][first].effect, *other = s->list[list + 1][second].effect;
    for (int i = 1; i < SHUF__EFFECTS; i++)
        pair.at[i - 1] = (float)(s->weight[i] * (one[i] + other[i]));
    return pair;
}

struct match {
    float squares;
    struct shuf__point left, right;
};

/* Each pair of the first two lists asks for the pair of the other two that comes nearest to taking
 * back what it and the defects are. */
static struct match find_match(struct search *s, double squares_now)
{
    struct match best = {.squares = (float)squares_now};
    for (int n = 0; n < PAIRS; n++)
        s->right[n] = pair_of(s, 2, n);
    shuf__neighbours_build(s->right, s->axis, PAIRS);
    for (int n = 0; n < PAIRS; n++) {
        const struct shuf__point left = pair_of(s, 0, n);
        float wanted[SHUF__DIMENSIONS];
        for (int d = 0; d < SHUF__DIMENSIONS; d++)
            wanted[d] = -left.at[d] - (float)(s->weight[d + 1] * s->defect[d + 1]);
        const struct shuf__point *right =
            shuf__neighbours_find(s->right, s->axis, PAIRS, wanted, &best.squares, PATIENCE);
        if (right) {
            best.left = left;
            best.right = *right;
        }
    }
    return best;
}

static bool apply_match(struct search *s, const struct match *match)
{
    const int chosen[] = {match->left.first, match->left.second, match->right.first,
                          match->right.second};
    bool fits = true;
    for (int l = 0; l < 4; l++)
        fits = fits && shuf__candidate_apply(&s->state, &s->list[l][chosen[l]], 1);
    return fits;
}

static void run_pairs(struct search *s, const struct stage *stage)
{
    aim_at(s, stage->aim);
    double found = measure(s);
    for (int round = 1; round <= stage->rounds; round++) {
        const struct shuf__state before = s->state;
        draw_lists(s, stage->kind);
        const struct match match = find_match(s, found);
        const bool fits = apply_match(s, &match);
        const double now = measure(s);
        if (fits && now < found)
            found = now;
        else
            s->state = before;
        measure(s);
        tell(s, stage->name, round);
    }
}

/* ---- All --------------------------------------------------------------------- */

bool shuf__search(struct shuf__random *random, shuf__tables *tables)
{
    static struct search s;
    s.random = random;
    s.right = malloc(PAIRS * sizeof *s.right);
    s.axis = malloc(PAIRS);
    const bool room = s.right && s.axis;
    if (room) {
        shuf__state_start(&s.state, tables);
        aim_at(&s, of_lattices);
        measure(&s);
        make_room(&s);
        run_lattices(&s);
        for (size_t n = 0; n < sizeof stages / sizeof *stages; n++)
            run_pairs(&s, &stages[n]);
        *tables = s.state.tables;
    }
    free(s.right);
    free(s.axis);
    return room;
}
