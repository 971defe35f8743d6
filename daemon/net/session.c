/* SPDX-License-Identifier: MIT
 *
 * See session.h. A session uses its own system calls. The streams of libuv cannot pass
 * descriptors, and cannot send from memory in bounded parts.
 */
#include "session.h"

#include "peer_socket.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HALF_CLOSED_MS = 1000, /* time in which the client should close */
    UNREAD_MS = 100,       /* between two looks at a client that has not read */
    UNREAD_SMALL = 4096,   /* bytes in the kernel: more than a reply that refuses */
};

static void on_deadline(uv_timer_t *timer);

/* ---- Memory ---- */

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

/* Does not open handles of libuv. The caller sets outbox.payload.ready and client.died. NULL when
 * out of memory. */
static struct shuf__session *make(struct shuf__sessions *sessions, int fd, const struct ucred *peer)
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

/* ---- The replies of request handlers ---- */

/* These functions only pack a reply. It is sent in the next turn of the session. */

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

/* Replaces the reply by a failure, with errno, because there is no descriptor of the block that the
 * reply lends. Ends the lease. */
static void fail_lending(struct shuf__session *session)
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

/* ---- Life ---- */

void shuf__session_unref(struct shuf__session *session)
{
    assert(session->refs > 0);
    if (--session->refs > 0)
        return;
    shuf__ready_leave(&session->ready);
    shuf__account_unref(session->leases.account);
    free(session);
}

static void on_handle_closed(uv_handle_t *handle)
{
    shuf__session_unref(handle->data);
}

static void set_ready(struct shuf__session *session)
{
    shuf__ready_add(&session->ready);
}

/* A session that cannot be watched closes in its next turn. */
static void watch(struct shuf__session *session, uint32_t events)
{
    const uint32_t before = session->watched;
    session->watched = events;
    if (shuf__ready_watch(&session->ready, session->fd, before, events))
        return;
    shuf__log_client(session->all->log, SHUF__LOG_WARNING, "client pid %ld: cut off: epoll_ctl: %s",
                     (long)session->client.pid, strerror(errno));
    session->is_lost = true;
    set_ready(session);
}

static void set_deadline(struct shuf__session *session, uint64_t ms)
{
    uv_timer_start(&session->deadline, on_deadline, ms, 0);
}

/* Gives back all but the socket. */
static void end(struct shuf__session *session)
{
    if (session->state == SHUF__SESSION_WORKING || session->state == SHUF__SESSION_SENDING)
        shuf__request_cancelled(session);
    session->state = SHUF__SESSION_UNREAD;
    session->is_lost = false;
    if (session->pending)
        session->pending->cancel(session->pending);
    session->pending = NULL;
    shuf__ready_remove(&session->ready);
    shuf__leases_end(&session->leases);
    shuf__client_detach(&session->client);
    if (!shuf__payload_end(&session->outbox.payload))
        session->refs++; /* until on_payload_ready() */
    /* close() removes the socket only if no other process has it. */
    shuf__ready_watch(&session->ready, session->fd, session->watched, 0);
}

static void close_socket(struct shuf__session *session)
{
    session->state = SHUF__SESSION_CLOSED;
    session->refs++; /* until this function ends */
    uv_close((uv_handle_t *)&session->deadline, on_handle_closed);
    shuf__peer_socket_close(session->fd);
    session->fd = -1;
    LIST_REMOVE(session, link);
    session->all->count--;
    session->leases.account->clients--;
    session->all->closed(session->all);
    shuf__session_unref(session);
}

/* Bytes and descriptors that the client has not read stay in the kernel, at the expense of the
 * daemon, also when the daemon closes its socket. So the connection counts as one of its user until
 * the client has read them, or has no such socket any more. */
static bool await_reader(struct shuf__session *session)
{
    int unread = 0;
    const int small = session->outbox.has_lent ? 0 : UNREAD_SMALL;
    if (session->all->draining || ioctl(session->fd, SIOCOUTQ, &unread) != 0 || unread <= small)
        return false;
    shutdown(session->fd, SHUT_RDWR);
    set_deadline(session, UNREAD_MS);
    return true;
}

