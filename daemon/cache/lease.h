/* SPDX-License-Identifier: MIT
 *
 * Who holds which result: a reference that a session owns, under an id, until it
 * gives it back or ends. On the loop's thread.
 */
#ifndef SHUFD_LEASE_H
#define SHUFD_LEASE_H

#include "cache.h"
#include "message.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct shuf__session;

enum {
    SHUF__PREFETCHES = 4,    /* results that one session may have made ready ahead */
    SHUF__RELEASE_MAX = 256, /* leases, or blocks, in one Release: each is looked for */
};

struct shuf__lease {
    uint64_t id; /* never used again */
    struct shuf__session *session;
    struct shuf__cache_entry *result;
    Shuf__Transport transport;
    bool prefetch; /* nobody's view yet */
    uint64_t since_ms;
    TAILQ_ENTRY(shuf__lease) link;      /* all of them, by id */
    LIST_ENTRY(shuf__lease) of_session; /* the newest first */
};

struct shuf__leases {
    TAILQ_HEAD(, shuf__lease) all;
    uint64_t last_id, count;
};

/* Whether the session may have one more: SHUF_BUSY when it holds the most. Asked before anything is
 * computed for it. */
shuf_status shuf__lease_may(const struct shuf__session *session, struct shuf__error *error);

/* Takes over the caller's reference to the result when it succeeds. A prefetched result that is
 * now leased is no longer held by the prefetch; of prefetches the oldest makes room. Fails with
 * SHUF_NO_MEMORY. */
shuf_status shuf__lease_take(struct shuf__session *session, struct shuf__cache_entry *result,
                             Shuf__Transport transport, bool prefetch, uint64_t *id,
                             struct shuf__error *error);

/* What the session holds under that id; NULL, with SHUF_INVALID, where that is nothing, or only
 * prefetched. */
struct shuf__lease *shuf__lease_find(const struct shuf__session *session, uint64_t id,
                                     struct shuf__error *error);

/* Does what a Release says. Fails with SHUF_INVALID at a lease that the session does not hold,
 * whoever does; then none is given back. */
shuf_status shuf__lease_give_back(struct shuf__session *session, const Shuf__Release *release,
                                  struct shuf__error *error);

/* The session has the result in another way than by a lease: if it was prefetched, that is over. */
void shuf__lease_end_prefetch(struct shuf__session *session,
                              const struct shuf__cache_entry *result);

/* The session ends. */
void shuf__leases_end(struct shuf__session *session);

#endif
