/* SPDX-License-Identifier: MIT
 *
 * See search.h.
 */
#include "search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { P = SHUF__PAIRS, M = SHUF__MAGNITUDES, V = SHUF__VARIABLES };

/* ---- Pairs ---- */

/* The coefficients of one table, and their derivatives. */
struct table {
    double a[SHUF__ORDERS];
    double slope[SHUF__ORDERS][M];
};

/* Sets product[i][j] to weights[i][j] * b[i - j]. */
static void weigh(const shuf__square *weights, const double *b, shuf__square *product)
{
    for (int i = 0; i < SHUF__ORDERS; i++)
        for (int j = 0; j < SHUF__ORDERS; j++)
            product->of[i][j] = j <= i ? weights->of[i][j] * b[i - j] : 0;
}

static void apply(const shuf__square *by, const double *a, double *to)
{
    for (int i = 0; i < SHUF__ORDERS; i++) {
        to[i] = 0;
        for (int j = 0; j <= i; j++)
            to[i] += by->of[i][j] * a[j];
    }
}

void shuf__sum_start(struct shuf__sum *sum)
{
    const double deviation = SHUF__DEVIATION, width = SHUF__SMOOTH / deviation;
    const double uniform = width * width / 12, table = (1 - uniform) / 2;
    const shuf__series a = shuf__hermite_of_uniform();
    shuf__hermite_weights(table, &sum->table);
    shuf__hermite_weights(table / (table + uniform), &sum->rest);
    weigh(&sum->rest, a.of, &sum->uniform);
    sum->scale = sqrt(table);
}

static void look_at_table(const double *x, struct table *t)
{
    memset(t->a, 0, sizeof t->a);
    for (int j = 0; j < M; j++) {
        double psi[SHUF__DEGREE + 1];
        shuf__hermite(x[j], SHUF__DEGREE, psi);
        t->slope[0][j] = 0;
        for (int i = 0; i < SHUF__ORDERS; i++)
            t->a[i] += psi[2 * i] / M;
        for (int i = 1; i < SHUF__ORDERS; i++)
            t->slope[i][j] = sqrt(2 * i) / M * psi[2 * i - 1];
    }
}

/* Writes row i of the product to `to` + i * SHUF__VARIABLES. */
static void chain(const shuf__square *by, const struct table *t, double *to)
{
    for (int i = 0; i < SHUF__ORDERS; i++) {
        double row[M] = {0};
        for (int j = 1; j <= i; j++)
            for (int v = 0; v < M; v++)
                row[v] += by->of[i][j] * t->slope[j][v];
        memcpy(to + i * SHUF__VARIABLES, row, sizeof row);
    }
}

void shuf__pair_look(const struct shuf__sum *sum, const double *one, const double *other,
                     struct shuf__pair *pair)
{
    static struct table t, u;
    shuf__square by;
    double rest[SHUF__ORDERS];
    look_at_table(one, &t);
    look_at_table(other, &u);
    apply(&sum->uniform, u.a, rest); /* the other table and the uniform part */
    weigh(&sum->table, rest, &by);
    apply(&by, t.a, pair->a);
    chain(&by, &t, pair->slope[0]);
    apply(&sum->uniform, t.a, rest);
    weigh(&sum->table, rest, &by);
    chain(&by, &u, pair->slope[0] + M);
}

/* ---- The search ---- */

/* The search minimises the sum of two parts. The first is z^2: the sum over the orders k of W_k
 * times the square of the mean a_k of all pairs. The second has less weight. It is the sum of the
 * squares of every pair's own a_k. The a_k of a pair depend only on the magnitudes of this pair. So
 * each step needs only matrices with a row for each order, and no matrix with a row for each
 * magnitude. */

enum { N = SHUF__ORDERS - 1, STEPS = 1500 };

/* The weights of a pair's own coefficients. Two entries of the same pair contribute the squares of
 * their coefficients to chi^2, about in proportion to sqrt(E (S / 32)^2k). This value of `own`
 * makes the sum of z^2 and these terms least. */
static const double own = 1e-4, least = 5e-6, least_damping = 1e-14;

typedef double matrix[N][N];

/* Index i stands for order 2i + 2. */
struct search {
    struct shuf__sum sum;
    double total[N];  /* the square roots of the weights of the mean a_k */
    double single[N]; /* the square roots of the weights of a pair's own a_k */
    double damping, reach;
};

struct point {
    shuf__reals x;
    struct shuf__pair pair[P];
    double mean[N], value;
};

/* ---- A point ---- */

