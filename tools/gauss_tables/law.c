/* SPDX-License-Identifier: MIT
 *
 * See law.h.
 */
#include "law.h"

/* Of one table's deviation in z. */
static shuf__real scale(void)
{
    return (shuf__real)SHUF__UNIT / shuf__real_power(2, SHUF__FRACTION);
}

int64_t shuf__law_room(const shuf__tables *tables)
{
    int64_t room = (int64_t)SHUF__MAGNITUDES / SHUF__DRAWS << (2 * SHUF__FRACTION);
    for (int t = 0; t < SHUF__TABLES; t++)
        for (int j = 0; j < SHUF__MAGNITUDES; j++)
            room -= (int64_t)tables->of[t][j] * tables->of[t][j];
    return room;
}

double shuf__law_solve(const shuf__series *sum)
{
    const shuf__real room = 1 - scale() * scale() * sum->of[1];
    const shuf__series steps = shuf__cumulants_of_steps();
    return room > 0 ? (double)shuf__real_sqrt(room / steps.of[1]) : 0;
}

double shuf__law_width(double c)
{
    return ldexp(c, SHUF__FRACTION + SHUF__STEPS);
}

shuf__series shuf__law_defects(const shuf__series *sum, double c)
{
    const shuf__series steps = shuf__cumulants_of_steps();
    shuf__series z = {{0}};
    for (int i = 1; i < SHUF__ORDERS; i++)
        z.of[i] = shuf__real_power(scale(), 2 * i) * sum->of[i] +
                  shuf__real_power(c, 2 * i) * steps.of[i];
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
