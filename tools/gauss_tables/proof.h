/* SPDX-License-Identifier: MIT
 *
 * The proof: how far a block is from independent normal values, computed from the integers of the
 * tables (README.md).
 */
#ifndef SHUF__GAUSS_PROOF_H
#define SHUF__GAUSS_PROOF_H

#include "hermite.h"
#include "tables.h"

#include <stdbool.h>
#include <stdio.h>

/* ---- Entries ---- */

/* Their exact distributions, computed from the integers of the tables. An entry is the sum of two
 * draws from tables and a uniform part. The code counts all outcomes of these three. */

enum { SHUF__PLACES = 1 << 19 };

/* count[place]: how many of 2^30 outcomes are place + 1/2 or its opposite. */
typedef struct shuf__entry_law {
    uint32_t count[SHUF__PLACES];
} shuf__entry_law;

struct shuf__entries {
    shuf__series a[SHUF__PAIRS]; /* E psi_k; a_2 includes the dither's share of the variance */
    double chi[SHUF__PAIRS];     /* the chi^2 distance of each pair from the normal law */
    double chi_of_mean;          /* the same for the mean of all pairs' distributions */
};

/* Counts all entries that two tables give. Each table has `magnitudes` magnitudes, a power of 2. */
void shuf__entry_count(const int32_t *one, const int32_t *other, int magnitudes,
                       shuf__entry_law *law);

/* False if there is no memory. */
bool shuf__entries_look(const shuf__tables *tables, struct shuf__entries *entries);

/* ---- A block ---- */

/* The distance chi^2 of 32 values from independent normal values: the terms of single entries,
 * called z^2, and the terms of two entries. README.md derives both. */

enum { SHUF__PAIRED = 20 }; /* the terms of two entries have total orders up to twice this */

struct shuf__block {
    shuf__series part; /* of z^2, by order */
    double above;      /* bound of the part of z^2 of orders above SHUF__DEGREE */
    double z2;         /* the sum of `part` and `above` */
    /* For each kind of terms, the sum of the lane in which it is largest: */
    double two;    /* two entries against two */
    double three;  /* one entry against two */
    double beyond; /* two entries against two, higher orders, in 16 of the values */
};

struct shuf__block shuf__block_look(const struct shuf__entries *entries);

/* E (w_0^n_0 w_1^n_1 w_2^n_2 w_3^n_3) for four Walsh coefficients w of 32 random signs. Each
 * coefficient is divided by 32. The exclusive or of their indices is 0. With n_2 = n_3 = 0 only two
 * coefficients count. */
double shuf__walsh_moment(const int n[4]);

/* ---- A value, a sum of 32 independent entries ---- */

enum { SHUF__TAILS = 12 };

struct shuf__marginal {
    shuf__series c;               /* E psi_k of a value */
    double kolmogorov;            /* the largest distance from the normal distribution function */
    double tail[SHUF__TAILS + 1]; /* relative error of P(|z| > x), x = 1 .. 12 */
};

/* The distribution of a value. Each of a[0] to a[7] holds for SHUF__SHARED entries. */
struct shuf__marginal shuf__marginal_look(const shuf__series a[SHUF__PAIRS]);

/* ---- Characteristic functions, and means of products of cosines (wave.c) ---- */

struct shuf__waves {
    double apart;  /* the largest |phi(t) - exp(-t^2 / 2)| of all t and pairs */
    double beyond; /* the largest |phi(t)| for t >= 3.5; x is in standard deviations of an entry */
};

/* The best test that averages the product of cos(t y_p) over disjoint sets of n values. */
struct shuf__cosines {
    double score; /* largest offset of the mean, in standard deviations per block */
    int n;
    double t;
    double first_order; /* the largest |offset - first order| / |first order| of `sets` sets */
    int sets;
};

/* The characteristic function of a pair at t. */
double shuf__wave(const shuf__tables *tables, int pair, double t);

struct shuf__waves shuf__waves_look(const shuf__tables *tables);

struct shuf__cosines shuf__cosines_look(const shuf__tables *tables);

/* The expectation of the product of cos(t y_p) over the n <= 16 positions of `set`, minus the same
 * expectation under the normal law. Exact. */
double shuf__cosine_offset(const shuf__tables *tables, int lane, const int *set, int n, double t);

/* An approximation of the same number, the first order (wave.c). It is equal for all sets of n
 * positions. */
double shuf__cosine_first(const shuf__tables *tables, int n, double t);

/* ---- The proof ---- */

/* The limits of a proof: a figure must be below its limit. */
#define SHUF__Z2_LIMIT 6e-10        /* chi^2 of a block: terms of single entries */
#define SHUF__TOTAL_LIMIT 1.1e-9    /* the same with the terms of two entries */
#define SHUF__CHI_MEAN_LIMIT 1e-3   /* chi^2 of an entry: mean over the pairs of tables */
#define SHUF__CHI_LIMIT 5e-3        /* the same for each pair of tables */
#define SHUF__APART_LIMIT 1.5e-2    /* |phi(t) - exp(-t^2 / 2)| */
#define SHUF__BEYOND_LIMIT 1.5e-2   /* |phi(t)|, t >= 3.5 */
#define SHUF__KOLMOGOROV_LIMIT 5e-9 /* distribution function of one value */
#define SHUF__TAIL_LIMIT 1e-3       /* tail of one value, up to 8 deviations */
#define SHUF__SCORE_LIMIT 1e-5      /* products of cosines */

struct shuf__proof {
    struct shuf__entries entries;
    struct shuf__block block;
    struct shuf__marginal marginal;
    struct shuf__waves waves;
    struct shuf__cosines cosines;
    double chi_mean, chi_most;
    int64_t squares; /* the sum of squares minus SHUF__SQUARES */
    int64_t uneven;  /* the largest distance of a pair's squares from their mean */
    int32_t largest;
};

/* False if there is no memory. */
bool shuf__prove(const shuf__tables *tables, struct shuf__proof *proof);

/* Write lines that begin with `margin`. The summary is also in the header's comment. */
void shuf__proof_write_summary(const struct shuf__proof *proof, const char *margin, FILE *to);
void shuf__proof_write(const struct shuf__proof *proof, const char *margin, FILE *to);

/* The sum of z^2 and the magnitudes of the terms of two entries. */
double shuf__proof_total(const struct shuf__proof *proof);

/* The number of violated limits. Prints each on stderr. */
int shuf__proof_faults(const struct shuf__proof *proof);

/* ---- kernels/inline/shuf/gauss_table.h ---- */

/* `made_by` and `made_with` are texts for the header's comment. False if the stream failed. */
bool shuf__header_write(const shuf__tables *tables, const struct shuf__proof *proof,
                        const char *made_by, const char *made_with, FILE *to);

/* False, with a line on stderr, if the table's halves are not opposite to each other. */
bool shuf__header_read(shuf__tables *tables);

#endif
