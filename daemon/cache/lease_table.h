/* SPDX-License-Identifier: MIT
 *
 * All leases, in an array that is sorted by number. Numbers only grow, so a new lease goes to the
 * end, and a binary search finds a lease. A lease that ends leaves a gap; when half of the array is
 * gaps, the gaps are removed. All calls are on the loop's thread.
 */
#ifndef SHUFD_LEASE_TABLE_H
#define SHUFD_LEASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shuf__lease;

struct shuf__lease_slot {
    uint64_t number;
    struct shuf__lease *lease; /* NULL: it has ended */
};

struct shuf__lease_table {
    struct shuf__lease_slot *slots;
    size_t used, room; /* slots */
    size_t count;      /* leases */
};

void shuf__lease_table_free(struct shuf__lease_table *table);

/* Adds a lease. Its number must be larger than all numbers before. False: out of memory. */
bool shuf__lease_table_add(struct shuf__lease_table *table, uint64_t number,
                           struct shuf__lease *lease);

void shuf__lease_table_remove(struct shuf__lease_table *table, uint64_t number);

/* The lease with that number, or NULL. */
struct shuf__lease *shuf__lease_table_find(const struct shuf__lease_table *table, uint64_t number);

/* The index of the first slot with a larger number; table->used if there is none. */
size_t shuf__lease_table_above(const struct shuf__lease_table *table, uint64_t number);

#endif
