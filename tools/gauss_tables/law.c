/* SPDX-License-Identifier: MIT
 *
 * See law.h.
 */
#include "law.h"

enum { DOUBLES = 4000, FLOATS = 2000 }; /* neighbours of A that are tried to each side */

static shuf__real golden_ratio(void)
{
    return (1 + shuf__real_sqrt(5)) / 2;
}

/* b of a = golden ratio * b for which the two sums have this variance. */
static shuf__real smaller(const shuf__series *sum, shuf__real variance)
{
    const shuf__real ratio = golden_ratio();
    return shuf__real_sqrt(variance / sum->of[1] / (1 + ratio * ratio));
}

struct shuf__coefficients shuf__law_solve(const shuf__series *sum)
{
    const shuf__series steps = shuf__cumulants_of_steps();
    struct shuf__coefficients by = {0, 0, 0};
    for (int round = 0; round < 10; round++) { /* each brings four digits */
        by.b = smaller(sum, 1 - by.c * by.c * steps.of[1]);
        by.a = golden_ratio() * by.b;
        const shuf__real fourth =
            (shuf__real_power(by.a, 4) + shuf__real_power(by.b, 4)) * sum->of[2];
        by.c = fourth > 0 ? shuf__real_sqrt(shuf__real_sqrt(fourth / -steps.of[2])) : 0;
    }
    return by;
}

/* ---- Rounding ---------------------------------------------------------------- */

/* Where a's neighbour leaves b between two numbers, the nearer one errs by a different part of
 * their distance each time; the best of many is as good as digits more. */
struct pair {
    shuf__real a, b, error;
};

static void keep_better(struct pair *best, struct pair next)
{
    const shuf__real e = next.error < 0 ? -next.error : next.error;
    const shuf__real b = best->error < 0 ? -best->error : best->error;
    if (best->a == 0 || e < b)
        *best = next;
}

/* The variance in units of the sum's, a and b of integers. */
static struct pair search_doubles(double a, shuf__real variance)
{
    struct pair best = {0, 0, 0};
    const double quantum = nextafter(a, 1) - a;
    for (int i = -DOUBLES; i <= DOUBLES; i++) {
        const shuf__real x = a + i * quantum;
        const shuf__real y = (double)shuf__real_sqrt(variance - x * x);
        keep_better(&best, (struct pair){x, y, x * x + y * y - variance});
    }
    return best;
}

static struct pair search_floats(float a, shuf__real variance)
{
    struct pair best = {0, 0, 0};
    const float quantum = nextafterf(a, 1) - a;
    for (int i = -FLOATS; i <= FLOATS; i++) {
        const shuf__real x = a + (float)i * quantum;
        const shuf__real y = (float)shuf__real_sqrt(variance - x * x);
        keep_better(&best, (struct pair){x, y, x * x + y * y - variance});
    }
    return best;
}

struct shuf__rounded shuf__law_round(const shuf__series *sum, const struct shuf__coefficients *by)
{
    const shuf__real steps = shuf__cumulants_of_steps().of[1];
    const shuf__real unit = (shuf__real)SHUF__UNIT * SHUF__UNIT;
    struct shuf__rounded r;
    r.c_high = (float)by->c;
    r.c_low = (double)(by->c - r.c_high);
    const shuf__real c = (shuf__real)r.c_high + r.c_low;
    const shuf__real variance = (1 - c * c * steps) / sum->of[1] / unit;
    const struct pair doubles = search_doubles((double)(by->a / SHUF__UNIT), variance);
    const shuf__real alone = golden_ratio() * smaller(sum, 1) / SHUF__UNIT;
    const struct pair floats = search_floats((float)alone, 1 / sum->of[1] / unit);
    r.a = (double)doubles.a;
    r.b = (double)doubles.b;
    r.a32 = (float)floats.a;
    r.b32 = (float)floats.b;
    return r;
}

struct shuf__coefficients shuf__law_double(const struct shuf__rounded *r)
{
    return (struct shuf__coefficients){
        (shuf__real)r->a * SHUF__UNIT,
        (shuf__real)r->b * SHUF__UNIT,
        (shuf__real)r->c_high + r->c_low,
    };
}

struct shuf__coefficients shuf__law_float(const struct shuf__rounded *r)
{
    return (struct shuf__coefficients){
        (shuf__real)r->a32 * SHUF__UNIT,
        (shuf__real)r->b32 * SHUF__UNIT,
        0,
    };
}

/* ---- Distance ---------------------------------------------------------------- */

shuf__series shuf__law_defects(const shuf__series *sum, const struct shuf__coefficients *by)
{
    const shuf__series steps = shuf__cumulants_of_steps();
    shuf__series z = {{0}};
    for (int i = 1; i < SHUF__ORDERS; i++) {
        const int n = 2 * i;
        z.of[i] = (shuf__real_power(by->a, n) + shuf__real_power(by->b, n)) * sum->of[i] +
                  shuf__real_power(by->c, n) * steps.of[i];
    }
    shuf__series defects = shuf__hermite_moments(&z);
    for (int i = 0; i < SHUF__ORDERS; i++)
        defects.of[i] /= shuf__hermite_length(2 * i);
    return defects;
}

double shuf__law_delta(const shuf__series *defects)
{
    shuf__real squares = 0;
    for (int i = 1; i <= SHUF__MATCHED; i++)
        squares += defects->of[i] * defects->of[i];
    return (double)shuf__real_sqrt(squares);
}
