/* SPDX-License-Identifier: MIT
 *
 * See lease_table.h.
 */
#include "lease_table.h"

#include <assert.h>
#include <stdlib.h>

enum { LEAST = 64 };

void shuf__lease_table_free(struct shuf__lease_table *table)
{
    free(table->slots);
    *table = (struct shuf__lease_table){0};
}

static bool grow(struct shuf__lease_table *table)
{
    const size_t room = table->room < LEAST ? LEAST : 2 * table->room;
    struct shuf__lease_slot *slots = realloc(table->slots, room * sizeof *slots);
    if (!slots)
        return false;
    table->slots = slots;
    table->room = room;
    return true;
}

bool shuf__lease_table_add(struct shuf__lease_table *table, uint64_t number,
                           struct shuf__lease *lease)
{
    assert(table->used == 0 || table->slots[table->used - 1].number < number);
    if (table->used == table->room && !grow(table))
        return false;
    table->slots[table->used++] = (struct shuf__lease_slot){number, lease};
    table->count++;
    return true;
}

size_t shuf__lease_table_above(const struct shuf__lease_table *table, uint64_t number)
{
    size_t low = 0, high = table->used;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (table->slots[middle].number <= number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct shuf__lease_slot *find_slot(const struct shuf__lease_table *table, uint64_t number)
{
    const size_t above = shuf__lease_table_above(table, number);
    return above > 0 && table->slots[above - 1].number == number ? &table->slots[above - 1] : NULL;
}

struct shuf__lease *shuf__lease_table_find(const struct shuf__lease_table *table, uint64_t number)
{
    const struct shuf__lease_slot *slot = find_slot(table, number);
    return slot ? slot->lease : NULL;
}

static void close_gaps(struct shuf__lease_table *table)
{
    size_t kept = 0;
    for (size_t i = 0; i < table->used; i++)
        if (table->slots[i].lease)
            table->slots[kept++] = table->slots[i];
    table->used = kept;
}

void shuf__lease_table_remove(struct shuf__lease_table *table, uint64_t number)
{
    struct shuf__lease_slot *slot = find_slot(table, number);
    assert(slot && slot->lease);
    slot->lease = NULL;
    table->count--;
    if (table->used >= LEAST && table->count <= table->used / 2)
        close_gaps(table);
}
