/* SPDX-License-Identifier: MIT
 *
 * See block.h.
 */
#include "block.h"

#include <math.h>
#include <string.h>

enum { N = SHUF__ORDERS, P = SHUF__PAIRS, S = SHUF__SHARED, LAST = SHUF__PAIRED };

/* ---- Single entries ---------------------------------------------------------- */

static void look_at_singles(const struct shuf__entries *e, struct shuf__block *b)
{
    const shuf__series moment = shuf__moments_of_signs(SHUF__BLOCK);
    double rest = e->chi_of_mean;
    for (int i = 1; i < N; i++) {
        double mean = 0;
        for (int p = 0; p < P; p++)
            mean += e->a[p].of[i] / P;
        b->part.of[i] = moment.of[i] * SHUF__BLOCK * SHUF__BLOCK * mean * mean;
        b->z2 += b->part.of[i];
        rest -= mean * mean;
    }
    b->above = moment.of[N - 1] * SHUF__BLOCK * SHUF__BLOCK * rest; /* higher moments are smaller */
    b->z2 += b->above;
}

/* ---- Moments of Walsh coefficients -------------------------------------------- */

static double power(double x, int n)
{
    double result = 1;
    for (; n > 0; n--)
        result *= x;
    return result;
}

/* The four coefficients are sums and differences of four independent numbers. Each of these numbers
 * is a sum of 8 signs. */
double shuf__walsh_moment(const int n[4])
{
    static const double ways[9] = {1, 8, 28, 56, 70, 56, 28, 8, 1};
    static double powers[SHUF__BLOCK + 1][2 * LAST + 1]; /* of (i - 16) / 16 */
    double sum = 0;
    const bool fresh = powers[0][0] == 0;
    for (int i = 0; fresh && i <= SHUF__BLOCK; i++)
        for (int k = 0; k <= 2 * LAST; k++)
            powers[i][k] = power((i - 16) / 16.0, k);
    for (int a = 0; a <= 8; a++)
        for (int b = 0; b <= 8; b++)
            for (int c = 0; c <= 8; c++)
                for (int d = 0; d <= 8; d++)
                    sum += ways[a] * ways[b] * ways[c] * ways[d] * powers[a + b + c + d][n[0]] *
                           powers[a + b - c - d + 16][n[1]] * powers[a - b + c - d + 16][n[2]] *
                           powers[a - b - c + d + 16][n[3]];
    return sum * 0x1p-32;
}

/* ---- Two entries -------------------------------------------------------------- */

/* Sums over the positions of a block in one lane. The orders are 2 k and 2 l. */
struct sums {
    double total[LAST];            /* of a_k */
    double product[LAST][LAST];    /* of a_k a_l */
    double shifted[LAST][LAST][P]; /* of a_k(q) a_l(q xor t); depends only on t mod 8 */
};

static void add_up(const struct shuf__entries *e, int lane, struct sums *s)
{
    memset(s, 0, sizeof *s);
    for (int k = 1; k < LAST; k++)
        for (int q = 0; q < P; q++) {
            const double a = e->a[(q + lane) % P].of[k];
            s->total[k] += S * a;
            for (int l = 1; l < LAST; l++)
                for (int t = 0; t < P; t++)
                    s->shifted[k][l][t] += S * a * e->a[((q ^ t) + lane) % P].of[l];
        }
    for (int k = 1; k < LAST; k++)
        for (int l = 1; l < LAST; l++)
            s->product[k][l] = s->shifted[k][l][0];
}

/* The sum over q1 != q2 and t of a_k1(q1) a_k2(q2) a_l1(q1 xor t) a_l2(q2 xor t). */
static double sum_of_shifts(const struct shuf__entries *e, const struct sums *s, int lane,
                            const int k[2], const int l[2])
{
    double sum = 0;
    for (int t = 0; t < P; t++) {
        sum += s->shifted[k[0]][l[0]][t] * s->shifted[k[1]][l[1]][t];
        for (int q = 0; q < P; q++) {
            const double *a = e->a[(q + lane) % P].of, *b = e->a[((q ^ t) + lane) % P].of;
            sum -= S * a[k[0]] * a[k[1]] * b[l[0]] * b[l[1]];
        }
    }
    return S * sum;
}

static double root_factorial(int n)
{
    return sqrt(tgamma(n + 1));
}

/* The mean factors of a rotation for psi_k1 psi_k2 against psi_l1 psi_l2 (README.md). *shifted is
 * for r1 = q1 xor s and r2 = q2 xor s with one s, *elsewhere for all other pairs of positions. */