void shuf__session_close(struct shuf__session *session)
{
    if (session->state == SHUF__SESSION_CLOSED)
        return;
    if (session->state != SHUF__SESSION_UNREAD)
        end(session);
    if (!await_reader(session))
        close_socket(session);
}

static void discard(struct shuf__session *session)
{
    const ssize_t got = shuf__inbox_discard(&session->inbox, session->fd);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        shuf__session_close(session);
    else
        watch(session, EPOLLIN | EPOLLRDHUP);
}

/* If a socket with unread bytes is closed, the peer gets ECONNRESET instead of the end of the
 * stream. So the session only ends its sending side. It discards the peer's bytes until the peer
 * closes too, but not longer than HALF_CLOSED_MS. */
static void half_close(struct shuf__session *session)
{
    session->state = SHUF__SESSION_HALF_CLOSED;
    shutdown(session->fd, SHUT_WR);
    if (session->all->draining) {
        discard(session);
        shuf__session_close(session);
        return;
    }
    set_deadline(session, HALF_CLOSED_MS);
    watch(session, EPOLLIN | EPOLLRDHUP);
}

/* ---- Sending ---- */

static void end_reply(struct shuf__session *session)
{
    shuf__payload_end(&session->outbox.payload);
    session->state = SHUF__SESSION_READING;
    shuf__request_sent(session);
    if (!session->closes_after_reply)
        return;
    session->state = SHUF__SESSION_ENDING; /* the shutdown wakes the client a second time */
    set_ready(session);
}

static void fail_payload(struct shuf__session *session)
{
    struct shuf__error error = session->outbox.payload.error;
    struct shuf__sessions *all = session->all;
    shuf__log_client(all->log, SHUF__LOG_ERROR,
                     "client pid %ld: cut off in the middle of a result: %s",
                     (long)session->client.pid, error.text);
    shuf__session_close(session);
    shuf__engine_report(all->engine, &error);
}

static void end_lost(struct shuf__session *session)
{
    if (errno != EPIPE && errno != ECONNRESET)
        shuf__log_client(session->all->log, SHUF__LOG_WARNING, "client pid %ld: cut off: %s",
                         (long)session->client.pid, strerror(errno));
    shuf__session_close(session);
}

/* Sends one chunk. The rest waits for another turn, so that other sessions are served too. */
static void flush(struct shuf__session *session)
{
    switch (shuf__outbox_send(&session->outbox, session->fd)) {
    case SHUF__OUTBOX_SENT:
        end_reply(session);
        break;
    case SHUF__OUTBOX_MORE:
        watch(session, EPOLLOUT | EPOLLRDHUP);
        break;
    case SHUF__OUTBOX_WAIT: /* on_payload_ready() continues */
        watch(session, EPOLLRDHUP);
        break;
    case SHUF__OUTBOX_UNLENT:
        fail_lending(session);
        break;
    case SHUF__OUTBOX_FAILED:
        fail_payload(session);
        break;
    case SHUF__OUTBOX_LOST:
        end_lost(session);
        break;
    }
}

/* ---- Receiving ---- */

static void refuse_frame(struct shuf__session *session, uint64_t id, shuf_status status,
                         const char *text)
{
    Shuf__Reply reply = SHUF__REPLY__INIT;
    struct shuf__error error;
    shuf__fail(&error, status, "%s", text);
    session->id = session->record.request.id = id;
    shuf__session_refuse(session, &reply, &error);
}

static void handle_frame(struct shuf__session *session, const uint8_t *bytes, size_t length)
{
    char text[96];
    const Shuf__Request *request = shuf__request_unpack(&session->all->arena, bytes, length);
    shuf__request_received(session, request);
    if (request) {
        session->all->handle(session, request);
        return;
    }
    snprintf(text, sizeof text, "frame of %zu byte%s: expected a request", length,
             shuf__plural(length));
    refuse_frame(session, 0, SHUF_PROTOCOL, text);
}

