/* SPDX-License-Identifier: MIT
 *
 * The replies of request handlers (session.h). These functions only pack a reply. It is sent in the
 * next turn of the session.
 */
#include "request_events.h"
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Prepares a reply. reply->unmap tells the client once about each shortage of memory. */
static void start_reply(struct shuf__session *session, Shuf__Reply *reply)
{
    reply->unmap = session->shortages != session->all->allocations->shortages;
    session->shortages = session->all->allocations->shortages;
    shuf__outbox_put(&session->outbox, reply);
    shuf__request_replied(session, reply);
    session->state = SHUF__SESSION_SENDING;
    shuf__ready_add(&session->ready);
}

static void reply_failure(struct shuf__session *session, Shuf__Reply *reply,
                          const struct shuf__error *error)
{
    char text[SHUF__ERROR_TEXT];
    snprintf(text, sizeof text, "%s", error->text);
    shuf__make_printable(text);
    reply->id = session->id;
    reply->status = (uint32_t)error->status;
    reply->message = text;
    shuf__request_failed(session, error->status, text);
    start_reply(session, reply);
}

bool shuf__session_waits_for_client(const struct shuf__session *session)
{
    return session->state == SHUF__SESSION_SENDING && (session->watched & EPOLLOUT) &&
           !session->ready.is_ready;
}

void shuf__session_fail(struct shuf__session *session, const struct shuf__error *error)
{
    Shuf__Reply reply = SHUF__REPLY__INIT;
    reply_failure(session, &reply, error);
}

void shuf__session_refuse(struct shuf__session *session, Shuf__Reply *reply,
                          const struct shuf__error *error)
{
    session->closes_after_reply = true;
    reply_failure(session, reply, error);
}

void shuf__session_reply(struct shuf__session *session, Shuf__Reply *reply,
                         struct shuf__cache_entry *entry, const struct shuf__lent *lent)
{
    struct shuf__error error;
    if (entry && shuf__payload_begin(&session->outbox.payload, entry, &error)) {
        shuf__cache_entry_unref(entry);
        shuf__session_fail(session, &error);
        return;
    }
    if (lent)
        session->outbox.lent = *lent;
    reply->id = session->id;
    reply->payload_bytes = entry ? entry->bytes : 0;
    start_reply(session, reply);
}

void shuf__session_fail_lending(struct shuf__session *session)
{
    struct shuf__error error, ignored;
    struct shuf__lent *lent = &session->outbox.lent;
    Shuf__Release release = SHUF__RELEASE__INIT;
    uint64_t block = lent->allocation->id;
    shuf__fail(&error, SHUF_IO, "descriptor of a block: %s", strerror(errno));
    release.n_lease = release.n_unmapped = 1;
    release.lease = &lent->lease;
    release.unmapped = &block;
    lent->allocation = NULL;
    shuf__leases_release(&session->leases, &release, &ignored);
    shuf__session_fail(session, &error);
}

void shuf__session_reply_text(struct shuf__session *session, Shuf__Reply *reply, char *text,
                              size_t size)
{
    shuf__payload_begin_text(&session->outbox.payload, text, size);
    reply->id = session->id;
    reply->payload_bytes = size;
    start_reply(session, reply);
}
