/* SPDX-License-Identifier: MIT
 *
 * See proof.h. The product of cos(t y_p) over a set of positions p is the mean of cos(t sum e_p
 * y_p) over all signs e_p. This sum equals sum_q c_q x_q / sqrt(32), with c_q = sum e_p H_pq. For
 * fixed signs, the expectation of its cosine is the product over q of phi_q(t c_q / sqrt(32)). For
 * random signs every c_q has the distribution of a sum of n signs. This gives the first order.
 */
#include "proof.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { P = SHUF__PAIRS, T = SHUF__TABLES, M = SHUF__MAGNITUDES, Q = SHUF__BLOCK };

/* ---- Characteristic functions ---- */

/* The characteristic function of the uniform part. */
static double smooth(double t)
{
    const double half = t / SHUF__DEVIATION / 2;
    return t == 0 ? 1 : sin(SHUF__SMOOTH * half) / (SHUF__SMOOTH * sin(half));
}

static double table_wave(const int32_t *magnitude, double t)
{
    double sum = 0;
    for (int j = 0; j < M; j++)
        sum += cos(t / SHUF__DEVIATION * magnitude[j]);
    return sum / M;
}

double shuf__wave(const shuf__tables *tables, int pair, double t)
{
    return table_wave(tables->of[pair], t) * table_wave(tables->of[pair + P], t) * smooth(t);
}

/* The angles t * magnitude as points of the unit circle, and the rotation for one step of t. */
struct turns {
    double x[T][M], y[T][M], by_x[T][M], by_y[T][M];
};

static void start_turns(const shuf__tables *tables, double step, struct turns *turns)
{
    for (int t = 0; t < T; t++)
        for (int j = 0; j < M; j++) {
            const double angle = step / SHUF__DEVIATION * tables->of[t][j];
            turns->x[t][j] = 1;
            turns->y[t][j] = 0;
            turns->by_x[t][j] = cos(angle);
            turns->by_y[t][j] = sin(angle);
        }
}

static double turn(struct turns *turns, int t)
{
    double sum[4] = {0};
    for (int j = 0; j < M; j += 4)
        for (int lane = 0; lane < 4; lane++) {
            double *x = &turns->x[t][j + lane], *y = &turns->y[t][j + lane];
            const double by_x = turns->by_x[t][j + lane], by_y = turns->by_y[t][j + lane];
            const double next = *x * by_x - *y * by_y;
            *y = *x * by_y + *y * by_x;
            *x = next;
            sum[lane] += next;
        }
    return (sum[0] + sum[1] + (sum[2] + sum[3])) / M;
}

/* Finds maxima by steps of t. At a maximum the slope is 0, and all second derivatives are at most
 * 1. So steps of h find a maximum to h^2 / 8, or to h^2 / 4 for a difference of two functions.
 * Beyond the last step the uniform part bounds the function. */
struct shuf__waves shuf__waves_look(const shuf__tables *tables)
{
    const double step = 0.02, first = 3.5;
    const int steps = 200000;
    struct turns *const turns = malloc(sizeof *turns);
    struct shuf__waves waves = {-1, -1};
    if (!turns)
        return waves;
    start_turns(tables, step, turns);
    for (int i = 1; i <= steps; i++) {
        double wave[T];
        for (int t = 0; t < T; t++)
            wave[t] = turn(turns, t);
        for (int p = 0; p < P; p++) {
            const double t = i * step, phi = wave[p] * wave[p + P] * smooth(t);
            waves.apart = fmax(waves.apart, fabs(phi - exp(-t * t / 2)));
            waves.beyond = fmax(waves.beyond, t >= first - step ? fabs(phi) : 0);
        }
    }
    free(turns);
    const double rest = 1 / (SHUF__SMOOTH * sin(steps * step / SHUF__DEVIATION / 2));
    waves.apart = fmax(waves.apart + step * step / 4, rest);
    waves.beyond = fmax(waves.beyond + step * step / 8, rest);
    return waves;
}

/* ---- Products of cosines ---- */

/* The characteristic function of every pair at t c / sqrt(32). */
struct spectrum {
    double at[P][Q + 1];
};

static void look(const shuf__tables *tables, double t, int n, struct spectrum *s)
{
    for (int p = 0; p < P; p++)
        for (int c = 0; c <= n; c++)
            s->at[p][c] = shuf__wave(tables, p, t * c / sqrt(Q));
}