static void look(const struct search *s, struct point *p)
{
    memset(p->mean, 0, sizeof p->mean);
    p->value = 0;
    for (int k = 0; k < P; k++) {
        shuf__pair_look(&s->sum, p->x.of[k], p->x.of[k + P], &p->pair[k]);
        for (int i = 0; i < N; i++) {
            const double single = s->single[i] * p->pair[k].a[i + 1];
            p->value += single * single;
            p->mean[i] += p->pair[k].a[i + 1] / P;
        }
    }
    for (int i = 0; i < N; i++)
        p->value += s->total[i] * s->total[i] * p->mean[i] * p->mean[i];
}

/* ---- Linear equations ---- */

static double dot(const double *a, const double *b, int n)
{
    double sum[4] = {0};
    int i = 0;
    for (; i + 4 <= n; i += 4)
        for (int lane = 0; lane < 4; lane++)
            sum[lane] += a[i + lane] * b[i + lane];
    for (; i < n; i++)
        sum[0] += a[i] * b[i];
    return sum[0] + sum[1] + (sum[2] + sum[3]);
}

/* Replaces the lower half of `a` by the Cholesky factor of `a`. */
static bool factor(matrix a)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= i; j++) {
            const double left = a[i][j] - dot(a[i], a[j], j);
            if (i == j && !(left > 0))
                return false;
            a[i][j] = i == j ? sqrt(left) : left / a[j][j];
        }
    return true;
}

static void solve(matrix a, double *x)
{
    for (int i = 0; i < N; i++)
        x[i] = (x[i] - dot(a[i], x, i)) / a[i][i];
    for (int i = N - 1; i >= 0; i--) {
        x[i] /= a[i][i];
        for (int j = 0; j < i; j++)
            x[j] -= a[i][j] * x[i];
    }
}

/* Sets `to` to I - damping A^-1. `a` is the Cholesky factor of A. */
static void invert(matrix a, double damping, matrix to)
{
    static matrix l; /* the factor's inverse, transposed */
    memset(l, 0, sizeof l);
    for (int j = 0; j < N; j++) {
        l[j][j] = 1 / a[j][j];
        for (int i = j + 1; i < N; i++)
            l[j][i] = -dot(a[i] + j, l[j] + j, i - j) / a[i][i];
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= i; j++)
            to[i][j] = to[j][i] = (i == j) - damping * dot(l[i] + i, l[j] + i, N - i);
}

/* ---- A step ---- */

/* Sets gram to J J^T. J has the derivatives of a pair's own coefficients. */
static void make_gram(const struct search *s, const struct shuf__pair *pair, matrix gram)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= i; j++)
            gram[i][j] = gram[j][i] =
                s->single[i] * s->single[j] * dot(pair->slope[i + 1], pair->slope[j + 1], V);
}

struct workspace {
    matrix gram[P], factor[P], kept[P];
    double trace; /* the largest trace of a `gram` */
    double scale; /* the unit of the damping: the trace of the mean's contribution */
    double step[P][V];
};

/* Makes the linear equations of the mean: mixed * g = by. */
static void mix(const struct search *s, const struct point *at, const struct workspace *w,
                matrix mixed, double *by)
{
    double d[N];
    memset(mixed, 0, sizeof(matrix));
    for (int i = 0; i < N; i++) {
        d[i] = s->total[i] / s->single[i] / P;
        by[i] = s->total[i] * at->mean[i];
        mixed[i][i] = 1;
    }
    for (int p = 0; p < P; p++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                mixed[i][j] += d[i] * d[j] * w->kept[p][i][j];
                by[i] -= d[i] * w->kept[p][i][j] * s->single[j] * at->pair[p].a[j + 1];
            }
}

static void find_step_of_pair(const struct search *s, const struct shuf__pair *pair, matrix factor,
                              const double *g, double *step)
{
    double u[N];
    for (int i = 0; i < N; i++)
        u[i] = s->single[i] * pair->a[i + 1] + s->total[i] / s->single[i] / P * g[i];
    solve(factor, u);
    memset(step, 0, V * sizeof *step);
    for (int i = 0; i < N; i++)
        for (int v = 0; v < V; v++)
            step[v] -= s->single[i] * u[i] * pair->slope[i + 1][v];
}

/* Finds the step that minimises
 *
 *     |total (mean + its change)|^2 + |single (own + their change)|^2 + damping |step|^2
 *
 * First it computes g = total times the mean after the step. From g follows the step of each pair,
 * without the other pairs. Returns false if the damping is too small for the matrices. */
