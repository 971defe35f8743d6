/* SPDX-License-Identifier: MIT
 *
 * See proof.h.
 */
#include "proof.h"

#include "shuf/gauss_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = SHUF__ORDERS, P = SHUF__PAIRS, M = SHUF__MAGNITUDES };

/* ---- Entries ---- */

enum { OUTCOMES = 1 << 30 };

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

/* ---- A value ---- */

/* Two facts are used:
 *
 * - G(s) = E exp(s x - s^2 / 2) is the power series with the coefficients E He_k / k!. The G of a
 *   sum is the product of the G of its terms. So the coefficients of a value follow from a product
 *   of 32 power series.
 * - The integral of psi_k times the normal density, from x to infinity, is psi_(k - 1)(x) / sqrt(k)
 *   times the density at x. */

/* The coefficients E He_k / k! of an entry divided by sqrt(32). */
static shuf__series generating(const shuf__series *a)
{
    shuf__series series;
    double scale = 1; /* 32^(-k/2) / sqrt(k!) */
    for (int i = 0; i < N; i++) {
        series.of[i] = a->of[i] * scale;
        scale /= SHUF__BLOCK * sqrt((2.0 * i + 1) * (2.0 * i + 2));
    }
    return series;
}

static void multiply(shuf__series *by, const shuf__series *with)
{
    shuf__series product = {{0}};
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= i; j++)
            product.of[i] += by->of[j] * with->of[i - j];
    *by = product;
}

/* P(z > x) minus the same probability of the normal law, divided by the normal density at x. */
static double excess(const shuf__series *c, double x)
{
    double psi[SHUF__DEGREE + 1], sum = 0;
    shuf__hermite(x, SHUF__DEGREE, psi);
    for (int i = 1; i < N; i++)
        sum += c->of[i] * psi[2 * i - 1] / sqrt(2 * i);
    return sum;
}

struct shuf__marginal shuf__marginal_look(const shuf__series a[SHUF__PAIRS])
{
    struct shuf__marginal m = {.c = {{1}}};
    for (int p = 0; p < SHUF__PAIRS; p++) {
        const shuf__series one = generating(&a[p]);
        for (int i = 0; i < SHUF__SHARED; i++)
            multiply(&m.c, &one);
    }
    double root = 1; /* sqrt(k!) */
    for (int i = 1; i < N; i++) {
        root *= sqrt((2.0 * i - 1) * (2.0 * i));
        m.c.of[i] *= root;
    }
    for (double x = 0; x < 10; x += 0x1p-8) {
        const double density = exp(-x * x / 2) / sqrt(2 * M_PI);
        m.kolmogorov = fmax(m.kolmogorov, fabs(excess(&m.c, x)) * density);
    }
    for (int x = 1; x <= SHUF__TAILS; x++) {
        const double density = exp(-x * x / 2.0) / sqrt(2 * M_PI);
        m.tail[x] = excess(&m.c, x) * density / (erfc(x / sqrt(2)) / 2);
    }
    return m;
}

/* ---- A block ---- */

enum { S = SHUF__SHARED, LAST = SHUF__PAIRED };

/* ---- Single entries ---- */

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

/* ---- Moments of Walsh coefficients ---- */

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

/* ---- Two entries ---- */

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

/* ---- Two entries, high orders ---- */

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

/* ---- The proof ---- */

enum { SHOWN = 16, SIGMAS = 4 };

/* ---- Figures ---- */

static void look_at_integers(const shuf__tables *tables, struct shuf__proof *proof)
{
    proof->squares = -SHUF__SQUARES;
    for (int p = 0; p < P; p++) {
        int64_t squares = 0;
        for (int v = 0; v < 2 * M; v++) {
            const int32_t magnitude = tables->of[v < M ? p : p + P][v % M];
            squares += (int64_t)magnitude * magnitude;
            proof->largest = magnitude > proof->largest ? magnitude : proof->largest;
        }
        const int64_t uneven = llabs(squares - SHUF__SQUARES / P);
        proof->squares += squares;
        proof->uneven = uneven > proof->uneven ? uneven : proof->uneven;
    }
}

bool shuf__prove(const shuf__tables *tables, struct shuf__proof *proof)
{
    memset(proof, 0, sizeof *proof);
    look_at_integers(tables, proof);
    if (proof->largest > SHUF__LARGEST) /* the entry's outcomes would not fit the array */
        return true;
    proof->waves = shuf__waves_look(tables);
    if (proof->waves.apart < 0 || !shuf__entries_look(tables, &proof->entries))
        return false;
    proof->block = shuf__block_look(&proof->entries);
    proof->marginal = shuf__marginal_look(proof->entries.a);
    proof->cosines = shuf__cosines_look(tables);
    for (int p = 0; p < P; p++) {
        proof->chi_mean += proof->entries.chi[p] / P;
        proof->chi_most = fmax(proof->chi_most, proof->entries.chi[p]);
    }
    return true;
}

