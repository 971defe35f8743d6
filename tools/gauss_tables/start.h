/* SPDX-License-Identifier: MIT
 *
 * Where the search starts: quantiles of the normal law. The seed puts those of different tables
 * between each other, and makes the tails of some tables heavier and of others lighter.
 */
#ifndef SHUF__GAUSS_START_H
#define SHUF__GAUSS_START_H

#include "random.h"
#include "tables.h"

void shuf__start(struct shuf__random *random, shuf__reals *x);

#endif
