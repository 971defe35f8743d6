/* SPDX-License-Identifier: MIT
 *
 * See lease.h.
 */
#include "lease.h"

#include "compute.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

/* ---- The table of leases ---- */

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

/* ---- Leases ---- */

/* The end of a result takes some microseconds, because it asks the kernel about the block. */
enum { ENDS = 32 }; /* in one step of the loop */

static void count(struct shuf__lease_list *owner, bool prefetch, int change)
{
    *(prefetch ? &owner->prefetches : &owner->leased) += (uint64_t)change;
    *(prefetch ? &owner->account->prefetches : &owner->account->leases) += (uint64_t)change;
}

static void forget_lease(struct shuf__lease *lease)
{
    struct shuf__lease_list *owner = lease->owner;
    LIST_REMOVE(lease, of_owner);
    shuf__lease_table_remove(&owner->all->table, lease->number);
    count(owner, lease->prefetch, -1);
}

static void end_result(struct shuf__lease *lease)
{
    shuf__compute_unref(lease->entry);
    free(lease);
}

static void end_lease(struct shuf__lease *lease)
{
    forget_lease(lease);
    end_result(lease);
}

/* Ends results of leases that are over. Returns whether there are more. */
static bool end_results(struct shuf__leases *leases, unsigned most)
{
    struct shuf__lease *lease;
    for (unsigned i = 0; i < most && (lease = LIST_FIRST(&leases->over)) != NULL; i++) {
        LIST_REMOVE(lease, of_owner);
        end_result(lease);
    }
    return !LIST_EMPTY(&leases->over);
}

static void on_idle(uv_idle_t *idle)
{
    if (!end_results(idle->data, ENDS))
        uv_idle_stop(idle);
}

static struct shuf__lease *find_lease(const struct shuf__lease_list *owner, uint64_t id)
{
    const struct shuf__leases *all = owner->all;
    struct shuf__lease *lease =
        shuf__lease_table_find(&all->table, shuf__ids_number(&all->ids, id));
    return lease && lease->id == id && lease->owner == owner ? lease : NULL;
}

struct shuf__lease *shuf__lease_find(const struct shuf__lease_list *owner, uint64_t id,
                                     struct shuf__error *error)
{
    struct shuf__lease *lease = find_lease(owner, id);
    if (lease && !lease->prefetch)
        return lease;
    shuf__fail(error, SHUF_INVALID, "lease %" PRIu64 ": expected one that this connection holds",
               id);
    return NULL;
}

/* Ends the prefetch of the entry. If `entry` is NULL, ends the oldest prefetch. */
static void end_prefetch(struct shuf__lease_list *owner, const struct shuf__cache_entry *entry)
{
    struct shuf__lease *lease, *last = NULL;
    LIST_FOREACH (lease, &owner->prefetched, of_owner)
        if (!entry || lease->entry == entry)
            last = lease;
    if (last)
        end_lease(last);
}

void shuf__lease_end_prefetch(struct shuf__lease_list *owner, const struct shuf__cache_entry *entry)
{
    if (owner->prefetches > 0)
        end_prefetch(owner, entry);
}

void shuf__lease_end_prefetches(struct shuf__lease_list *owner)
{
    struct shuf__lease *lease;
    while ((lease = LIST_FIRST(&owner->prefetched)) != NULL)
        end_lease(lease);
}

static void end_old_prefetches(struct shuf__lease_list *owner,
                               const struct shuf__cache_entry *entry, bool prefetch)
{
    if (owner->prefetches == 0)
        return;
    end_prefetch(owner, entry);
    if (prefetch && owner->prefetches == SHUF__PREFETCHES)
        end_prefetch(owner, NULL);
}

/* Each mapping has a record, which stays after the lease has ended. */
static shuf_status refuse_mappings(const struct shuf__lease_list *owner, struct shuf__error *error)
{
    owner->all->allocations->shortages++;
    return shuf__fail(error, SHUF_BUSY,
                      "user_leases %" PRIu64 ": user %" PRIu32 " has %" PRIu64
                      " blocks that its connections have not reported as unmapped; unmap some, or "
                      "close a connection",
                      owner->all->user_limit, owner->account->uid, owner->account->mappings);
}

