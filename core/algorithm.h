/* SPDX-License-Identifier: MIT
 *
 * Names of the permutation algorithms (shuf/algorithm.h has their table).
 */
#ifndef SHUF__ALGORITHM_H
#define SHUF__ALGORITHM_H

#include "error.h"
#include "shuf/algorithm.h"

/* "primefold|philox24|lcg": stands for the argument of an option in its help. */
#define SHUF__ALGORITHM_CHOICES (&SHUF_ALGORITHM_MAP(SHUF__ALGORITHM_CHOICE)[1])
#define SHUF__ALGORITHM_CHOICE(name, text, description, random_access) "|" text

enum { SHUF__ALGORITHM_LIST = 128 };

/* "philox24". Static storage. */
const char *shuf__algorithm_name(enum shuf_algorithm algorithm);

/* "primefold, philox24 or lcg", for errors. */
const char *shuf__algorithm_list(char text[SHUF__ALGORITHM_LIST]);

/* Finds the algorithm of that name; an empty name or NULL means the default. Fails with
 * SHUF_INVALID. */
shuf_status shuf__algorithm_parse(const char *name, enum shuf_algorithm *algorithm,
                                  struct shuf__error *error);

#endif
