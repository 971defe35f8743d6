/* SPDX-License-Identifier: MIT
 *
 * See cumulants.h.
 */
#include "cumulants.h"

shuf__real shuf__choose(int n, int k)
{
    shuf__real value = 1;
    for (int i = 1; i <= k; i++)
        value = value * (n - k + i) / i;
    return value;
}

shuf__real shuf__hermite_length(int n)
{
    shuf__real factorial = 1;
    for (int i = 2; i <= n; i++)
        factorial *= i;
    return shuf__real_sqrt(factorial);
}

shuf__series shuf__powers(int32_t magnitude)
{
    const shuf__real x = (shuf__real)magnitude / SHUF__UNIT, square = x * x;
    shuf__series powers = {{1}};
    for (int i = 1; i < SHUF__ORDERS; i++)
        powers.of[i] = powers.of[i - 1] * square;
    return powers;
}

shuf__series shuf__cumulants_of_sums(const shuf__series *sums, int count)
{
    shuf__series cumulants = {{0}};
    for (int i = 1; i < SHUF__ORDERS; i++) {
        shuf__real value = sums->of[i] / count;
        for (int j = 1; j < i; j++)
            value -= shuf__choose(2 * i - 1, 2 * j - 1) * cumulants.of[j] * sums->of[i - j] / count;
        cumulants.of[i] = value;
    }
    return cumulants;
}

shuf__series shuf__cumulants(const int32_t *magnitude, int count)
{
    shuf__series sums = {{0}};
    for (int j = 0; j < count; j++) {
        const shuf__series powers = shuf__powers(magnitude[j]);
        for (int i = 0; i < SHUF__ORDERS; i++)
            sums.of[i] += powers.of[i];
    }
    return shuf__cumulants_of_sums(&sums, count);
}

shuf__series shuf__cumulants_of_tables(const shuf__tables *tables)
{
    shuf__series total = {{0}};
    for (int t = 0; t < SHUF__TABLES; t++) {
        const shuf__series table = shuf__cumulants(tables->of[t], SHUF__MAGNITUDES);
        for (int i = 0; i < SHUF__ORDERS; i++)
            total.of[i] += SHUF__DRAWS * table.of[i];
    }
    return total;
}

/* The cumulants of m equally likely points at distance 1 are B_n (m^n - 1) / n, by Bernoulli's
 * numbers. */
shuf__series shuf__cumulants_of_steps(void)
{
    static const int64_t bernoulli[SHUF__ORDERS][2] = {
        {1, 1},
        {1, 6},
        {-1, 30},
        {1, 42},
        {-1, 30},
        {5, 66},
        {-691, 2730},
        {7, 6},
        {-3617, 510},
        {43867, 798},
        {-174611, 330},
        {854513, 138},
        {-236364091, 2730},
    };
    shuf__series cumulants = {{0}};
    for (int i = 1; i < SHUF__ORDERS; i++) {
        const shuf__real b = (shuf__real)bernoulli[i][0] / bernoulli[i][1];
        const shuf__real points = shuf__real_power(2, SHUF__STEPS * 2 * i) - 1;
        cumulants.of[i] = b * points / (2 * i);
    }
    return cumulants;
}

/* E exp(t z - t^2 / 2) generates both sides: Hermite moments are the moments of what the cumulants
 * leave when the normal law's are taken away. */
shuf__series shuf__hermite_moments(const shuf__series *cumulants)
{
    shuf__series hermite = {{1}};
    for (int i = 1; i < SHUF__ORDERS; i++)
        for (int j = 1; j <= i; j++) {
            const shuf__real excess = cumulants->of[j] - (j == 1 ? 1 : 0);
            hermite.of[i] += shuf__choose(2 * i - 1, 2 * j - 1) * excess * hermite.of[i - j];
        }
    return hermite;
}
