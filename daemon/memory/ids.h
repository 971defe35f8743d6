/* SPDX-License-Identifier: MIT
 *
 * Ids of leases and blocks: the numbers 1, 2, ... through a permutation with a random key. So an id
 * is never used again, and does not tell a user how many ids the others got. The daemon has the
 * key, so it still knows the order.
 */
#ifndef SHUFD_IDS_H
#define SHUFD_IDS_H

#include "shuf/philox24.h"

#include <stdint.h>

struct shuf__ids {
    uint64_t last; /* number */
    shuf_philox24 permutation;
};

void shuf__ids_init(struct shuf__ids *ids);

/* The id of the next number, which is `last` from then on. Never 0. */
uint64_t shuf__ids_next(struct shuf__ids *ids);

/* The id of a number that shuf__ids_next() has counted. */
uint64_t shuf__ids_of(const struct shuf__ids *ids, uint64_t number);

/* The number of an id. 0 for 0, and any number for what is no id. */
uint64_t shuf__ids_number(const struct shuf__ids *ids, uint64_t id);

#endif
