/* SPDX-License-Identifier: MIT
 *
 * See entry.h.
 */
#include "entry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = SHUF__ORDERS, P = SHUF__PAIRS, OUTCOMES = 1 << 30 };

/* Counts a sum of two draws. The uniform part turns it into one of the numbers from sum - 2^14 +
 * 1/2 to sum + 2^14 - 1/2, all equally likely. */
static void add_outcome(int32_t sum, uint32_t times, shuf__entry_law *law)
{
    const int32_t first = sum - SHUF__SMOOTH / 2, end = sum + SHUF__SMOOTH / 2;
    if (first >= 0)
        law->count[first] += times;
    else /* counts opposites instead: place -1 - p is the opposite of place p */
        law->count[0] += times;
    if (end < SHUF__PLACES)
        law->count[end] -= times;
    if (first < 0 && -first < SHUF__PLACES) { /* places below -first count twice, the others once */
        law->count[0] += times;
        law->count[-first] -= times;
    }
}

/* A sum and its opposite are equally likely, so the code counts only sums of 0 and more. */
void shuf__entry_count(const int32_t *one, const int32_t *other, int magnitudes,
                       shuf__entry_law *law)
{
    const uint32_t times = (uint32_t)(OUTCOMES / SHUF__SMOOTH / magnitudes / magnitudes / 2);
    memset(law, 0, sizeof *law);
    for (int i = 0; i < magnitudes; i++)
        for (int j = 0; j < magnitudes; j++) {
            add_outcome(one[i] + other[j], times, law);
            add_outcome(abs(one[i] - other[j]), times, law);
        }
    for (int place = 1; place < SHUF__PLACES; place++)
        law->count[place] += law->count[place - 1];
}

static double normal_of_place(int place)
{
    const double x = (place + 0.5) / SHUF__DEVIATION;
    return 2 * exp(-x * x / 2) / (sqrt(2 * M_PI) * SHUF__DEVIATION);
}

/* Adds one place to the sums. Returns the mean over all pairs of its probability. */
static double add_place(const shuf__entry_law *law, int place, struct shuf__entries *e)
{
    double psi[SHUF__DEGREE + 1], mean = 0;
    const double normal = normal_of_place(place);
    shuf__hermite((place + 0.5) / SHUF__DEVIATION, SHUF__DEGREE, psi);
    for (int p = 0; p < P; p++) {
        const double is = (double)law[p].count[place] / OUTCOMES;
        for (int i = 0; i < N; i++)
            e->a[p].of[i] += is * psi[2 * i];
        e->chi[p] += (is - normal) * (is - normal) / normal;
        mean += is / P;
    }
    return (mean - normal) * (mean - normal) / normal;
}

bool shuf__entries_look(const shuf__tables *tables, struct shuf__entries *entries)
{
    const double dither = SHUF__DITHER * SHUF__DITHER / 12.0 / SHUF__BLOCK;
    shuf__entry_law *const law = malloc(P * sizeof *law);
    if (!law)
        return false;
    memset(entries, 0, sizeof *entries);
    for (int p = 0; p < P; p++)
        shuf__entry_count(tables->of[p], tables->of[p + P], SHUF__MAGNITUDES, &law[p]);
    for (int place = 0; place < SHUF__PLACES; place++)
        entries->chi_of_mean += add_place(law, place, entries);
    for (int p = 0; p < P; p++)
        entries->a[p].of[1] += dither / (SHUF__DEVIATION * SHUF__DEVIATION) / sqrt(2);
    free(law);
    return true;
}
