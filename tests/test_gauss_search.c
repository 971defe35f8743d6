/* SPDX-License-Identifier: MIT
 *
 * What makes the tables of Gaussian streams, part by part: derivatives, Newton's method, the
 * lattice, the nearest points.
 */
#include "candidate.h"
#include "header.h"
#include "lattice.h"
#include "neighbours.h"
#include "start.h"
#include "support/cmocka_all.h"
#include "support/random.h"

#include <stdlib.h>
#include <string.h>

static double uniform(void)
{
    return (double)(random_u64() >> 11) * 0x1p-53;
}

/* ---- Conditions -------------------------------------------------------------- */

/* Sums of 12 uniforms: near enough to normal that Newton finds tables close by. */
static void draw_reals(shuf__reals *x)
{
    for (int v = 0; v < SHUF__VARIABLES; v++) {
        x->of[v] = -6;
        for (int i = 0; i < 12; i++)
            x->of[v] += uniform();
        x->of[v] = fabs(x->of[v]);
    }
}

static void slopes_are_differences(void **state)
{
    (void)state;
    random_start("slopes_are_differences");
    static struct shuf__conditions here, after, before;
    static shuf__reals x;
    const double step = 1e-5;
    draw_reals(&x);
    shuf__conditions_start(&here);
    after = before = here;
    shuf__conditions_look(&here, &x);
    for (int repeat = 0; repeat < 50; repeat++) {
        const int v = (int)random_below(SHUF__VARIABLES), t = v / SHUF__MAGNITUDES;
        const double at = x.of[v];
        x.of[v] = at + step;
        shuf__conditions_look(&after, &x);
        x.of[v] = at - step;
        shuf__conditions_look(&before, &x);
        x.of[v] = at;
        for (int i = 1; i <= SHUF__MATCHED; i++) {
            const double slope = here.table[t].slope[i][v % SHUF__MAGNITUDES];
            const double found =
                (after.table[t].cumulant[i] - before.table[t].cumulant[i]) / (2 * step);
            if (!(fabs(found - slope) <= 1e-6 * (1 + fabs(slope))))
                fail_msg("order %d at %g: slope %g, difference %g", 2 * i, at, slope, found);
        }
    }
}

/* The conditions' cumulants are those of the proof. */
static void conditions_are_cumulants(void **state)
{
    (void)state;
    static struct shuf__conditions c;
    static shuf__reals x;
    shuf__tables tables;
    struct shuf__coefficients by;
    assert_true(shuf__header_read(&tables, &by));
    for (int v = 0; v < SHUF__VARIABLES; v++)
        x.of[v] = tables.of[v / SHUF__MAGNITUDES][v % SHUF__MAGNITUDES] / (double)SHUF__UNIT;
    shuf__conditions_start(&c);
    shuf__conditions_look(&c, &x);
    assert_true(shuf__conditions_largest(&c) < 1e-4); /* what rounding and search changed */
    for (int t = 0; t < SHUF__TABLES; t++) {
        const shuf__series exact = shuf__cumulants(tables.of[t], SHUF__MAGNITUDES);
        for (int i = 1; i <= SHUF__MATCHED; i++) {
            const double expected = (double)(exact.of[i] / shuf__hermite_length(2 * i));
            assert_true(fabs(c.table[t].cumulant[i] - expected) < 1e-11);
        }
    }
}

/* The committed tables, shaken: nearby there are others that meet all conditions. */
static void polish_meets_the_conditions(void **state)
{
    (void)state;
    random_start("polish_meets_the_conditions");
    static struct shuf__conditions c;
    static shuf__reals x, start;
    shuf__tables tables;
    struct shuf__coefficients by;
    assert_true(shuf__header_read(&tables, &by));
    for (int v = 0; v < SHUF__VARIABLES; v++)
        x.of[v] = tables.of[v / SHUF__MAGNITUDES][v % SHUF__MAGNITUDES] / (double)SHUF__UNIT +
                  1e-3 * (uniform() - 0.5);
    start = x;
    shuf__conditions_start(&c);
    shuf__conditions_look(&c, &x);
    assert_true(shuf__conditions_largest(&c) > 1e-6);
    assert_true(shuf__polish(&c, &x));
    assert_true(shuf__conditions_largest(&c) < 1e-12);
    for (int v = 0; v < SHUF__VARIABLES; v++)
        assert_true(fabs(x.of[v] - start.of[v]) < 0.1);
}

/* ---- Changes ----------------------------------------------------------------- */

/* Effects of changes of different tables add up to what they do together, that on the sum of
 * squares exactly. */
static void effects_add_up(void **state)
{
    (void)state;
    random_start("effects_add_up");
    static struct shuf__state s;
    shuf__tables tables;
    struct shuf__coefficients by;
    struct shuf__random random = {random_u64(), 0};
    assert_true(shuf__header_read(&tables, &by));
    for (int kind = SHUF__SINGLE; kind <= SHUF__THIRD; kind++) {
        double sum[SHUF__EFFECTS] = {0}, sizes[SHUF__EFFECTS] = {0};
        shuf__state_start(&s, &tables);
        const struct shuf__state before = s;
        for (int t = 0; t < 4; t++) {
            const struct shuf__candidate c = shuf__candidate_draw(&before, kind, 4 * t, &random);
            assert_true(shuf__candidate_apply(&s, &c, 1));
            for (int i = 1; i < SHUF__EFFECTS; i++) {
                sum[i] += c.effect[i];
                sizes[i] += fabs(c.effect[i]); /* which may cancel each other */
            }
        }
        shuf__state_update(&s);
        assert_true((double)(before.room - s.room) == sum[1]);
        const double wider = sum[1] * 0x1p-43; /* where C cannot make up for it */
        for (int i = 2; i < SHUF__EFFECTS; i++) {
            const double found = (double)(s.defects.of[i] - before.defects.of[i]);
            /* 1e-18: defects are sums of long doubles, each rounded to 2^-64 of what it is. */
            if (!(fabs(found - sum[i]) <= 1e-7 * sizes[i] + wider * wider + 1e-18))
                fail_msg("order %d: %g, the sum of effects %g", 2 * i, found, sum[i]);
        }
    }
}

