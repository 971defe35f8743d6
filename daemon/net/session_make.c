/* SPDX-License-Identifier: MIT
 *
 * See session_make.h.
 */
#include "session_make.h"

#include "listener.h"

#include <stdlib.h>
#include <string.h>

struct shuf__session *shuf__session_make(struct shuf__sessions *sessions, int fd)
{
    struct shuf__session *session = malloc(sizeof *session);
    if (!session)
        return NULL;
    const struct ucred peer = shuf__peer_of(fd);
    memset(session, 0, offsetof(struct shuf__session, outbox.reply));
    struct shuf__account *account = shuf__account_of(sessions->accounts, peer.uid);
    if (!account || !shuf__ready_join(&sessions->ready, &session->ready, peer.uid)) {
        if (account)
            shuf__account_unref(account);
        free(session);
        return NULL;
    }
    session->all = sessions;
    session->number = ++sessions->stats->connections;
    session->user = shuf__user_total_of(&sessions->stats->users, peer.uid);
    session->fd = fd;
    session->client =
        (struct shuf__client){.all = sessions->process_watches, .pid = peer.pid, .uid = peer.uid};
    session->leases.all = sessions->leases;
    session->shortages = sessions->allocations->shortages;
    session->leases.client = &session->client;
    session->leases.account = account;
    session->inbox.begin = session->inbox.end = 0;
    session->outbox.descriptor = -1;
    session->outbox.payload.context = session;
    session->poll.data = session->deadline.data = session;
    return session;
}
