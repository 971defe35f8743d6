/* SPDX-License-Identifier: MIT
 *
 * The exact distributions of entries, computed from the integers of the tables. An entry is the sum
 * of two draws from tables and a uniform part. The code counts all outcomes of these three.
 */
#ifndef SHUF__GAUSS_ENTRY_H
#define SHUF__GAUSS_ENTRY_H

#include "hermite.h"
#include "tables.h"

#include <stdbool.h>

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

#endif
