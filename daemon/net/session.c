/* SPDX-License-Identifier: MIT
 *
 * See session.h. uv_poll_t and our own system calls, because libuv's streams can
 * neither pass descriptors nor send from memory in bounded turns.
 */
#include "session.h"

#include "handlers/handlers.h"
#include "memory/client_process.h"
#include "server.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TURN_NS = 1000000, /* of replies and what they lead to, before what else has come */
    HALF_CLOSED_MS = 1000,
    HALF_CLOSED_READS = 64, /* of the receive buffer's size, discarded while lingering */
};

static void on_poll(uv_poll_t *poll, int status, int events);
static void on_deadline(uv_timer_t *timer);

/* ---- life ---- */

static void release(struct shuf__session *session)
{
    assert(session->holds > 0);
    if (--session->holds == 0)
        free(session);
}

static void on_handle_closed(uv_handle_t *handle)
{
    release(handle->data);
}

/* libuv changes what it watches by two system calls, so it is told only of changes. */
static void watch(struct shuf__session *session, int events)
{
    if (session->watched == events)
        return;
    session->watched = events;
    int result = uv_poll_start(&session->poll, events, on_poll);
    assert(result == 0);
    (void)result;
}

static void end_replies(struct shuf__session *session)
{
    if (session->replies)
        TAILQ_REMOVE(&session->server->replying, session, reply_link);
    session->replies = false;
}

static void drop_descriptor(struct shuf__session *session)
{
    if (session->descriptor >= 0)
        close(session->descriptor);
    session->descriptor = -1;
}

void shuf__session_close(struct shuf__session *session)
{
    if (session->state == SHUF__SESSION_CLOSED)
        return;
    session->state = SHUF__SESSION_CLOSED;
    if (session->ask)
        shuf__ask_drop(session->ask);
    if (session->lookup)
        shuf__lookup_drop(session->lookup);
    if (session->writing)
        shuf__writing_drop(session->writing);
    end_replies(session);
    shuf__leases_end(session);
    shuf__client_process_detach(session);
    drop_descriptor(session);
    session->holds++; /* for the length of this function */
    if (!shuf__payload_end(&session->payload))
        session->holds++; /* for on_payload_ready */
    uv_close((uv_handle_t *)&session->poll, on_handle_closed);
    uv_close((uv_handle_t *)&session->deadline, on_handle_closed);
    close(session->fd);
    session->fd = -1;
    shuf__server_forget(session->server, session);
    release(session);
}

static void set_deadline(struct shuf__session *session, uint64_t ms)
{
    uv_timer_start(&session->deadline, on_deadline, ms, 0);
}

static void discard(struct shuf__session *session)
{
    ssize_t got = 1;
    for (int i = 0; i < HALF_CLOSED_READS && got > 0; i++)
        got = recv(session->fd, session->received, sizeof session->received, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    shuf__session_close(session);
}

/* Closing a socket with unread bytes in it gives the peer ECONNRESET where it expects
 * the end of the stream. So it is told that all is said, and its bytes are
 * discarded until it leaves too, within bounds. */
static void linger(struct shuf__session *session)
{
    session->state = SHUF__SESSION_HALF_CLOSED;
    session->begin = session->end = 0;
    shutdown(session->fd, SHUT_WR);
    if (session->server->draining) { /* it was well-behaved, and there is no time */
        discard(session);
        shuf__session_close(session);
        return;
    }
    set_deadline(session, HALF_CLOSED_MS);
    watch(session, UV_READABLE | UV_DISCONNECT);
}

/* ---- sending ---- */

static void attach(struct msghdr *message, int descriptor)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
}

