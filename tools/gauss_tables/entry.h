/* SPDX-License-Identifier: MIT
 *
 * The exact laws of entries, from the integers: all outcomes of two draws and of the uniform part
 * are counted.
 */
#ifndef SHUF__GAUSS_ENTRY_H
#define SHUF__GAUSS_ENTRY_H

#include "hermite.h"
#include "tables.h"

#include <stdbool.h>

enum { SHUF__PLACES = 1 << 19 };

/* The count of entries equal to place + 1/2 or its opposite, in 2^30 outcomes. */
typedef struct shuf__entry_law {
    uint32_t count[SHUF__PLACES];
} shuf__entry_law;

struct shuf__entries {
    shuf__series a[SHUF__PAIRS]; /* E psi_k; a_2 includes the dither's share of the variance */
    double chi[SHUF__PAIRS];     /* chi^2 from the normal law */
    double chi_of_mean;          /* chi^2 of the mean of the pairs' laws */
};

/* Tables of `magnitudes` entries each, a power of 2. */
void shuf__entry_count(const int32_t *one, const int32_t *other, int magnitudes,
                       shuf__entry_law *law);

/* False if there is no memory. */
bool shuf__entries_look(const shuf__tables *tables, struct shuf__entries *entries);

#endif