/* Waits for the rest of a frame, which must arrive before the deadline, or for the next frame. */
static void await_rest(struct shuf__session *session)
{
    size_t rest = shuf__inbox_compact(&session->inbox);
    if (rest == 0 && session->greeted)
        uv_timer_stop(&session->deadline);
    else if (!uv_is_active((uv_handle_t *)&session->deadline))
        set_deadline(session, session->all->frame_timeout_ms);
    watch(session, EPOLLIN | EPOLLRDHUP);
}

static void receive(struct shuf__session *session)
{
    ssize_t got = shuf__inbox_receive(&session->inbox, session->fd);
    if (got < 0 && errno == EBADMSG)
        refuse_frame(session, 0, SHUF_PROTOCOL, "bytes with descriptors: expected bytes alone");
    else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        shuf__session_close(session);
}

/* Handles the frame at the front, if it is complete. */
static void handle_front(struct shuf__session *session)
{
    char text[96];
    size_t length = 0;
    const uint8_t *message = NULL;
    switch (shuf__inbox_next(&session->inbox, &message, &length)) {
    case SHUF__FRAME_PARTIAL:
        break;
    case SHUF__FRAME_WHOLE:
        handle_frame(session, message, length);
        break;
    case SHUF__FRAME_BAD:
        snprintf(text, sizeof text, "frame length %zu: expected 1 to %d", length, SHUF__FRAME_MAX);
        refuse_frame(session, 0, SHUF_PROTOCOL, text);
    }
}

static void refuse_slow_frame(struct shuf__session *session)
{
    char text[96];
    const size_t bytes = session->inbox.end - session->inbox.begin;
    snprintf(text, sizeof text, "frame: only %zu byte%s came within %" PRIu64 " ms, expected all",
             bytes, shuf__plural(bytes), session->all->frame_timeout_ms);
    refuse_frame(session, 0, SHUF_TIMEOUT, text);
}

/* Reads only if no complete request waits, so a session has one request at a time. Reads also if
 * the request is late: if the loop stood still, its timers come before the bytes that came
 * meanwhile. */
static void read_and_handle(struct shuf__session *session)
{
    const bool is_late = session->is_late;
    session->is_late = false;
    if (!shuf__inbox_has_frame(&session->inbox))
        receive(session);
    if (session->state != SHUF__SESSION_READING)
        return;
    if (is_late && !shuf__inbox_has_frame(&session->inbox))
        refuse_slow_frame(session);
    else
        handle_front(session);
}

static bool has_bytes(const struct shuf__session *session)
{
    return poll(&(struct pollfd){.fd = session->fd, .events = POLLIN}, 1, 0) > 0;
}

/* Call when the daemon drains. Does not wait for the rest of a request that is not complete. */
static void read_or_close(struct shuf__session *session)
{
    if (!has_bytes(session)) {
        shuf__session_close(session);
        return;
    }
    shuf__inbox_compact(&session->inbox);
    set_ready(session);
}

/* If the next request is complete, it waits for its turn. Else waits for its bytes. */
void shuf__session_advance(struct shuf__session *session)
{
    if (session->state != SHUF__SESSION_READING)
        return;
    if (shuf__inbox_has_frame(&session->inbox)) {
        uv_timer_stop(&session->deadline);
        set_ready(session);
    } else if (session->all->draining) {
        read_or_close(session);
    } else {
        await_rest(session);
    }
}

/* ---- Turns ---- */

void shuf__session_serve(struct shuf__session *session)
{
    if (session->is_lost)
        shuf__session_close(session);
    switch (session->state) {
    case SHUF__SESSION_READING:
        read_and_handle(session);
        break;
    case SHUF__SESSION_SENDING:
        flush(session);
        break;
    case SHUF__SESSION_ENDING:
        half_close(session);
        break;
    case SHUF__SESSION_HALF_CLOSED:
        discard(session);
        break;
    case SHUF__SESSION_WORKING:
        if (session->pending->is_over)
            session->pending->reply(session->pending);
        break;
    case SHUF__SESSION_UNREAD:
    case SHUF__SESSION_CLOSED:
        break;
    }
    shuf__session_advance(session);
}

/* ---- Events ---- */

/* In other states the bytes of the next request stay in the socket until the reply is sent. */
static void on_readable(struct shuf__session *session)
{
    if (session->state == SHUF__SESSION_READING || session->state == SHUF__SESSION_HALF_CLOSED)
        set_ready(session);
    else
        watch(session, session->watched & ~(uint32_t)EPOLLIN);
}

