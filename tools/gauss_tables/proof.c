/* SPDX-License-Identifier: MIT
 *
 * See proof.h.
 */
#include "proof.h"

/* ---- Figures ----------------------------------------------------------------- */

static void look_at_tables(const shuf__tables *tables, struct shuf__proof *proof)
{
    double fourth = 0, sixth = 0;
    for (int t = 0; t < SHUF__TABLES; t++) {
        const shuf__series table = shuf__cumulants(tables->of[t], SHUF__MAGNITUDES);
        const double four = (double)(table.of[2] / shuf__hermite_length(4));
        const double six = (double)(table.of[3] / shuf__hermite_length(6));
        proof->variance = fmax(proof->variance, fabs((double)(table.of[1] - 1)));
        fourth += four * four / SHUF__TABLES;
        sixth += six * six / SHUF__TABLES;
        for (int j = 0; j < SHUF__MAGNITUDES; j++)
            if (proof->largest < tables->of[t][j])
                proof->largest = tables->of[t][j];
    }
    proof->fourth = sqrt(fourth);
    proof->sixth = sqrt(sixth);
}

struct shuf__proof shuf__prove(const shuf__tables *tables, const struct shuf__rounded *rounded)
{
    struct shuf__proof proof = {.sum = shuf__cumulants_of_tables(tables)};
    const struct shuf__coefficients by = shuf__law_double(rounded);
    const struct shuf__coefficients by32 = shuf__law_float(rounded);
    const shuf__real variance = (by.a * by.a + by.b * by.b) * proof.sum.of[1];
    const shuf__real scale = 1 / shuf__real_sqrt(variance);
    const struct shuf__coefficients alone = {by.a * scale, by.b * scale, 0};
    proof.defects = shuf__law_defects(&proof.sum, &by);
    proof.without = shuf__law_defects(&proof.sum, &alone);
    proof.defects32 = shuf__law_defects(&proof.sum, &by32);
    proof.delta = shuf__law_delta(&proof.defects);
    proof.delta_without = shuf__law_delta(&proof.without);
    proof.delta32 = shuf__law_delta(&proof.defects32);
    proof.width = 2 * (SHUF__STEPS + 1) * (double)by.c;
    proof.ratio = (double)(by.a / by.b);
    look_at_tables(tables, &proof);
    return proof;
}

/* ---- For people -------------------------------------------------------------- */

static double square(double x)
{
    return x * x;
}

void shuf__proof_write(const struct shuf__proof *p, const char *margin, FILE *to)
{
    fprintf(to, "%s%-20s %11s %11s %11s\n", margin, "E He_k / sqrt(k!)", "f64", "without c", "f32");
    for (int i = 1; i < SHUF__ORDERS; i++)
        fprintf(to, "%s  k = %-14d %11.2e %11.2e %11.2e\n", margin, 2 * i, (double)p->defects.of[i],
                (double)p->without.of[i], (double)p->defects32.of[i]);
    fprintf(to, "%s%-20s %11.3e %11.3e %11.3e\n", margin, "delta, k to 16", p->delta,
            p->delta_without, p->delta32);
    fprintf(to, "%s%-20s %11.2e %11.2e %11.2e\n", margin, "N = (4 / delta)^2", square(4 / p->delta),
            square(4 / p->delta_without), square(4 / p->delta32));
    fprintf(to, "%sA / B = %.9f; 32768 C = 2^%.3f\n", margin, p->ratio, log2(p->width));
    fprintf(to, "%stables: largest %d, |variance - 1| at most %.1e,\n", margin, p->largest,
            p->variance);
    fprintf(to, "%s  rms of kappa_4 / sqrt(4!) %.4f, of kappa_6 / sqrt(6!) %.4f\n", margin,
            p->fourth, p->sixth);
}

static int fault(const char *what, double is, double limit)
{
    if (is < limit)
        return 0;
    fprintf(stderr, "gauss-tables: %s %.3e: expected below %.1e\n", what, is, limit);
    return 1;
}

int shuf__proof_faults(const struct shuf__proof *p)
{
    const double golden = fabs(p->ratio - (1 + sqrt(5)) / 2);
    return fault("delta", p->delta, SHUF__DELTA_LIMIT) +
           fault("a table's |variance - 1|", p->variance, SHUF__VARIANCE_LIMIT) +
           fault("|variance - 1| of f32", fabs((double)p->defects32.of[1]) * sqrt(2),
                 SHUF__FLOAT_LIMIT) +
           fault("A / B less the golden ratio", golden, 1e-9) +
           fault("the largest magnitude", p->largest, SHUF__LARGEST + 1.0) +
           fault("the distance of log2(32768 C) from -6", fabs(log2(p->width) + 6), 0.5);
}
