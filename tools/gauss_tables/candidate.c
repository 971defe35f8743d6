/* SPDX-License-Identifier: MIT
 *
 * See candidate.h.
 */
#include "candidate.h"

enum { M = SHUF__MAGNITUDES, NEAR = 8 };

/* ---- The state --------------------------------------------------------------- */

/* With unit variance and kurtosis 3 a defect is, but for squares of defects, one cumulant of the
 * output: of the sums, and of c, which follows their kurtosis. */
static void find_slopes(struct shuf__state *state)
{
    const shuf__series steps = shuf__cumulants_of_steps();
    for (int i = 2; i < SHUF__EFFECTS; i++) {
        const int n = 2 * i;
        const shuf__real length = shuf__hermite_length(n);
        const shuf__real sums = shuf__real_power(state->by.a, n) + shuf__real_power(state->by.b, n);
        const shuf__real part = shuf__real_power(state->by.c, n) * steps.of[i];
        state->per_cumulant[i] = (double)(2 * sums / length);
        state->per_kurtosis[i] = i == 2 ? 0 : (double)(part * i / state->total.of[2] / length);
    }
}

void shuf__state_update(struct shuf__state *state)
{
    state->total = (shuf__series){{0}};
    for (int t = 0; t < SHUF__TABLES; t++)
        for (int i = 0; i < SHUF__ORDERS; i++)
            state->total.of[i] += 2 * state->cumulants[t].of[i];
    state->by = shuf__law_solve(&state->total);
    state->defects = shuf__law_defects(&state->total, &state->by);
    find_slopes(state);
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
    shuf__state_update(state);
}

double shuf__state_kurtosis(const struct shuf__state *state)
{
    return (double)(state->total.of[2] / 2) * state->per_cumulant[2];
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
    for (int m = 0; m < c->moves; m++)
        move_sums(&sums, state->tables.of[c->table][c->at[m]], c->by[m]);
    const shuf__series cumulants = shuf__cumulants_of_sums(&sums, M);
    double change[SHUF__EFFECTS];
    for (int i = 2; i < SHUF__EFFECTS; i++)
        change[i] = (double)(cumulants.of[i] - state->cumulants[c->table].of[i]);
    for (int i = 2; i < SHUF__EFFECTS; i++)
        c->effect[i] = state->per_cumulant[i] * change[i] + state->per_kurtosis[i] * change[2];
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

static struct shuf__candidate draw(enum shuf__kind kind, struct shuf__random *random)
{
    struct shuf__candidate c = {.moves = 0};
    const int by = shuf__random_below(random, 2) ? 1 : -1;
    const int near = kind >= SHUF__DIFFERENCE ? 1 + shuf__random_below(random, NEAR) : 0;
    const int far = kind >= SHUF__CURVATURE ? 1 + shuf__random_below(random, NEAR) : 0;
    const int at = shuf__random_below(random, M - near - far);
    add_move(&c, at, by);
    if (kind >= SHUF__DIFFERENCE)
        add_move(&c, at + near, -by);
    if (kind >= SHUF__CURVATURE) {
        add_move(&c, at + far, -by);
        add_move(&c, at + far + near, by);
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
