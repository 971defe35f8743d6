/* SPDX-License-Identifier: MIT
 *
 * The cache: one entry for each result. Requests find it by its key and share it by a reference
 * count. An entry without references stays while its allocation is idle in the pool
 * (memory/pool.h). Users never share entries. All calls are on the loop's thread.
 */
#ifndef SHUFD_CACHE_H
#define SHUFD_CACHE_H

#include "keys/keyring.h"
#include "memory/acquire.h"
#include "rank_index.h"
#include "request.h"

#include <stdbool.h>
#include <stdint.h>

/* The key of an entry: the request, its user and the kind of memory for the values. Entries with
 * equal keys have equal bytes, except shuffles and buffers. The request of a rank index
 * is a LOOK_UP. */
struct shuf__cache_key {
    struct shuf__request request;
    uint32_t uid;
    enum shuf__memory memory;
    /* A rank index for jobs of the host's engine beside that of a device. Two jobs of a user may
     * run at the same time, one in each engine, and a job writes to its rank index. */
    bool index_of_host;
};

/* Whether requests with equal keys share one entry. The contents of shuffles and buffers depend on
 * more than their key. */
static inline bool shuf__cache_key_is_shared(const struct shuf__cache_key *key)
{
    return key->request.kind != SHUF__SHUFFLE && key->request.kind != SHUF__BUFFER;
}

static inline bool shuf__cache_key_is_buffer(const struct shuf__cache_key *key)
{
    return key->request.kind == SHUF__BUFFER;
}

enum { SHUF__SAMPLES = 4 }; /* most first values, and most last values, in a summary */

/* The facts about a result that a reply has in addition to the values. */
struct shuf__summary {
    uint64_t device_ns, fingerprint;
    uint64_t fingerprint_index; /* number of the first value, see shuf__compute_options */
    bool has_fingerprint, has_sums, has_samples;
    struct shuf__sums sums; /* of a stream */
    unsigned n_first, n_last;
    uint64_t first[SHUF__SAMPLES], last[SHUF__SAMPLES]; /* the bits of these values */
};

struct shuf__entry_job; /* compute.c */

struct shuf__cache_entry {
    struct shuf__cache_key key; /* must be the first member, as the search tree compares keys */
    struct shuf__cache *cache;
    struct shuf__allocation *allocation; /* NULL until its job starts */
    uint64_t bytes;                      /* of its values */
    struct shuf__engine *engine;         /* computes the values */
    unsigned refs;                       /* 0: idle */
    bool findable;                       /* in the search tree */
    bool ready;                          /* the values are computed */
    struct shuf__summary summary;
    struct shuf__entry_job *job;     /* the job that waits or runs, or NULL */
    struct shuf__cache_entry *input; /* the input of a shuffle, with a reference until `ready` */
};

struct shuf__cache {
    struct shuf__pool *pool;
    struct shuf__engine *engine;
    struct shuf__keyring *keyring;
    void *tree;                      /* tsearch(3) */
    uint64_t evicted;                /* entries */
    uint64_t hits, joined, computed; /* for Status */
    uint64_t computed_on_host;       /* of `computed` */
};

void shuf__cache_init(struct shuf__cache *cache, struct shuf__pool *pool,
                      struct shuf__keyring *keyring);

/* The entry with that key, ready or not, or NULL. */
struct shuf__cache_entry *shuf__cache_find(struct shuf__cache *cache,
                                           const struct shuf__cache_key *key);

/* Adds an entry for `bytes` bytes of values, with one reference and without memory for them.
 * shuf__cache_find() finds it if its key is shared. The cache's engine computes it, unless the
 * caller sets another one. NULL when out of memory. */
struct shuf__cache_entry *shuf__cache_add(struct shuf__cache *cache,
                                          const struct shuf__cache_key *key, uint64_t bytes);

/* The engine for the entry's jobs. If the values are ready in host memory, it is that of the host,
 * whoever has computed them. */
struct shuf__engine *shuf__cache_entry_engine(const struct shuf__cache_entry *entry);

/* Counts a result that the engine has computed. */
void shuf__cache_count_computed(struct shuf__cache *cache, struct shuf__engine *engine);

/* Acquires memory for an entry that has none, as shuf__pool_acquire() does; false if it fails. */
bool shuf__cache_entry_acquire(struct shuf__cache_entry *entry, enum shuf__acquire_policy policy,
                               struct shuf__error *error);

/* The memory that shuf__cache_entry_acquire() requests. */
struct shuf__memory_request shuf__cache_entry_memory_request(const struct shuf__cache_entry *entry);

struct shuf__cache_entry *shuf__cache_entry_ref(struct shuf__cache_entry *entry);
void shuf__cache_entry_unref(struct shuf__cache_entry *entry);

/* Releases the reference of a shuffle's entry to its input, if there is one. */
void shuf__cache_entry_end_input(struct shuf__cache_entry *entry);

/* Removes the entry from the search tree, so no request finds it any more. */
void shuf__cache_entry_hide(struct shuf__cache_entry *entry);

/* ---- Rank indexes (kernels/rank_index.h) ---- */

/* With a rank index, a backend finds late slices and single values of philox24 and lcg without
 * evaluating all values before them. A rank index is an entry of the cache. It is charged to its
 * user in host memory, and jobs for the same permutation share it. It is evicted when it is the
 * least recently used entry, or unused for `cache_time`. */

/* Call on the loop's thread when a job starts. Returns the user's rank index of the request's
 * permutation. The index has memory, but may have no counts yet. Several jobs may hold the
 * index, and only one fills it at a time, because each engine has its own, and runs one job of a
 * user at a time. Returns NULL if the
 * budget has no room, with the error of shuf__refuse_allocation(), or if n is too large. */
struct shuf__cache_entry *shuf__rank_entry_acquire(struct shuf__cache *cache,
                                                   struct shuf__engine *engine, uint32_t uid,
                                                   const struct shuf__request *request,
                                                   struct shuf__error *error);

/* Call on a lane's thread. Returns the job's rank index, in memory; NULL when out of memory. */
struct shuf__rank_index *shuf__rank_entry_open(struct shuf__cache_entry *index,
                                               struct shuf__backend *backend,
                                               struct shuf__error *error);

/* Call on the loop's thread when the job has ended or failed. `index` may be NULL. */
void shuf__rank_entry_release(struct shuf__cache_entry *index);

#endif
