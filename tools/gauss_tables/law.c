/* SPDX-License-Identifier: MIT
 *
 * See law.h.
 */
#include "law.h"

int64_t shuf__law_room(const shuf__tables *tables)
{
    int64_t room = (int64_t)SHUF__MAGNITUDES / SHUF__DRAWS << (2 * SHUF__FRACTION);
    for (int t = 0; t < SHUF__TABLES; t++)
        for (int j = 0; j < SHUF__MAGNITUDES; j++)
            room -= (int64_t)tables->of[t][j] * tables->of[t][j];
    return room;
}

struct shuf__coefficients shuf__law_solve(const shuf__series *sum)
{
    const shuf__real unit = SHUF__UNIT;
    const shuf__real c = SHUF__OVERLAP / shuf__real_power(2, SHUF__STEPS);
    const shuf__series steps = shuf__cumulants_of_steps();
    const shuf__real a = 1 / shuf__real_sqrt(unit * unit * sum->of[1] + c * c * steps.of[1]);
    return (struct shuf__coefficients){a, a * c};
}

struct shuf__coefficients shuf__law_round(const struct shuf__coefficients *by)
{
    return (struct shuf__coefficients){(double)by->a, (double)by->c};
}

struct shuf__coefficients shuf__law_float(const struct shuf__coefficients *by)
{
    return (struct shuf__coefficients){(float)by->a, (float)by->c};
}

shuf__series shuf__law_defects(const shuf__series *sum, const struct shuf__coefficients *by)
{
    const shuf__series steps = shuf__cumulants_of_steps();
    shuf__series z = {{0}};
    for (int i = 1; i < SHUF__ORDERS; i++)
        z.of[i] = shuf__real_power(SHUF__UNIT * by->a, 2 * i) * sum->of[i] +
                  shuf__real_power(by->c, 2 * i) * steps.of[i];
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