/* In the geometric mean a difference has less than half the effect of a single change, and a
 * curvature less than half of a difference's. */
static void differences_are_finer(void **state)
{
    (void)state;
    random_start("differences_are_finer");
    static struct shuf__state s;
    shuf__tables tables;
    double before = INFINITY;
    struct shuf__coefficients by;
    struct shuf__random random = {random_u64(), 0};
    assert_true(shuf__header_read(&tables, &by));
    shuf__state_start(&s, &tables);
    for (int kind = SHUF__SINGLE; kind <= SHUF__CURVATURE; kind++) {
        double sum = 0;
        for (int n = 0; n < 1000; n++)
            sum += log10(1e-25 +
                         fabs(shuf__candidate_draw(&s, kind, n % SHUF__TABLES, &random).effect[2]));
        if (!(sum < before - 301))
            fail_msg("differences of order %d: 10^%g, before 10^%g", kind, sum / 1000,
                     before / 1000);
        before = sum;
    }
}

/* Taken back, a change leaves nothing; and none leaves the range. */
static void changes_are_undone(void **state)
{
    (void)state;
    random_start("changes_are_undone");
    static struct shuf__state s;
    shuf__tables tables;
    struct shuf__coefficients by;
    struct shuf__random random = {random_u64(), 0};
    assert_true(shuf__header_read(&tables, &by));
    shuf__state_start(&s, &tables);
    const struct shuf__candidate c = shuf__candidate_draw(&s, SHUF__CURVATURE, 7, &random);
    assert_true(shuf__candidate_apply(&s, &c, 3));
    assert_memory_not_equal(&s.tables, &tables, sizeof tables);
    assert_true(shuf__candidate_apply(&s, &c, -3));
    assert_memory_equal(&s.tables, &tables, sizeof tables);
    const struct shuf__candidate single = shuf__candidate_draw(&s, SHUF__SINGLE, 3, &random);
    assert_false(shuf__candidate_apply(&s, &single, SHUF__LARGEST + 1));
    assert_false(shuf__candidate_apply(&s, &single, -SHUF__LARGEST - 1));
    assert_memory_equal(&s.tables, &tables, sizeof tables);
}

/* ---- Searching --------------------------------------------------------------- */

/* 48 vectors of a thousand can cancel any target of that size to a few units, by small multiples.
 */
static void lattice_cancels(void **state)
{
    (void)state;
    random_start("lattice_cancels");
    for (int repeat = 0; repeat < 2; repeat++) {
        double vector[SHUF__VECTORS][SHUF__COORDINATES], left[SHUF__COORDINATES];
        int times[SHUF__VECTORS];
        for (int i = 0; i < SHUF__COORDINATES; i++) {
            left[i] = rint(20000 * (uniform() - 0.5));
            for (int k = 0; k < SHUF__VECTORS; k++)
                vector[k][i] = rint(2000 * (uniform() - 0.5));
        }
        shuf__lattice_cancel(vector, left, 4, times);
        for (int k = 0; k < SHUF__VECTORS; k++) {
            assert_in_range(times[k] + 25, 0, 50);
            for (int i = 0; i < SHUF__COORDINATES; i++)
                left[i] += times[k] * vector[k][i];
        }
        for (int i = 0; i < SHUF__COORDINATES; i++)
            assert_true(fabs(left[i]) < 40);
    }
}

static float distance(const float *a, const float *b)
{
    float sum = 0;
    for (int d = 0; d < SHUF__DIMENSIONS; d++)
        sum += (a[d] - b[d]) * (a[d] - b[d]);
    return sum;
}

/* Against looking at all; some points are alike, and each is found from where it is. */
static void nearest_is_nearest(void **state)
{
    (void)state;
    random_start("nearest_is_nearest");
    enum { MOST = 3000 };
    static struct shuf__point points[MOST];
    static uint8_t axis[MOST];
    const int count = 1 + (int)random_below(MOST);
    for (int n = 0; n < count; n++)
        for (int d = 0; d < SHUF__DIMENSIONS; d++)
            points[n].at[d] = (float)random_below(d == 0 ? 5 : 100);
    shuf__neighbours_build(points, axis, count);
    for (int query = 0; query < 200; query++) {
        float from[SHUF__DIMENSIONS], least = INFINITY, squares = 0;
        for (int d = 0; d < SHUF__DIMENSIONS; d++)
            from[d] = (float)(120 * uniform());
        for (int n = 0; n < count; n++)
            least = fminf(least, distance(points[n].at, from));
        assert_null(shuf__neighbours_find(points, axis, count, from, &squares, count));
        squares = 1e9F;
        const struct shuf__point *found =
            shuf__neighbours_find(points, axis, count, from, &squares, count);
        assert_non_null(found);
        assert_true(squares == least && distance(found->at, from) == least);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slopes_are_differences),
        cmocka_unit_test(conditions_are_cumulants),
        cmocka_unit_test(polish_meets_the_conditions),
        cmocka_unit_test(effects_add_up),
        cmocka_unit_test(differences_are_finer),
        cmocka_unit_test(changes_are_undone),
        cmocka_unit_test(lattice_cancels),
        cmocka_unit_test(nearest_is_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