static double first_order(const struct spectrum *s, int n, double t)
{
    double sum = 0, ways = exp2(-n);
    for (int minus = 0; minus <= n; minus++) {
        const int c = abs(n - 2 * minus);
        double mean = 0;
        for (int p = 0; p < P; p++)
            mean += s->at[p][c] / P;
        sum += ways * (mean * exp(t * t / 2 * ((double)c * c / Q - n)) - exp(-n * t * t / 2));
        ways *= (double)(n - minus) / (minus + 1);
    }
    return Q * sum;
}

static int sign_of(int p, int q)
{
    return __builtin_parity((unsigned)(p & q)) ? -1 : 1;
}

/* Goes through all signs except the first one. Each step changes one sign. */
static double offset(const struct spectrum *s, int lane, const int *set, int n, double t)
{
    double sum = 0;
    int c[Q] = {0}, sign[Q];
    for (int i = 0; i < n; i++) {
        sign[i] = 1;
        for (int q = 0; q < Q; q++)
            c[q] += sign_of(set[i], q);
    }
    for (unsigned pattern = 0; pattern < 1u << (n - 1); pattern++) {
        double product = 1;
        for (int q = 0; q < Q; q++)
            product *= s->at[(q + lane) % P][abs(c[q])];
        sum += product;
        const int i = __builtin_ctz(~pattern) + 1;
        for (int q = 0; q < Q && i < n; q++)
            c[q] -= 2 * sign[i] * sign_of(set[i], q);
        sign[i % Q] = -sign[i % Q];
    }
    return sum / (1u << (n - 1)) - exp(-n * t * t / 2);
}

double shuf__cosine_first(const shuf__tables *tables, int n, double t)
{
    struct spectrum s;
    look(tables, t, n, &s);
    return first_order(&s, n, t);
}

double shuf__cosine_offset(const shuf__tables *tables, int lane, const int *set, int n, double t)
{
    struct spectrum s;
    look(tables, t, n, &s);
    return offset(&s, lane, set, n, t);
}

/* The standard deviation of a product of n cosines under the normal law. */
static double deviation(int n, double t)
{
    return sqrt(pow((1 + exp(-2 * t * t)) / 2, n) - exp(-n * t * t));
}

/* ---- All of them ---- */

struct survey {
    struct shuf__cosines result;
    struct spectrum spectrum;
    int n;
    double t, first;
};

static void note_score(struct survey *s, double offset)
{
    const double score = fabs(offset) / deviation(s->n, s->t) * sqrt(Q / s->n);
    if (score > s->result.score) {
        s->result.score = score;
        s->result.n = s->n;
        s->result.t = s->t;
    }
}

static void look_at_set(struct survey *s, const int *set)
{
    for (int lane = 0; lane < P; lane++) {
        const double is = offset(&s->spectrum, lane, set, s->n, s->t);
        note_score(s, is);
        s->result.first_order = fmax(s->result.first_order, fabs(is / s->first - 1));
        s->result.sets++;
    }
}

/* Looks at every set of n positions that contains position 0. Replacing each p by p xor s turns any
 * other set into such a set. It changes only signs of c_q, and phi is even. */
static void look_at_sets(struct survey *s, int *set, int filled)
{
    if (filled == s->n) {
        look_at_set(s, set);
        return;
    }
    for (int p = set[filled - 1] + 1; p < Q; p++) {
        set[filled] = p;
        look_at_sets(s, set, filled + 1);
    }
}

/* Looks at subcubes. A subcube has the positions whose bits are a subset of a mask. */
static void look_at_cubes(struct survey *s)
{
    for (int mask = 0; mask < Q; mask++) {
        int set[Q], n = 0;
        for (int p = 0; p < Q; p++)
            if ((p & mask) == p)
                set[n++] = p;
        if (n == s->n)
            look_at_set(s, set);
    }
}

struct shuf__cosines shuf__cosines_look(const shuf__tables *tables)
{
    struct survey s = {.n = 0};
    for (s.n = 1; s.n <= Q; s.n++) {
        double best = 0, best_t = 0;
        for (s.t = 0.1; s.t < 4; s.t *= 1.15) {
            look(tables, s.t, s.n, &s.spectrum);
            const double is = first_order(&s.spectrum, s.n, s.t);
            note_score(&s, is);
            if (fabs(is) / deviation(s.n, s.t) > best) {
                best = fabs(is) / deviation(s.n, s.t);
                best_t = s.t;
            }
        }
        s.t = best_t;
        look(tables, s.t, s.n, &s.spectrum);
        s.first = first_order(&s.spectrum, s.n, s.t);
        if (s.n <= 5)
            look_at_sets(&s, (int[Q]){0}, 1);
        else if (s.n == 8 || s.n == 16)
            look_at_cubes(&s);
    }
    return s.result;
}
