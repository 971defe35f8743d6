/* SPDX-License-Identifier: MIT
 *
 * See neighbours.h.
 */
#include "neighbours.h"

#include <stddef.h>
#include <string.h>

enum { LEAF = 8 };

/* ---- Building ---------------------------------------------------------------- */

static int widest_axis(const struct shuf__point *points, int from, int to)
{
    float low[SHUF__DIMENSIONS], high[SHUF__DIMENSIONS];
    memcpy(low, points[from].at, sizeof low);
    memcpy(high, points[from].at, sizeof high);
    for (int i = from; i < to; i++)
        for (int d = 0; d < SHUF__DIMENSIONS; d++) {
            const float x = points[i].at[d];
            low[d] = x < low[d] ? x : low[d];
            high[d] = x > high[d] ? x : high[d];
        }
    int widest = 0;
    for (int d = 1; d < SHUF__DIMENSIONS; d++)
        if (high[d] - low[d] > high[widest] - low[widest])
            widest = d;
    return widest;
}

static void swap(struct shuf__point *a, struct shuf__point *b)
{
    const struct shuf__point c = *a;
    *a = *b;
    *b = c;
}

/* Hoare's selection: none before `middle` is above it on the axis, none after it below. */
static void select_middle(struct shuf__point *points, int axis, int from, int to, int middle)
{
    int low = from, high = to - 1;
    while (low < high) {
        const float pivot = points[middle].at[axis];
        int i = low, j = high;
        while (i <= j) {
            while (points[i].at[axis] < pivot)
                i++;
            while (points[j].at[axis] > pivot)
                j--;
            if (i <= j)
                swap(&points[i++], &points[j--]);
        }
        if (j < middle)
            low = i;
        if (i > middle)
            high = j;
    }
}

static void build(struct shuf__point *points, uint8_t *axis, int from, int to)
{
    if (to - from <= LEAF)
        return;
    const int middle = from + (to - from) / 2, widest = widest_axis(points, from, to);
    axis[middle] = (uint8_t)widest;
    select_middle(points, widest, from, to, middle);
    build(points, axis, from, middle);
    build(points, axis, middle + 1, to);
}

void shuf__neighbours_build(struct shuf__point *points, uint8_t *axis, int count)
{
    build(points, axis, 0, count);
}

/* ---- Finding ----------------------------------------------------------------- */

struct search {
    const struct shuf__point *points, *best;
    const uint8_t *axis;
    const float *from;
    float squares;
    int patience;
};

static void look_at(struct search *s, int i)
{
    float squares = 0;
    for (int d = 0; d < SHUF__DIMENSIONS; d++) {
        const float apart = s->points[i].at[d] - s->from[d];
        squares += apart * apart;
    }
    if (squares < s->squares) {
        s->squares = squares;
        s->best = &s->points[i];
    }
}

/* `apart` is how far the range's box is from the point on each axis, `squares` the sum of squares.
 */
static void descend(struct search *s, int from, int to, float *apart, float squares)
{
    if (squares >= s->squares || s->patience-- <= 0)
        return;
    if (to - from <= LEAF) {
        for (int i = from; i < to; i++)
            look_at(s, i);
        return;
    }
    const int middle = from + (to - from) / 2, axis = s->axis[middle];
    const float beyond = s->from[axis] - s->points[middle].at[axis], before = apart[axis];
    look_at(s, middle);
    if (beyond < 0)
        descend(s, from, middle, apart, squares);
    else
        descend(s, middle + 1, to, apart, squares);
    apart[axis] = beyond;
    squares += beyond * beyond - before * before;
    if (beyond < 0)
        descend(s, middle + 1, to, apart, squares);
    else
        descend(s, from, middle, apart, squares);
    apart[axis] = before;
}

const struct shuf__point *shuf__neighbours_find(const struct shuf__point *points,
                                                const uint8_t *axis, int count, const float *from,
                                                float *squares, int patience)
{
    float apart[SHUF__DIMENSIONS] = {0};
    struct search s = {points, NULL, axis, from, *squares, patience};
    descend(&s, 0, count, apart, 0);
    *squares = s.squares;
    return s.best;
}