static bool find_step(const struct search *s, const struct point *at, double damping,
                      struct workspace *w)
{
    static matrix mixed;
    double g[N];
    for (int p = 0; p < P; p++) {
        memcpy(w->factor[p], w->gram[p], sizeof(matrix));
        for (int i = 0; i < N; i++)
            w->factor[p][i][i] += damping;
        if (!factor(w->factor[p]))
            return false;
        invert(w->factor[p], damping, w->kept[p]);
    }
    mix(s, at, w, mixed, g);
    if (!factor(mixed))
        return false;
    solve(mixed, g);
    for (int p = 0; p < P; p++)
        find_step_of_pair(s, &at->pair[p], w->factor[p], g, w->step[p]);
    return true;
}

static double longest(const struct workspace *w)
{
    double most = 0;
    for (int p = 0; p < P; p++)
        for (int v = 0; v < V; v++)
            most = fmax(most, fabs(w->step[p][v]));
    return most;
}

/* Makes a step. All magnitudes stay a little below the largest allowed one. */
static void move(const struct search *s, const struct point *from, const struct workspace *w,
                 struct point *to)
{
    const double most = 0.999 * SHUF__LARGEST / (s->sum.scale * SHUF__DEVIATION);
    for (int p = 0; p < P; p++)
        for (int v = 0; v < V; v++) {
            const int t = v < M ? p : p + P;
            to->x.of[t][v % M] = fmin(fabs(from->x.of[t][v % M] + w->step[p][v]), most);
        }
}

static void set_weights(struct search *s)
{
    const shuf__series moments = shuf__moments_of_signs(SHUF__BLOCK);
    for (int i = 0; i < N; i++) {
        const double weight = SHUF__BLOCK * SHUF__BLOCK * moments.of[i + 1];
        s->total[i] = sqrt(weight);
        const double two = SHUF__BLOCK * sqrt(moments.of[2 * i + 2 < N ? 2 * i + 2 : N]);
        s->single[i] = sqrt((own * two + least) / P);
    }
    s->single[0] = 1; /* keeps the variances of all pairs equal, as rounding makes them equal */
}

static void make_grams(const struct search *s, const struct point *at, struct workspace *w)
{
    w->trace = w->scale = 0;
    for (int p = 0; p < P; p++) {
        make_gram(s, &at->pair[p], w->gram[p]);
        double trace = 0;
        for (int i = 0; i < N; i++) {
            const double times = s->total[i] / s->single[i] / P;
            trace += w->gram[p][i][i];
            w->scale += times * times * w->gram[p][i][i];
        }
        w->trace = fmax(w->trace, trace);
    }
}

/* Finds a step, and raises the damping until the step is short enough. */
static void find_short_step(struct search *s, const struct point *at, struct workspace *w)
{
    s->damping = fmax(s->damping, least_damping * w->trace / w->scale);
    while (!find_step(s, at, s->damping * w->scale, w) || !(longest(w) < s->reach))
        s->damping *= 3;
}

static void descend(struct search *s, struct point *at, struct point *next, struct workspace *w)
{
    look(s, at);
    make_grams(s, at, w);
    for (int i = 0; i < STEPS; i++) {
        find_short_step(s, at, w);
        move(s, at, w, next);
        look(s, next);
        if (next->value < at->value) {
            *at = *next;
            make_grams(s, at, w);
            s->damping /= 3;
            s->reach = fmin(s->reach * 1.3, 0.2);
        } else {
            s->damping *= 3;
            s->reach = fmax(s->reach / 2, 1e-4);
        }
    }
}

bool shuf__search(shuf__reals *x)
{
    static struct search s = {.damping = 1e-6, .reach = 0.02};
    struct point *at = malloc(sizeof *at), *next = malloc(sizeof *next);
    struct workspace *w = malloc(sizeof *w);
    const bool enough = at && next && w;
    if (enough) {
        shuf__sum_start(&s.sum);
        set_weights(&s);
        at->x = *x;
        descend(&s, at, next, w);
        for (int t = 0; t < SHUF__TABLES; t++)
            for (int j = 0; j < M; j++)
                x->of[t][j] = at->x.of[t][j] * s.sum.scale * SHUF__DEVIATION;
    }
    free(at);
    free(next);
    free(w);
    return enough;
}

/* ---- Rounding ---- */

/* Rounds real magnitudes to integers. The sum of a pair's squares then has a relative error below
 * 10^-6. To correct this sum, the code changes two or three magnitudes by one. */

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