double shuf__proof_total(const struct shuf__proof *proof)
{
    return proof->block.z2 + proof->block.two + proof->block.three + proof->block.beyond;
}

/* The number of values after which a test is off by four standard deviations. One block is off by
 * the square root of score_squared. */
static double values(double score_squared)
{
    return SHUF__BLOCK * SIGMAS * SIGMAS / score_squared;
}

/* ---- For people ---- */

static void line(FILE *to, const char *margin, const char *what, double is)
{
    fprintf(to, "%s%-58s %9.2e\n", margin, what, is);
}

void shuf__proof_write_summary(const struct shuf__proof *p, const char *margin, FILE *to)
{
    line(to, margin, "z^2: chi^2 of a block, terms of single entries", p->block.z2);
    line(to, margin, "  terms of two entries", shuf__proof_total(p) - p->block.z2);
    line(to, margin, "N: values that the best test needs for 4 deviations",
         values(shuf__proof_total(p)));
    line(to, margin, "chi^2 of the law of an entry, mean of the pairs", p->chi_mean);
    line(to, margin, "distribution function of one value, off by at most", p->marginal.kolmogorov);
    fprintf(to, "%ssum of squares %+" PRId64 ", largest magnitude %" PRId32 "\n", margin,
            p->squares, p->largest);
}

static void write_block(const struct shuf__proof *p, const char *margin, FILE *to)
{
    fprintf(to, "\n%sOf z^2, by order\n", margin);
    for (int i = 1; i <= SHOWN; i++)
        fprintf(to, "%s  k = %-54d %9.2e\n", margin, 2 * i, p->block.part.of[i]);
    double rest = 0;
    for (int i = SHOWN + 1; i < SHUF__ORDERS; i++)
        rest += p->block.part.of[i];
    line(to, margin, "  k = 34 to 140", rest);
    line(to, margin, "  k = 142 and more, at most", p->block.above);
    line(to, margin, "two entries against two, orders to 40, worst lane", p->block.two);
    line(to, margin, "one entry against two, orders to 40, worst lane", p->block.three);
    line(to, margin, "two entries against two, higher orders, seen by 16 values", p->block.beyond);
    line(to, margin, "N of the terms of single entries alone", values(p->block.z2));
}

static void write_entries(const struct shuf__proof *p, const char *margin, FILE *to)
{
    fprintf(to, "\n%sOf an entry\n", margin);
    for (int i = 0; i < P; i++)
        fprintf(to, "%s  chi^2 of pair %-44d %9.2e\n", margin, i, p->entries.chi[i]);
    line(to, margin, "  |phi(t) - exp(-t^2 / 2)|, at most", p->waves.apart);
    line(to, margin, "  |phi(t)| from t = 3.5, at most", p->waves.beyond);
    fprintf(to, "%s  squares of a pair: off by at most %" PRId64 "\n", margin, p->uneven);
}

static void write_marginal(const struct shuf__proof *p, const char *margin, FILE *to)
{
    fprintf(to,
            "\n%sOf one value, before it is rounded to its type: once for f32, f16 and bf16 above\n"
            "%s2^-12 in magnitude; otherwise its low part is rounded before\n",
            margin, margin);
    for (int i = 1; i <= 6; i++)
        fprintf(to, "%s  E He_k / sqrt(k!), k = %-35d %9.2e\n", margin, 2 * i, p->marginal.c.of[i]);
    for (int x = 1; x <= SHUF__TAILS; x++)
        fprintf(to, "%s  P(|z| > x), relative error, x = %-26d %9.2e\n", margin, x,
                p->marginal.tail[x]);
}

static void write_cosines(const struct shuf__proof *p, const char *margin, FILE *to)
{
    fprintf(to, "\n%sProducts of cos(t z) over disjoint sets of n values of a block\n", margin);
    fprintf(to, "%s  the best: n = %d, t = %.2f\n", margin, p->cosines.n, p->cosines.t);
    line(to, margin, "  its offset, in deviations per block", p->cosines.score);
    line(to, margin, "  values for 4 deviations", values(p->cosines.score * p->cosines.score));
    fprintf(to, "%s  of %d sets to every order: %.2g of the first order's offset beside it\n",
            margin, p->cosines.sets, p->cosines.first_order);
}

void shuf__proof_write(const struct shuf__proof *p, const char *margin, FILE *to)
{
    shuf__proof_write_summary(p, margin, to);
    write_block(p, margin, to);
    write_entries(p, margin, to);
    write_marginal(p, margin, to);
    write_cosines(p, margin, to);
}

