/* SPDX-License-Identifier: MIT
 *
 * See lease.h.
 */
#include "lease.h"

#include "compute.h"
#include "memory/client_process.h"
#include "net/session.h"
#include "server.h"

#include <inttypes.h>
#include <stdlib.h>

static void end_lease(struct shuf__lease *lease)
{
    struct shuf__session *session = lease->session;
    LIST_REMOVE(lease, of_session);
    TAILQ_REMOVE(&session->server->leases.all, lease, link);
    session->server->leases.count--;
    if (lease->prefetch)
        session->prefetches--;
    else
        session->leased--;
    shuf__compute_unref(lease->result);
    free(lease);
}

static struct shuf__lease *find(const struct shuf__session *session, uint64_t id)
{
    struct shuf__lease *lease;
    LIST_FOREACH (lease, &session->leases, of_session)
        if (lease->id == id)
            return lease;
    return NULL;
}

struct shuf__lease *shuf__lease_find(const struct shuf__session *session, uint64_t id,
                                     struct shuf__error *error)
{
    struct shuf__lease *lease = find(session, id);
    if (lease && !lease->prefetch)
        return lease;
    shuf__fail(error, SHUF_INVALID, "lease %" PRIu64 ": expected one that this connection holds",
               id);
    return NULL;
}

/* What `result` was prefetched for has come; or, with NULL, the oldest. */
static void end_prefetch(struct shuf__session *session, const struct shuf__cache_entry *result)
{
    struct shuf__lease *lease, *last = NULL;
    LIST_FOREACH (lease, &session->leases, of_session)
        if (lease->prefetch && (!result || lease->result == result))
            last = lease;
    if (last)
        end_lease(last);
}

void shuf__lease_end_prefetch(struct shuf__session *session, const struct shuf__cache_entry *result)
{
    if (session->prefetches > 0)
        end_prefetch(session, result);
}

static void make_way(struct shuf__session *session, const struct shuf__cache_entry *result,
                     bool prefetch)
{
    if (session->prefetches == 0)
        return;
    end_prefetch(session, result);
    if (prefetch && session->prefetches == SHUF__PREFETCHES)
        end_prefetch(session, NULL);
}

shuf_status shuf__lease_may(const struct shuf__session *session, struct shuf__error *error)
{
    uint64_t most = session->server->config->leases;
    if (session->leased < most)
        return SHUF_OK;
    return shuf__fail(error, SHUF_BUSY,
                      "leases %" PRIu64 ": the most that one connection may hold; give some back "
                      "first",
                      most);
}

shuf_status shuf__lease_take(struct shuf__session *session, struct shuf__cache_entry *result,
                             Shuf__Transport transport, bool prefetch, uint64_t *id,
                             struct shuf__error *error)
{
    struct shuf__server *server = session->server;
    struct shuf__lease *lease = malloc(sizeof *lease);
    if (!lease)
        return shuf__fail(error, SHUF_NO_MEMORY, "lease: out of memory");
    make_way(session, result, prefetch);
    *lease = (struct shuf__lease){
        .id = ++server->leases.last_id,
        .session = session,
        .result = result,
        .transport = transport,
        .prefetch = prefetch,
        .since_ms = uv_now(&server->loop),
    };
    LIST_INSERT_HEAD(&session->leases, lease, of_session);
    TAILQ_INSERT_TAIL(&server->leases.all, lease, link);
    server->leases.count++;
    if (prefetch)
        session->prefetches++;
    else
        session->leased++;
    *id = lease->id;
    return SHUF_OK;
}

static shuf_status check(const struct shuf__session *session, const Shuf__Release *release,
                         struct shuf__error *error)
{
    if (release->n_lease > SHUF__RELEASE_MAX || release->n_unmapped > SHUF__RELEASE_MAX)
        return shuf__fail(error, SHUF_INVALID,
                          "release of %zu leases and %zu blocks: expected at most %d of each",
                          release->n_lease, release->n_unmapped, SHUF__RELEASE_MAX);
    for (size_t i = 0; i < release->n_lease; i++) {
        bool twice = false;
        for (size_t j = 0; j < i && !twice; j++)
            twice = release->lease[j] == release->lease[i];
        if (twice || !find(session, release->lease[i]))
            return shuf__fail(error, SHUF_INVALID,
                              "lease %" PRIu64 ": expected one that this connection holds%s",
                              release->lease[i], twice ? ", once" : "");
    }
    return SHUF_OK;
}

shuf_status shuf__lease_give_back(struct shuf__session *session, const Shuf__Release *release,
                                  struct shuf__error *error)
{
    if (check(session, release, error))
        return error->status;
    for (size_t i = 0; i < release->n_lease; i++)
        end_lease(find(session, release->lease[i]));
    for (size_t i = 0; i < release->n_unmapped; i++)
        shuf__client_process_unmapped(session, release->unmapped[i]);
    if (release->everything) {
        shuf__leases_end(session);
        shuf__client_process_unmapped_all(session);
    }
    return SHUF_OK;
}

void shuf__leases_end(struct shuf__session *session)
{
    struct shuf__lease *lease;
    while ((lease = LIST_FIRST(&session->leases)) != NULL)
        end_lease(lease);
}
