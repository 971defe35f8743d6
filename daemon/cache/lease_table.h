/* SPDX-License-Identifier: MIT
 *
 * All leases by number, in an array in which a lease is found by binary search: numbers only grow,
 * so a new lease is the last one. Ended leases leave gaps, and half an array of gaps is closed. On
 * the loop's thread.
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

/* The number is larger than all before. False: out of memory. */
bool shuf__lease_table_add(struct shuf__lease_table *table, uint64_t number,
                           struct shuf__lease *lease);

void shuf__lease_table_remove(struct shuf__lease_table *table, uint64_t number);

/* NULL: there is none. */
struct shuf__lease *shuf__lease_table_find(const struct shuf__lease_table *table, uint64_t number);

/* The first slot with a number above this one; table->used: there is none. */
size_t shuf__lease_table_above(const struct shuf__lease_table *table, uint64_t number);

#endif