shuf_status shuf__lease_check_limit(const struct shuf__lease_list *owner, struct shuf__error *error)
{
    const uint64_t most = owner->all->limit, most_of_user = owner->all->user_limit;
    if (owner->leased >= most)
        return shuf__fail(error, SHUF_BUSY,
                          "leases %" PRIu64 ": the most that one connection may hold; give some "
                          "back first",
                          most);
    if (shuf__uid_is_privileged(owner->account->uid))
        return SHUF_OK;
    if (owner->account->mappings >= most_of_user)
        return refuse_mappings(owner, error);
    if (owner->account->leases < most_of_user)
        return SHUF_OK;
    return shuf__fail(error, SHUF_BUSY,
                      "user_leases %" PRIu64 ": the most that the connections of one user may "
                      "hold, and user %" PRIu32 " holds %" PRIu64 "; give some back first",
                      most_of_user, owner->account->uid, owner->account->leases);
}

shuf_status shuf__lease_take(struct shuf__lease_list *owner, struct shuf__cache_entry *entry,
                             Shuf__Transport transport, bool prefetch, uint64_t *id,
                             struct shuf__error *error)
{
    struct shuf__leases *all = owner->all;
    struct shuf__lease *lease = malloc(sizeof *lease);
    const uint64_t new_id = shuf__ids_next(&all->ids);
    if (!lease || !shuf__lease_table_add(&all->table, all->ids.last, lease)) {
        free(lease);
        return shuf__fail(error, SHUF_NO_MEMORY, "lease: out of memory");
    }
    end_old_prefetches(owner, entry, prefetch);
    *lease = (struct shuf__lease){
        .id = new_id,
        .number = all->ids.last,
        .owner = owner,
        .entry = entry,
        .transport = transport,
        .prefetch = prefetch,
        .since_ms = uv_now(all->loop),
    };
    count(owner, prefetch, 1);
    if (prefetch)
        LIST_INSERT_HEAD(&owner->prefetched, lease, of_owner);
    else
        LIST_INSERT_HEAD(&owner->list, lease, of_owner);
    *id = new_id;
    return SHUF_OK;
}

static void end_marks(const struct shuf__lease_list *owner, const uint64_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        find_lease(owner, ids[i])->releasing = false;
}

static shuf_status check(const struct shuf__lease_list *owner, const Shuf__Release *release,
                         struct shuf__error *error)
{
    struct shuf__lease *lease;
    if (release->n_lease > SHUF__RELEASE_MAX || release->n_unmapped > SHUF__RELEASE_MAX)
        return shuf__fail(error, SHUF_INVALID,
                          "release of %zu lease%s and %zu block%s: expected at most %d of each",
                          release->n_lease, shuf__plural(release->n_lease), release->n_unmapped,
                          shuf__plural(release->n_unmapped), SHUF__RELEASE_MAX);
    for (size_t i = 0; i < release->n_lease; i++) {
        lease = find_lease(owner, release->lease[i]);
        if (!lease || lease->releasing) {
            end_marks(owner, release->lease, i);
            return shuf__fail(error, SHUF_INVALID,
                              "lease %" PRIu64 ": expected one that this connection holds%s",
                              release->lease[i], lease ? ", once" : "");
        }
        lease->releasing = true;
    }
    return SHUF_OK;
}

shuf_status shuf__leases_release(struct shuf__lease_list *owner, const Shuf__Release *release,
                                 struct shuf__error *error)
{
    if (check(owner, release, error))
        return error->status;
    for (size_t i = 0; i < release->n_lease; i++)
        end_lease(find_lease(owner, release->lease[i]));
    shuf__client_unmapped(owner->client, release->unmapped, release->n_unmapped);
    if (release->everything) {
        shuf__leases_end(owner);
        shuf__client_unmapped_all(owner->client);
    }
    return SHUF_OK;
}

void shuf__leases_end(struct shuf__lease_list *owner)
{
    struct shuf__leases *all = owner->all;
    struct shuf__lease *lease;
    shuf__lease_end_prefetches(owner);
    for (unsigned i = 0; i < ENDS && (lease = LIST_FIRST(&owner->list)) != NULL; i++)
        end_lease(lease);
    while ((lease = LIST_FIRST(&owner->list)) != NULL) {
        forget_lease(lease);
        LIST_INSERT_HEAD(&all->over, lease, of_owner);
    }
    if (!LIST_EMPTY(&all->over))
        uv_idle_start(&all->ending, on_idle);
}

void shuf__leases_finish(struct shuf__leases *leases)
{
    end_results(leases, UINT_MAX);
}

void shuf__leases_init(struct shuf__leases *leases, uv_loop_t *loop,
                       struct shuf__allocations *allocations)
{
    leases->loop = loop;
    leases->allocations = allocations;
    shuf__ids_init(&leases->ids);
    LIST_INIT(&leases->over);
    uv_idle_init(loop, &leases->ending);
    leases->ending.data = leases;
}

void shuf__leases_free(struct shuf__leases *leases)
{
    shuf__lease_table_free(&leases->table);
}
