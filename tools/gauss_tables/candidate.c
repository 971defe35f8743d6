/* SPDX-License-Identifier: MIT
 *
 * See candidate.h.
 */
#include "candidate.h"

enum { M = SHUF__MAGNITUDES, NEAR = 8 };

/* ---- The state --------------------------------------------------------------- */

/* With unit variance a defect is, but for squares of defects, one cumulant of the output: that of
 * the sums, as the uniform part has next to none. */
static void find_slopes(struct shuf__state *state)
{
    const shuf__real square =
        shuf__real_power((shuf__real)SHUF__UNIT, 2) / shuf__real_power(2, 2 * SHUF__FRACTION);
    for (int i = 2; i < SHUF__EFFECTS; i++)
        state->per_cumulant[i] =
            (double)(SHUF__DRAWS * shuf__real_power(square, i) / shuf__hermite_length(2 * i));
}

void shuf__state_update(struct shuf__state *state)
{
    state->total = (shuf__series){{0}};
    for (int t = 0; t < SHUF__TABLES; t++)
        for (int i = 0; i < SHUF__ORDERS; i++)
            state->total.of[i] += SHUF__DRAWS * state->cumulants[t].of[i];
    state->room = shuf__law_room(&state->tables);
    const struct shuf__coefficients by = shuf__law_solve(&state->total);
    state->defects = shuf__law_defects(&state->total, &by);
}

void shuf__state_start(struct shuf__state *state, const shuf__tables *tables)
{
    state->tables = *tables;
    for (int t = 0; t < SHUF__TABLES; t++) {
        state->sums[t] = (shuf__series){{0}};
        for (int j = 0; j < M; j++) {
            const shuf__series powers = shuf__powers(tables->of[t][j]);
            for (int i = 0; i < SHUF__ORDERS; i++)
                state->sums[t].of[i] += powers.of[i];
        }
        state->cumulants[t] = shuf__cumulants_of_sums(&state->sums[t], M);
    }
    find_slopes(state);
    shuf__state_update(state);
}

/* ---- Candidates -------------------------------------------------------------- */

static void move_sums(shuf__series *sums, int32_t from, int by)
{
    const shuf__series old = shuf__powers(from), new = shuf__powers(from + by);
    for (int i = 0; i < SHUF__ORDERS; i++)
        sums->of[i] += new.of[i] - old.of[i];
}

static bool in_range(const struct shuf__state *state, const struct shuf__candidate *c, int times)
{
    for (int m = 0; m < c->moves; m++) {
        const int32_t to = state->tables.of[c->table][c->at[m]] + times * c->by[m];
        if (to < 0 || to > SHUF__LARGEST)
            return false;
    }
    return true;
}

static void find_effect(const struct shuf__state *state, struct shuf__candidate *c)
{
    shuf__series sums = state->sums[c->table];
    for (int m = 0; m < c->moves; m++) {
        const int32_t from = state->tables.of[c->table][c->at[m]];
        move_sums(&sums, from, c->by[m]);
        c->effect[1] += (double)c->by[m] * (2 * from + c->by[m]);
    }
    const shuf__series cumulants = shuf__cumulants_of_sums(&sums, M);
    for (int i = 2; i < SHUF__EFFECTS; i++)
        c->effect[i] =
            state->per_cumulant[i] * (double)(cumulants.of[i] - state->cumulants[c->table].of[i]);
}

static void add_move(struct shuf__candidate *c, int at, int by)
{
    for (int m = 0; m < c->moves; m++)
        if (c->at[m] == at) {
            c->by[m] += by;
            return;
        }
    c->at[c->moves] = at;
    c->by[c->moves++] = by;
}

/* Each difference of an order doubles the moves: again, so far away, the other way round. */
static struct shuf__candidate draw(enum shuf__kind kind, struct shuf__random *random)
{
    struct shuf__candidate c = {.moves = 0};
    const int by = shuf__random_below(random, 2) ? 1 : -1;
    int apart[SHUF__THIRD], span = 0;
    for (int k = 0; k < (int)kind; k++)
        span += apart[k] = 1 + shuf__random_below(random, NEAR);
    const int at = shuf__random_below(random, M - span);
    for (int move = 0; move < 1 << kind; move++) {
        int place = at, sign = by;
        for (int k = 0; k < (int)kind; k++)
            if (move >> k & 1) {
                place += apart[k];
                sign = -sign;
            }
        add_move(&c, place, sign);
    }
    return c;
}

struct shuf__candidate shuf__candidate_draw(const struct shuf__state *state, enum shuf__kind kind,
                                            int table, struct shuf__random *random)
{
    for (;;) {
        struct shuf__candidate c = draw(kind, random);
        c.table = table;
        if (in_range(state, &c, 1)) {
            find_effect(state, &c);
            return c;
        }
    }
}

bool shuf__candidate_apply(struct shuf__state *state, const struct shuf__candidate *c, int times)
{
    if (!in_range(state, c, times))
        return false;
    for (int m = 0; m < c->moves; m++) {
        int32_t *magnitude = &state->tables.of[c->table][c->at[m]];
        move_sums(&state->sums[c->table], *magnitude, times * c->by[m]);
        *magnitude += times * c->by[m];
    }
    state->cumulants[c->table] = shuf__cumulants_of_sums(&state->sums[c->table], M);
    return true;
}