static void on_writable(struct shuf__session *session)
{
    if (session->state == SHUF__SESSION_SENDING)
        set_ready(session);
}

static void on_lost(struct shuf__session *session)
{
    session->is_lost = true;
    set_ready(session);
    watch(session, 0);
}

/* The session reads, sends and closes in its turn, because these take time too. */
static void report_events(struct shuf__ready *ready, uint32_t events)
{
    struct shuf__session *session =
        (struct shuf__session *)((char *)ready - offsetof(struct shuf__session, ready));
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        on_lost(session);
    else if (events & EPOLLIN)
        on_readable(session);
    if (events & EPOLLOUT)
        on_writable(session);
}

/* The deadlines of many sessions may come at once, so each session acts in its turn. */
static void on_deadline(uv_timer_t *timer)
{
    struct shuf__session *session = timer->data;
    if (session->state == SHUF__SESSION_HALF_CLOSED || session->state == SHUF__SESSION_UNREAD)
        session->is_lost = true;
    else if (session->state == SHUF__SESSION_READING)
        session->is_late = true;
    else /* the outbox may still have a reply */
        return;
    set_ready(session);
}

/* ---- Pending work ---- */

/* Stops watching for room in the socket. There nearly always is room, so the events would make the
 * loop spin until the work is over. Bytes of a next request wake the loop only once, because
 * on_readable() then stops watching for them. */
void shuf__session_wait(struct shuf__session *session, struct shuf__pending *pending)
{
    session->state = SHUF__SESSION_WORKING;
    session->pending = pending;
    watch(session, session->watched & ~(uint32_t)EPOLLOUT);
}

void shuf__session_reply_in_turn(struct shuf__session *session)
{
    session->pending->is_over = true;
    set_ready(session);
}

void shuf__session_end_pending(struct shuf__session *session, uint64_t started_ns)
{
    assert(session->state == SHUF__SESSION_WORKING);
    session->pending = NULL;
    session->record.started_ns = started_ns;
    session->record.computed_ns = uv_hrtime();
}

static void on_payload_ready(void *context)
{
    struct shuf__session *session = context;
    if (session->state == SHUF__SESSION_UNREAD || session->state == SHUF__SESSION_CLOSED) {
        shuf__payload_end(&session->outbox.payload);
        shuf__session_unref(session);
        return;
    }
    if (session->state == SHUF__SESSION_SENDING)
        set_ready(session);
}

/* A complete request counts as accepted and gets its reply, also if the daemon has not read it yet.
 */
void shuf__session_drain(struct shuf__session *session)
{
    session->closes_after_reply = true;
    if (session->state == SHUF__SESSION_UNREAD)
        shuf__session_close(session);
    if (session->state == SHUF__SESSION_READING && !session->ready.is_ready)
        read_or_close(session);
}

/* ---- The start ---- */

/* The process may have had many connections. */
static void on_client_death(struct shuf__client *client)
{
    on_lost((struct shuf__session *)((char *)client - offsetof(struct shuf__session, client)));
}

/* A client that sends nothing is cut off at the deadline of a frame. */
void shuf__session_open(struct shuf__sessions *sessions, int fd, const struct ucred *peer)
{
    struct shuf__session *session = make(sessions, fd, peer);
    if (!session) {
        shuf__peer_socket_close(fd);
        shuf__log_client(sessions->log, SHUF__LOG_WARNING, "client refused: out of memory");
        return;
    }
    uv_timer_init(sessions->loop, &session->deadline);
    session->refs = 1;
    session->outbox.payload.ready = on_payload_ready;
    session->client.died = on_client_death;
    session->ready.report = report_events;
    session->ready.serve = shuf__session_take_turn;
    LIST_INSERT_HEAD(&sessions->list, session, link);
    sessions->count++;
    session->leases.account->clients++;
    shuf__log_client(sessions->log, SHUF__LOG_DEBUG, "client pid %ld, uid %ld: connected",
                     (long)session->client.pid, (long)session->client.uid);
    await_rest(session);
}