/* One turn: what is left of the reply and one chunk of payload. The bytes sent, or -1. */
static ssize_t send_turn(struct shuf__session *session, const uint8_t *payload, size_t payload_size)
{
    struct iovec parts[2] = {
        {session->reply + session->reply_sent, session->reply_size - session->reply_sent},
        {(void *)(uintptr_t)payload, payload_size},
    };
    union {
        struct cmsghdr header; /* for its alignment */
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (session->descriptor >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        attach(&message, session->descriptor);
    }
    ssize_t sent = sendmsg(session->fd, &message, MSG_NOSIGNAL);
    if (sent < 0) {
        if (errno == EAGAIN || errno == EINTR)
            return 0;
        if (errno != EPIPE && errno != ECONNRESET)
            shuf__log(session->server->log, SHUF__LOG_WARNING, "client pid %ld: cut off: %s",
                      (long)session->peer.pid, strerror(errno));
        return -1;
    }
    drop_descriptor(session); /* went with the first byte */
    size_t of_reply = (size_t)sent < parts[0].iov_len ? (size_t)sent : parts[0].iov_len;
    session->reply_sent += of_reply;
    shuf__payload_advance(&session->payload, (size_t)sent - of_reply);
    return sent;
}

static void end_reply(struct shuf__session *session)
{
    shuf__payload_end(&session->payload);
    session->reply_sent = session->reply_size = 0;
    session->state = SHUF__SESSION_READING;
    shuf__spin_replied(&session->server->spin);
    if (session->last)
        linger(session);
}

static void fail_payload(struct shuf__session *session)
{
    struct shuf__error error = session->payload.error;
    struct shuf__server *server = session->server;
    shuf__log(server->log, SHUF__LOG_ERROR, "client pid %ld: cut off in the middle of a result: %s",
              (long)session->peer.pid, error.text);
    shuf__session_close(session);
    if (error.status == SHUF_DEVICE)
        shuf__server_device_failed(server, &error);
}

/* Sends a turn's worth, then leaves the loop to others. */
static void flush(struct shuf__session *session)
{
    end_replies(session);
    const uint8_t *chunk = NULL;
    size_t size;
    enum shuf__payload_state state = shuf__payload_next(&session->payload, &chunk, &size);
    if (state == SHUF__PAYLOAD_FAILED) {
        fail_payload(session);
        return;
    }
    if (session->reply_sent == session->reply_size && state == SHUF__PAYLOAD_WAIT) {
        watch(session, UV_DISCONNECT); /* on_payload_ready goes on */
        return;
    }
    if (send_turn(session, chunk, size) < 0) {
        shuf__session_close(session);
        return;
    }
    bool replied = session->reply_sent == session->reply_size;
    if (replied && shuf__payload_next(&session->payload, &chunk, &size) == SHUF__PAYLOAD_END)
        end_reply(session);
    else
        watch(session, UV_WRITABLE | UV_DISCONNECT);
}

static void start_reply(struct shuf__session *session, Shuf__Reply *reply)
{
    session->reply_sent = 0;
    session->reply_size = shuf__message_pack(&reply->base, session->reply, sizeof session->reply);
    assert(session->reply_size > 0); /* its strings are all bounded */
    session->state = SHUF__SESSION_SENDING;
    session->replies = true;
    TAILQ_INSERT_TAIL(&session->server->replying, session, reply_link);
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
    shuf__log(session->server->log, session->last ? SHUF__LOG_INFO : SHUF__LOG_DEBUG,
              "client pid %ld, uid %ld: %s: %s", (long)session->peer.pid, (long)session->peer.uid,
              shuf_status_name(error->status), text);
    start_reply(session, reply);
}

void shuf__session_fail(struct shuf__session *session, const struct shuf__error *error)
{
    Shuf__Reply reply = SHUF__REPLY__INIT;
    reply_failure(session, &reply, error);
}

void shuf__session_refuse(struct shuf__session *session, Shuf__Reply *reply,
                          const struct shuf__error *error)
{
    session->last = true;
    reply_failure(session, reply, error);
}

void shuf__session_reply(struct shuf__session *session, Shuf__Reply *reply,
                         struct shuf__cache_entry *result, int descriptor)
{
    struct shuf__error error;
    struct shuf__engine *engine = session->server->engine;
    if (result && shuf__payload_begin(&session->payload, result, engine, result->bytes, &error)) {
        shuf__cache_entry_unref(result);
        shuf__session_fail(session, &error);
        return;
    }
    session->descriptor = descriptor;
    reply->id = session->id;
    reply->bulk_bytes = result ? result->bytes : 0;
    start_reply(session, reply);
}

/* ---- receiving ---- */

static void refuse_frame(struct shuf__session *session, uint64_t id, shuf_status status,
                         const char *text)
{
    Shuf__Reply reply = SHUF__REPLY__INIT;
    struct shuf__error error;
    shuf__fail(&error, status, "%s", text);
    session->id = id;
    shuf__session_refuse(session, &reply, &error);
}

static void handle_frame(struct shuf__session *session, const uint8_t *bytes, size_t length)
{
    char text[96];
    const Shuf__Request *request = shuf__request_unpack(&session->server->arena, bytes, length);
    if (request) {
        session->id = request->id;
        shuf__handle(session, request);
        return;
    }
    snprintf(text, sizeof text, "frame of %zu bytes: expected a request", length);
    refuse_frame(session, 0, SHUF_PROTOCOL, text);
}

/* What is left waits at the front of the buffer, for the time that it is given. */
static void await_rest(struct shuf__session *session)
{
    size_t rest = session->end - session->begin;
    if (session->begin > 0)
        memmove(session->received, session->received + session->begin, rest);
    session->begin = 0;
    session->end = rest;
    if (rest == 0 && session->greeted)
        uv_timer_stop(&session->deadline);
    else if (!uv_is_active((uv_handle_t *)&session->deadline))
        set_deadline(session, session->server->config->frame_timeout_ms);
    watch(session, UV_READABLE | UV_DISCONNECT);
}

/* Handles the frame at the front; false when there is none that is whole. */
static bool handle_front(struct shuf__session *session)
{
    char text[96];
    size_t length = 0;
    const uint8_t *front = session->received + session->begin;
    switch (shuf__frame_parse(front, session->end - session->begin, &length)) {
    case SHUF__FRAME_PARTIAL:
        return false;
    case SHUF__FRAME_BAD:
        uv_timer_stop(&session->deadline);
        snprintf(text, sizeof text, "frame length %zu: expected 1 to %d", length, SHUF__FRAME_MAX);
        refuse_frame(session, 0, SHUF_PROTOCOL, text);
        return true;
    case SHUF__FRAME_WHOLE:
        break;
    }
    session->begin += SHUF__FRAME_HEADER + length;
    uv_timer_stop(&session->deadline);
    handle_frame(session, front + SHUF__FRAME_HEADER, length);
    return true;
}

/* Handles the next request, where one has been received whole. */
static void advance(struct shuf__session *session)
{
    if (session->state == SHUF__SESSION_READING && !handle_front(session))
        await_rest(session);
}

/* All at the end of a turn, so that whoever waits for several of them is woken once. What has been
 * sent makes room for the next request of those who did not wait for it. */
void shuf__sessions_send(struct shuf__server *server)
{
    struct shuf__session *session;
    uint64_t end = uv_hrtime() + TURN_NS;
    while ((session = TAILQ_FIRST(&server->replying)) != NULL) {
        session->holds++;
        if (uv_hrtime() < end) {
            flush(session);
        } else { /* at once, but in our turn */
            end_replies(session);
            watch(session, UV_WRITABLE | UV_DISCONNECT);
        }
        advance(session);
        release(session);
    }
}

static void receive(struct shuf__session *session)
{
    /* No room for control data is offered: descriptors that come along are closed
     * by the kernel and never enter this process. */
    ssize_t got = recv(session->fd, session->received + session->end,
                       sizeof session->received - session->end, 0);
    if (got > 0)
        session->end += (size_t)got;
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        shuf__session_close(session);
}

static void on_readable(struct shuf__session *session)
{
    switch (session->state) {
    case SHUF__SESSION_READING:
        receive(session);
        break;
    case SHUF__SESSION_HALF_CLOSED:
        discard(session);
        break;
    default: /* bytes of the next request: not now */
        watch(session, session->watched & ~UV_READABLE);
    }
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct shuf__session *session = poll->data;
    session->holds++;
    if (status < 0 || (events & UV_DISCONNECT))
        shuf__session_close(session);
    else if (events & UV_READABLE)
        on_readable(session);
    if ((events & UV_WRITABLE) && session->state == SHUF__SESSION_SENDING)
        flush(session);
    advance(session);
    release(session);
}

static void on_deadline(uv_timer_t *timer)
{
    char text[96];
    struct shuf__session *session = timer->data;
    if (session->state == SHUF__SESSION_HALF_CLOSED) {
        shuf__session_close(session);
        return;
    }
    if (session->state != SHUF__SESSION_READING) /* a reply on its way is not to be overwritten */
        return;
    snprintf(text, sizeof text, "frame: %zu bytes of it came within %" PRIu64 " ms, expected all",
             session->end - session->begin, session->server->config->frame_timeout_ms);
    session->holds++;
    refuse_frame(session, 0, SHUF_TIMEOUT, text);
    advance(session);
    release(session);
}

/* ---- work ---- */

void shuf__session_work(struct shuf__session *session, struct shuf__ask *ask)
{
    session->state = SHUF__SESSION_WORKING;
    session->ask = ask;
    /* A socket nearly always has room: watched for it, the loop would spin until the job
     * ends. That it has bytes to read is told once (on_readable). */
    watch(session, session->watched & ~UV_WRITABLE);
}

void shuf__session_resume(struct shuf__session *session)
{
    assert(session->state == SHUF__SESSION_WORKING);
    session->ask = NULL;
}

void shuf__session_continue(struct shuf__session *session)
{
    advance(session);
}

static void on_payload_ready(void *context)
{
    struct shuf__session *session = context;
    if (session->state == SHUF__SESSION_CLOSED) {
        shuf__payload_end(&session->payload);
        release(session);
        return;
    }
    session->holds++;
    if (session->state == SHUF__SESSION_SENDING)
        flush(session);
    advance(session);
    release(session);
}

void shuf__session_drain(struct shuf__session *session)
{
    session->last = true;
    if (session->state == SHUF__SESSION_READING)
        shuf__session_close(session);
}

/* A client that connected and says nothing has the deadline of a frame. */
void shuf__session_open(struct shuf__server *server, int fd)
{
    struct shuf__session *session = malloc(sizeof *session);
    if (!session) {
        close(fd);
        shuf__log(server->log, SHUF__LOG_WARNING, "client refused: out of memory");
        return;
    }
    memset(session, 0, offsetof(struct shuf__session, reply));
    session->server = server;
    session->fd = fd;
    session->descriptor = -1;
    session->peer = shuf__peer_of(fd);
    session->payload.ready = on_payload_ready;
    session->payload.context = session;
    session->poll.data = session->deadline.data = session;
    uv_timer_init(&server->loop, &session->deadline);
    int result = uv_poll_init(&server->loop, &session->poll, fd);
    if (result) {
        shuf__log(server->log, SHUF__LOG_WARNING, "client refused: %s", uv_strerror(result));
        close(fd);
        session->holds = 1;
        uv_close((uv_handle_t *)&session->deadline, on_handle_closed);
        return;
    }
    session->holds = 2;
    LIST_INSERT_HEAD(&server->sessions, session, link);
    server->clients++;
    shuf__log(server->log, SHUF__LOG_DEBUG, "client pid %ld, uid %ld: connected",
              (long)session->peer.pid, (long)session->peer.uid);
    await_rest(session);
}