static int fault(const char *what, double is, double limit)
{
    if (is < limit)
        return 0;
    fprintf(stderr, "gauss-tables: %s %.3e: expected below %.1e\n", what, is, limit);
    return 1;
}

static int fault_of_squares(const struct shuf__proof *p)
{
    if (p->squares == 0 && p->uneven <= 1)
        return 0;
    fprintf(stderr,
            "gauss-tables: squares: the sum is off by %" PRId64 ", a pair by %" PRId64
            ": expected 0, and at most 1\n",
            p->squares, p->uneven);
    return 1;
}

int shuf__proof_faults(const struct shuf__proof *p)
{
    double tail = 0;
    for (int x = 1; x <= 8; x++)
        tail = fmax(tail, fabs(p->marginal.tail[x]));
    return fault("largest magnitude", p->largest, SHUF__LARGEST + 1.0) + fault_of_squares(p) +
           fault("z^2", p->block.z2, SHUF__Z2_LIMIT) +
           fault("chi^2 of a block", shuf__proof_total(p), SHUF__TOTAL_LIMIT) +
           fault("mean chi^2 of the pairs", p->chi_mean, SHUF__CHI_MEAN_LIMIT) +
           fault("chi^2 of a pair", p->chi_most, SHUF__CHI_LIMIT) +
           fault("|phi - exp(-t^2 / 2)|", p->waves.apart, SHUF__APART_LIMIT) +
           fault("|phi| from 3.5", p->waves.beyond, SHUF__BEYOND_LIMIT) +
           fault("distance of distribution functions", p->marginal.kolmogorov,
                 SHUF__KOLMOGOROV_LIMIT) +
           fault("relative error of a tail", tail, SHUF__TAIL_LIMIT) +
           fault("products of cosines", p->cosines.score, SHUF__SCORE_LIMIT);
}

/* ---- The header ---- */

enum { HALF_LINE = SHUF__TABLES / 2 };

/* ---- Writing ---- */

static void write_head(const struct shuf__proof *proof, const char *made_by, const char *made_with,
                       FILE *to)
{
    fprintf(to,
            "/* SPDX-License-Identifier: MIT\n"
            " *\n"
            " * The tables of Gaussian streams. Do not edit; made by\n"
            " *\n"
            " *     %s\n"
            " *     (%s)\n"
            " *\n"
            " * How near a block of 32 values is to independent normal ones, computed from these\n"
            " * integers; tools/gauss_tables/README.md says how to read it:\n"
            " *\n",
            made_by, made_with);
    shuf__proof_write_summary(proof, " *     ", to);
    fputs(" */\n"
          "#ifndef SHUF_GAUSS_TABLE_H\n"
          "#define SHUF_GAUSS_TABLE_H\n"
          "\n"
          "#include \"inline.h\"\n"
          "\n"
          "/* clang-format off */\n",
          to);
}

static void write_table(const shuf__tables *tables, FILE *to)
{
    fputs("/* [index][table]; [index + 128] is the opposite of [index]. */\n"
          "SHUF_CONSTANT int32_t shuf_gauss_table[256][16] = {\n",
          to);
    for (int j = 0; j < 2 * M; j++)
        for (int t = 0; t < SHUF__TABLES; t++) {
            const int32_t number = j < M ? tables->of[t][j] : -tables->of[t][j - M];
            const char *before = t == 0 ? "    {" : t % HALF_LINE == 0 ? "     " : " ";
            const char *after = t == SHUF__TABLES - 1 ? "},\n" : t % HALF_LINE == 7 ? ",\n" : ",";
            fprintf(to, "%s%7" PRId32 "%s", before, number, after);
        }
    fputs("};\n"
          "/* clang-format on */\n"
          "\n"
          "#endif\n",
          to);
}

bool shuf__header_write(const shuf__tables *tables, const struct shuf__proof *proof,
                        const char *made_by, const char *made_with, FILE *to)
{
    write_head(proof, made_by, made_with, to);
    write_table(tables, to);
    return fflush(to) == 0 && !ferror(to);
}

/* ---- Reading ---- */

bool shuf__header_read(shuf__tables *tables)
{
    for (int j = 0; j < M; j++)
        for (int t = 0; t < SHUF__TABLES; t++) {
            const int32_t number = shuf_gauss_table[j][t], opposite = shuf_gauss_table[j + M][t];
            if (number < 0 || opposite != -number) {
                fprintf(stderr,
                        "gauss-tables: numbers %d and %d of table %d are %" PRId32 " and %" PRId32
                        ": expected opposites, the first not negative\n",
                        j, j + M, t, number, opposite);
                return false;
            }
            tables->of[t][j] = number;
        }
    return true;
}
