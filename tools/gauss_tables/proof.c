/* SPDX-License-Identifier: MIT
 *
 * See proof.h.
 */
#include "proof.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { P = SHUF__PAIRS, M = SHUF__MAGNITUDES, SHOWN = 16, SIGMAS = 4 };

/* ---- Figures ----------------------------------------------------------------- */

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

/* ---- For people -------------------------------------------------------------- */

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
            "\n%sOf one value, before it is rounded to its type: f64, f32, f16 and bf16 are it,\n"
            "%srounded once\n",
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
