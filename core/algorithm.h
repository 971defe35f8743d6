/* SPDX-License-Identifier: MIT
 *
 * Names of the permutation algorithms (shuf/algorithm.h has their table).
 */
#ifndef SHUF__ALGORITHM_H
#define SHUF__ALGORITHM_H

#include "error.h"
#include "shuf/algorithm.h"

/* "philox24". Static storage. */
const char *shuf__algorithm_name(enum shuf_algorithm algorithm);

/* Finds the algorithm of that name; an empty name or NULL is the default. SHUF_INVALID. */
shuf_status shuf__algorithm_parse(const char *name, enum shuf_algorithm *algorithm,
                                  struct shuf__error *error);

#endif
