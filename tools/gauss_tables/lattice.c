/* SPDX-License-Identifier: MIT
 *
 * See lattice.h. A row has the coordinates, then the multiples that make it, times the cost. The
 * last row is the target: what reduction by the others leaves of it is the answer.
 */
#include "lattice.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum {
    ROWS = SHUF__VECTORS + 1,
    WIDTH = SHUF__COORDINATES + SHUF__VECTORS,
};

struct lattice {
    int64_t row[ROWS][WIDTH];
    double mu[ROWS][ROWS], r[ROWS][ROWS]; /* Gram and Schmidt's: mu[k][j] = r[k][j] / r[j][j] */
};

static double dot(const int64_t *a, const int64_t *b)
{
    int64_t sum = 0;
    for (int i = 0; i < WIDTH; i++)
        sum += a[i] * b[i];
    return (double)sum;
}

static void orthogonalise(struct lattice *l, int k)
{
    for (int j = 0; j <= k; j++) {
        double r = dot(l->row[k], l->row[j]);
        for (int i = 0; i < j; i++)
            r -= l->mu[j][i] * l->r[k][i];
        l->r[k][j] = r;
        l->mu[k][j] = j < k ? r / l->r[j][j] : 1;
    }
}

/* Row k less the multiples of those before it that bring its mu to at most a half. */
static void reduce(struct lattice *l, int k)
{
    for (bool again = true; again;) {
        again = false;
        orthogonalise(l, k);
        for (int j = k - 1; j >= 0; j--) {
            const double times = rint(l->mu[k][j]);
            if (times == 0)
                continue;
            again = true;
            for (int i = 0; i < WIDTH; i++)
                l->row[k][i] -= (int64_t)times * l->row[j][i];
            for (int i = 0; i <= j; i++)
                l->mu[k][i] -= times * l->mu[j][i];
        }
    }
}

static void swap_with_previous(struct lattice *l, int k)
{
    int64_t row[WIDTH];
    memcpy(row, l->row[k], sizeof row);
    memcpy(l->row[k], l->row[k - 1], sizeof row);
    memcpy(l->row[k - 1], row, sizeof row);
}

static void reduce_all(struct lattice *l)
{
    orthogonalise(l, 0);
    for (int k = 1; k < SHUF__VECTORS;) {
        reduce(l, k);
        const double mu = l->mu[k][k - 1];
        if (l->r[k][k] >= (0.99 - mu * mu) * l->r[k - 1][k - 1]) {
            k++;
            continue;
        }
        swap_with_previous(l, k);
        orthogonalise(l, k - 1);
        k = k > 1 ? k - 1 : 1;
    }
}

void shuf__lattice_cancel(const double vector[SHUF__VECTORS][SHUF__COORDINATES],
                          const double target[SHUF__COORDINATES], int cost,
                          int times[SHUF__VECTORS])
{
    static struct lattice l;
    memset(&l, 0, sizeof l);
    for (int k = 0; k < SHUF__VECTORS; k++) {
        for (int i = 0; i < SHUF__COORDINATES; i++)
            l.row[k][i] = llrint(vector[k][i]);
        l.row[k][SHUF__COORDINATES + k] = cost;
    }
    reduce_all(&l);
    for (int i = 0; i < SHUF__COORDINATES; i++)
        l.row[SHUF__VECTORS][i] = llrint(target[i]);
    reduce(&l, SHUF__VECTORS);
    for (int k = 0; k < SHUF__VECTORS; k++)
        times[k] = (int)(l.row[SHUF__VECTORS][SHUF__COORDINATES + k] / cost);
}
