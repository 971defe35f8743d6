/* SPDX-License-Identifier: MIT
 *
 * See session_make.h.
 */
#include "session_make.h"

#include <stdlib.h>
#include <string.h>

/* Acquires the parts of the session. If it fails, the caller calls release(). */
static bool acquire(struct shuf__session *session, const struct ucred *peer)
{
    struct shuf__sessions *all = session->all;
    struct shuf__processes *processes = &all->process_watches->processes;
    return (session->leases.account = shuf__account_of(all->accounts, peer->uid)) &&
           (session->client.process = shuf__process_of(processes, peer->pid, peer->uid)) &&
           shuf__ready_join(&all->ready, &session->ready, peer->uid);
}

static void release(struct shuf__session *session)
{
    shuf__client_detach(&session->client);
    if (session->leases.account)
        shuf__account_unref(session->leases.account);
    free(session);
}

struct shuf__session *shuf__session_make(struct shuf__sessions *sessions, int fd,
                                         const struct ucred *peer)
{
    struct shuf__session *session = malloc(sizeof *session);
    if (!session)
        return NULL;
    memset(session, 0, offsetof(struct shuf__session, outbox.reply));
    session->all = sessions;
    session->client = (struct shuf__client){
        .all = sessions->process_watches, .socket = fd, .pid = peer->pid, .uid = peer->uid};
    if (!acquire(session, peer)) {
        release(session);
        return NULL;
    }
    session->number = ++sessions->stats->connections;
    session->user = shuf__user_total_of(&sessions->stats->users, peer->uid);
    session->fd = fd;
    session->leases.all = sessions->leases;
    session->shortages = sessions->allocations->shortages;
    session->leases.client = &session->client;
    session->inbox.begin = session->inbox.end = 0;
    session->outbox.payload.context = session;
    session->deadline.data = session;
    return session;
}