static void average_rotations(const int k[2], const int l[2], double *shifted, double *elsewhere)
{
    const double root = root_factorial(2 * k[0]) * root_factorial(2 * k[1]) *
                        root_factorial(2 * l[0]) * root_factorial(2 * l[1]);
    *shifted = *elsewhere = 0;
    for (int i = 0; i <= 2 * k[0] && i <= 2 * l[0]; i++) {
        const int n[4] = {i, 2 * k[0] - i, 2 * l[0] - i, 2 * k[1] - 2 * l[0] + i};
        if (n[3] < 0)
            continue;
        double ways = root;
        for (int j = 0; j < 4; j++)
            ways /= tgamma(n[j] + 1);
        *elsewhere += ways * shuf__walsh_moment(n);
        *shifted += ways * shuf__walsh_moment((int[4]){n[0] + n[3], n[1] + n[2]});
    }
}

/* Each pair of entries occurs in both orders, on both sides. So the sum is divided by 4. */
static void add_two_against_two(const struct shuf__entries *e, const struct sums *sums,
                                const int k[2], const int l[2], double *by_lane)
{
    double shifted, elsewhere;
    average_rotations(k, l, &shifted, &elsewhere);
    for (int lane = 0; lane < P; lane++) {
        const struct sums *s = &sums[lane];
        const double near = sum_of_shifts(e, s, lane, k, l);
        const double all = (s->total[k[0]] * s->total[k[1]] - s->product[k[0]][k[1]]) *
                           (s->total[l[0]] * s->total[l[1]] - s->product[l[0]][l[1]]);
        by_lane[lane] += (near * shifted + (all - near) * elsewhere) / 4;
    }
}

/* Two factors cancel: 2, for the terms of two entries against one, and 1/2, because the two entries
 * occur in both orders. */
static void add_one_against_two(const struct sums *sums, const int k[2], double *by_lane)
{
    const int n[4] = {2 * k[0], 2 * k[1]};
    const int order = k[0] + k[1];
    if (order >= LAST)
        return;
    const double ways =
        root_factorial(2 * order) / root_factorial(2 * k[0]) / root_factorial(2 * k[1]);
    const double moment = shuf__walsh_moment(n);
    for (int lane = 0; lane < P; lane++) {
        const struct sums *s = &sums[lane];
        by_lane[lane] += ways * moment * s->total[order] *
                         (s->total[k[0]] * s->total[k[1]] - s->product[k[0]][k[1]]);
    }
}

static double most(const double *by_lane)
{
    double result = 0;
    for (int lane = 0; lane < P; lane++)
        result = fmax(result, fabs(by_lane[lane]));
    return result;
}

static void look_at_twos(const struct shuf__entries *e, struct shuf__block *b)
{
    static struct sums sums[P];
    double two[P] = {0}, three[P] = {0};
    for (int lane = 0; lane < P; lane++)
        add_up(e, lane, &sums[lane]);
    for (int order = 2; order <= LAST; order++)
        for (int k = 1; k < order; k++) {
            add_one_against_two(sums, (int[2]){k, order - k}, three);
            for (int l = 1; l < order; l++)
                add_two_against_two(e, sums, (int[2]){k, order - k}, (int[2]){l, order - l}, two);
        }
    b->two = most(two);
    b->three = most(three);
}

/* ---- Two entries, high orders -------------------------------------------------- */

/* The coefficients of order 2 i of (x_q + x_(q xor s)) / sqrt(2), added over all q, without the
 * terms of single entries. s is `shift`. */
static double sum_of_halves(const struct shuf__entries *e, const shuf__square *half, int lane,
                            int shift, int i)
{
    double sum = 0;
    for (int q = 0; q < SHUF__BLOCK; q++)
        for (int j = 1; j < i && q < (q ^ shift); j++)
            sum += half->of[i][j] * e->a[(q + lane) % P].of[j] *
                   e->a[((q ^ shift) + lane) % P].of[i - j];
    return sum;
}

/* 16 of the values have positions with an even number of bits in common with s. They are a
 * transform of the sums x_q + x_(q xor s). The other 16 are a transform of the differences x_q -
 * x_(q xor s), which have the same distribution as the sums. */
static void look_at_halves(const struct shuf__entries *e, struct shuf__block *b)
{
    static shuf__square half;
    const shuf__series moment = shuf__moments_of_signs(SHUF__BLOCK / 2);
    double beyond[P] = {0};
    shuf__hermite_weights(0.5, &half);
    for (int lane = 0; lane < P; lane++)
        for (int shift = 1; shift < SHUF__BLOCK; shift++)
            for (int i = LAST + 1; i < N; i++) {
                const double sum = sum_of_halves(e, &half, lane, shift, i);
                beyond[lane] += 2 * moment.of[i] * sum * sum;
            }
    b->beyond = most(beyond);
}

struct shuf__block shuf__block_look(const struct shuf__entries *entries)
{
    struct shuf__block b = {.z2 = 0};
    look_at_singles(entries, &b);
    look_at_twos(entries, &b);
    look_at_halves(entries, &b);
    return b;
}
