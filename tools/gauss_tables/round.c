/* SPDX-License-Identifier: MIT
 *
 * Rounds real magnitudes to integers. The sum of a pair's squares then has a relative error below
 * 10^-6. To correct this sum, the code changes two or three magnitudes by one.
 */
#include "search.h"

#include <math.h>
#include <stdlib.h>

enum { P = SHUF__PAIRS, M = SHUF__MAGNITUDES, V = 2 * M };

static int32_t *magnitude(shuf__tables *tables, int pair, int v)
{
    return &tables->of[v < M ? pair : pair + P][v % M];
}

/* A change: a goes up by one, b down by one, and c by `sign`, which may be 0. */
struct change {
    int a, b, c, sign;
    int64_t left; /* the remaining difference of the sum of squares */
};

static struct change best_change(shuf__tables *tables, int pair, int64_t lack)
{
    struct change best = {.left = INT64_MAX};
    for (int c = 0; c < V && best.left != 0; c++)
        for (int sign = -1; sign <= 1; sign++) {
            const int64_t left = lack - sign * (2 * (int64_t)*magnitude(tables, pair, c) + sign);
            for (int a = 0; a < V; a++)
                for (int b = 0; b < V; b++) {
                    const int64_t apart =
                        *magnitude(tables, pair, a) - (int64_t)*magnitude(tables, pair, b);
                    const int64_t now = left - 2 * apart - 2;
                    if (llabs(now) < llabs(best.left) && a != b && b != c && c != a)
                        best = (struct change){a, b, c, sign, now};
                }
        }
    return best;
}

static int64_t squares_of(shuf__tables *tables, int pair)
{
    int64_t squares = 0;
    for (int v = 0; v < V; v++)
        squares += (int64_t)*magnitude(tables, pair, v) * *magnitude(tables, pair, v);
    return squares;
}

/* Scales the magnitudes to the right sum of squares, and rounds to nearest. */
static void round_pair(const shuf__reals *x, shuf__tables *tables, int pair, int64_t squares)
{
    double sum = 0;
    for (int v = 0; v < V; v++) {
        const double real = x->of[v < M ? pair : pair + P][v % M];
        sum += real * real;
    }
    const double scale = sqrt((double)squares / sum);
    for (int v = 0; v < V; v++) {
        const double real = scale * x->of[v < M ? pair : pair + P][v % M];
        *magnitude(tables, pair, v) = (int32_t)fmin(rint(real), SHUF__LARGEST + 1);
    }
}

static bool level(shuf__tables *tables, int pair, int64_t squares)
{
    const int rounds = 20;
    for (int round = 0; round < rounds; round++) {
        const int64_t lack = squares - squares_of(tables, pair);
        if (lack == 0)
            return true;
        const struct change change = best_change(tables, pair, lack);
        ++*magnitude(tables, pair, change.a);
        --*magnitude(tables, pair, change.b);
        *magnitude(tables, pair, change.c) += change.sign;
    }
    return false;
}

static int compare(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

bool shuf__round(const shuf__reals *x, shuf__tables *tables)
{
    for (int pair = 0; pair < P; pair++) {
        const int64_t squares = SHUF__SQUARES * (pair + 1) / P - SHUF__SQUARES * pair / P;
        round_pair(x, tables, pair, squares);
        if (!level(tables, pair, squares))
            return false;
    }
    for (int t = 0; t < SHUF__TABLES; t++) {
        qsort(tables->of[t], M, sizeof tables->of[t][0], compare);
        if (tables->of[t][0] < 0 || tables->of[t][M - 1] > SHUF__LARGEST)
            return false;
    }
    return true;
}
