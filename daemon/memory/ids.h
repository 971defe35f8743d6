/* SPDX-License-Identifier: MIT
 *
 * Ids of leases and blocks. A permutation with a random key maps the numbers 1, 2, ... to the ids.
 * So an id is never used again, and does not tell a user how many ids other users got. The daemon
 * has the key, so it can compute the number of an id.
 */
#ifndef SHUFD_IDS_H
#define SHUFD_IDS_H

#include "shuf/philox24.h"

#include <stdint.h>

struct shuf__ids {
    uint64_t last; /* the last number that was used */
    shuf_philox24 permutation;
};

void shuf__ids_init(struct shuf__ids *ids);

/* Increases `last`, and returns the id of that number. Never 0. */
uint64_t shuf__ids_next(struct shuf__ids *ids);

/* The id of a number that shuf__ids_next() has used. */
uint64_t shuf__ids_of(const struct shuf__ids *ids, uint64_t number);

/* The number of an id. 0 gives 0; a value that is not an id gives any number. */
uint64_t shuf__ids_number(const struct shuf__ids *ids, uint64_t id);

#endif
