/* SPDX-License-Identifier: MIT
 *
 * The start of the search: quantiles of the normal law. The seed shifts the quantiles of each table
 * differently, and makes the tails of some tables heavier and of others lighter.
 */
#ifndef SHUF__GAUSS_START_H
#define SHUF__GAUSS_START_H

#include "random.h"
#include "tables.h"

void shuf__start(struct shuf__random *random, shuf__reals *x);

#endif
