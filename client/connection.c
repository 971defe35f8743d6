/* SPDX-License-Identifier: MIT
 *
 * See connection.h. The socket is in blocking mode, and its own timeout limits a wait, so a long
 * transfer needs no poll(). If the program has an interrupt function, one system call waits for at
 * most ASK_MS. So the function is asked again after a signal that came just before the system call,
 * or that another thread handled.
 */
#include "connection.h"

#include "client_socket.h"
#include "interrupt.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)

enum { ASK_MS = 100 };

/* ---- Cancellation ---- */

void shuf__cancel(struct shuf__cancel *cancel)
{
    cancel->is_cancelled = true;
    pthread_mutex_lock(&cancel->mutex);
    if (cancel->fd >= 0)
        shutdown(cancel->fd, SHUT_RDWR);
    pthread_mutex_unlock(&cancel->mutex);
}

static void set_cancel_socket(struct shuf__cancel *cancel, int fd)
{
    pthread_mutex_lock(&cancel->mutex);
    cancel->fd = fd;
    if (fd >= 0 && cancel->is_cancelled) /* since the call has looked, without a socket then */
        shutdown(fd, SHUT_RDWR);
    pthread_mutex_unlock(&cancel->mutex);
}

/* ---- The receive buffer ---- */

enum { DESCRIPTORS = 4 }; /* read from one message; a valid reply has at most one */

static void open_receiver(struct shuf__receiver *receiver)
{
    receiver->start = receiver->end = 0;
    receiver->descriptors = 0;
    receiver->truncated = false;
    receiver->descriptor = -1;
}

/* Moves the descriptor to the caller, who closes it. -1: none. */
static int take_descriptor(struct shuf__receiver *receiver)
{
    int fd = receiver->descriptor;
    receiver->descriptor = -1;
    return fd;
}

static void close_receiver(struct shuf__receiver *receiver)
{
    int fd = take_descriptor(receiver);
    if (fd >= 0)
        close(fd);
    open_receiver(receiver);
}

static void keep_first(struct shuf__receiver *receiver, const uint8_t *at, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int fd;
        memcpy(&fd, at + i * sizeof fd, sizeof fd); /* aligned for bytes only */
        if (receiver->descriptor < 0)
            receiver->descriptor = fd;
        else
            close(fd);
        receiver->descriptors++;
    }
}

/* Reads once from the socket to `out`, as recv(). Ignores the unread bytes of the receiver. */
static ssize_t receive_once(struct shuf__receiver *receiver, int fd, void *out, size_t size,
                            int flags)
{
    union {
        struct cmsghdr aligned;
        uint8_t bytes[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = out, .iov_len = size};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got = recvmsg(fd, &message, flags | MSG_CMSG_CLOEXEC);
    if (got < 0)
        return got;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            keep_first(receiver, CMSG_DATA(c), (c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    receiver->truncated |= message.msg_flags & MSG_CTRUNC;
    return got;
}

/* Reads once from the socket into the receiver, which must not be full. Returns as recv(). */
static ssize_t fill_receiver(struct shuf__receiver *receiver, int fd)
{
    size_t held = receiver->end - receiver->start;
    assert(held < sizeof receiver->bytes);
    if (receiver->start > 0)
        memmove(receiver->bytes, receiver->bytes + receiver->start, held);
    receiver->start = 0;
    receiver->end = held;
    ssize_t got =
        receive_once(receiver, fd, receiver->bytes + held, sizeof receiver->bytes - held, 0);
    if (got > 0)
        receiver->end += (size_t)got;
    return got;
}

/* Moves at most `size` unread bytes to `out`, and returns their number. */
static size_t read_receiver(struct shuf__receiver *receiver, void *out, size_t size)
{
    size_t held = receiver->end - receiver->start;
    if (size > held)
        size = held;
    if (size > 0)
        memcpy(out, receiver->bytes + receiver->start, size);
    receiver->start += size;
    return size;
}

/* ---- The end of a connection ---- */

static void close_socket(struct shuf__connection *connection)
{
    set_cancel_socket(&connection->cancel, -1);
    close(connection->fd);
    connection->fd = -1;
    close_receiver(&connection->receiver);
}

/* Keeps the cause of the end for a later message about a lost lease. A connection whose handshake
 * failed has no leases, so its end does not replace the cause of the connection before. */
void shuf__connection_close(struct shuf__connection *connection, enum shuf__closed_by closed_by)
{
    if (connection->fd < 0)
        return;
    close_socket(connection);
    if (connection->deadline_ns == 0) {
        connection->closed_generation = connection->generation;
        connection->closed_by = closed_by;
    }
}

static uint64_t handshake_ns(const struct shuf__connection *connection)
{
    const uint64_t most = SHUF__HANDSHAKE_MS * NS_PER_MS, timeout = connection->timeout_ns;
    return timeout > 0 && timeout < most ? timeout : most;
}

static enum shuf__closed_by closed_by(int cause)
{
    if (cause == EPIPE || cause == ECONNRESET)
        return SHUF__CLOSED_BY_DAEMON;
    if (cause == EINTR)
        return SHUF__CLOSED_BY_SIGNAL;
    return cause == EAGAIN ? SHUF__CLOSED_BY_TIMEOUT : SHUF__CLOSED_BY_ERROR;
}

/* Closes the connection and fails with the status that fits errno. */
static shuf_status fail_and_close(struct shuf__connection *connection, const char *doing,
                                  struct shuf__error *error)
{
    int cause = errno;
    const char *path = connection->address.sun_path;
    const uint64_t limit_ns =
        connection->deadline_ns ? handshake_ns(connection) : connection->timeout_ns;
    const bool by_caller = limit_ns == connection->timeout_ns;
    shuf__connection_close(connection, closed_by(cause));
    switch (cause) {
    case EPIPE:
    case ECONNRESET:
        return shuf__fail(error, SHUF_NO_DAEMON, "socket %s: the daemon left while %s", path,
                          doing);
    case EAGAIN:
        return shuf__fail(error, SHUF_TIMEOUT,
                          "socket %s: the daemon did nothing for %" PRIu64
                          " ms while %s; it hangs, or %s",
                          path, limit_ns / NS_PER_MS, doing,
                          by_caller ? "needs a longer timeout" : "has not started yet");
    case EINTR:
        return shuf__fail_interrupted(path, error);
    default:
        return shuf__fail(error, SHUF_IO, "socket %s: %s while %s", path, strerror(cause), doing);
    }
}

static shuf_status close_with_error(struct shuf__connection *connection, struct shuf__error *error)
{
    shuf__connection_close(connection, SHUF__CLOSED_BY_ERROR);
    return error->status;
}

shuf_status shuf__connection_end_if_interrupted(struct shuf__connection *connection,
                                                struct shuf__error *error)
{
    if (!shuf__is_interrupted(0))
        return SHUF_OK;
    shuf__connection_close(connection, SHUF__CLOSED_BY_SIGNAL);
    return shuf__fail_interrupted(connection->address.sun_path, error);
}

/* ---- Waits ---- */

uint64_t shuf__now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 * NS_PER_MS + (uint64_t)now.tv_nsec;
}

static struct timeval to_timeval(uint64_t ns)
{
    uint64_t us = ns == 0 ? 0 : ns / 1000 + 1; /* 0 disables the timeout */
    return (struct timeval){.tv_sec = (time_t)(us / 1000000),
                            .tv_usec = (suseconds_t)(us % 1000000)};
}

/* 0: no limit. */
static uint64_t longest_ns(uint64_t now, uint64_t end)
{
    const uint64_t left = end == 0 ? 0 : end - now, most = ASK_MS * NS_PER_MS;
    if (!shuf__has_interrupt())
        return left;
    return left == 0 || left > most ? most : left;
}

/* Limits the next system call with `option`, SO_RCVTIMEO or SO_SNDTIMEO. `end`: of the whole wait;
 * 0: no limit. Returns -1 with errno, which is EAGAIN if the end has come. */
static int limit_wait(struct shuf__connection *connection, int option, uint64_t end)
{
    struct shuf__wait_limits *limits = &connection->limits;
    const uint64_t now = end == 0 ? 0 : shuf__now_ns();
    uint64_t *set = option == SO_RCVTIMEO ? &limits->receive_ns : &limits->send_ns;
    if (end != 0 && now >= end) {
        errno = EAGAIN;
        return -1;
    }
    const uint64_t ns = longest_ns(now, end);
    const struct timeval value = to_timeval(ns);
    if (ns == *set)
        return 0;
    *set = ns;
    return setsockopt(connection->fd, SOL_SOCKET, option, &value, sizeof value);
}

/* Call it after a failure with errno. True: repeat the system call, because the wait is not over.
 * False: errno has the reason; EINTR if the interrupt function ends the call. */
static bool may_wait_on(uint64_t end)
{
    const bool by_signal = errno == EINTR;
    if (!by_signal && (errno != EAGAIN || (end != 0 && shuf__now_ns() >= end)))
        return false;
    if (!shuf__is_interrupted(by_signal ? EINTR : 0))
        return true;
    errno = EINTR;
    return false;
}

/* The time at which a wait that begins now has to end; 0: no limit. */
static uint64_t end_of_wait(const struct shuf__connection *connection)
{
    if (connection->deadline_ns != 0)
        return connection->deadline_ns;
    return connection->timeout_ns ? shuf__now_ns() + connection->timeout_ns : 0;
}

/* ---- Receiving ---- */

/* Waits for at least one byte. Reads to `out` or, if that is NULL, to the receiver. */
static shuf_status receive_some(struct shuf__connection *connection, void *out, size_t size,
                                size_t *received, struct shuf__error *error)
{
    struct shuf__receiver *receiver = &connection->receiver;
    const uint64_t end = end_of_wait(connection);
    for (;;) {
        if (limit_wait(connection, SO_RCVTIMEO, end) != 0)
            return fail_and_close(connection, "a reply was expected", error);
        ssize_t got = out ? receive_once(receiver, connection->fd, out, size, MSG_WAITALL)
                          : fill_receiver(receiver, connection->fd);
        if (got > 0) {
            *received = (size_t)got;
            connection->has_received = true;
            return SHUF_OK;
        }
        if (got == 0)
            errno = ECONNRESET;
        if (!may_wait_on(end))
            return fail_and_close(connection, "a reply was expected", error);
    }
}

/* `expected`: the number of descriptors that the reply announced since the last count. */
static shuf_status check_descriptors(struct shuf__connection *connection, unsigned expected,
                                     struct shuf__error *error)
{
    struct shuf__receiver *receiver = &connection->receiver;
    const unsigned received = receiver->descriptors;
    const bool truncated = receiver->truncated;
    receiver->descriptors = 0;
    receiver->truncated = false;
    if (received == expected && !truncated)
        return SHUF_OK;
    if (truncated && received < expected)
        shuf__fail(error, SHUF_IO,
                   "socket %s: a descriptor could not be received; expected room for it among "
                   "this process's open files",
                   connection->address.sun_path);
    else
        shuf__fail(error, SHUF_PROTOCOL, "reply with %u%s descriptors: expected %u", received,
                   truncated ? " or more" : "", expected);
    return close_with_error(connection, error);
}

shuf_status shuf__connection_receive(struct shuf__connection *connection, void *out, size_t size,
                                     size_t *received, struct shuf__error *error)
{
    assert(size > 0);
    *received = read_receiver(&connection->receiver, out, size);
    if (*received > 0)
        return SHUF_OK;
    if (receive_some(connection, out, size, received, error))
        return error->status;
    return check_descriptors(connection, 0, error);
}

/* Receives a frame into the connection's buffer, because the frame is longer than the receiver. */
static shuf_status receive_long_frame(struct shuf__connection *connection, size_t size,
                                      struct shuf__error *error)
{
    size_t got, done = read_receiver(&connection->receiver, connection->buffer, size);
    for (; done < size; done += got)
        if (receive_some(connection, connection->buffer + done, size - done, &got, error))
            return error->status;
    return SHUF_OK;
}

/* Returns the next message, valid until the next receive; NULL with *error. The bytes after the
 * message may be payload, so they stay in the receiver. */
static const uint8_t *receive_frame(struct shuf__connection *connection, size_t *length,
                                    struct shuf__error *error)
{
    struct shuf__receiver *receiver = &connection->receiver;
    for (;;) {
        size_t got, unread = receiver->end - receiver->start;
        const uint8_t *frame = receiver->bytes + receiver->start;
        *length = 0;
        enum shuf__frame_result result = shuf__frame_parse(frame, unread, length);
        size_t size = SHUF__FRAME_HEADER + *length;
        if (result == SHUF__FRAME_WHOLE) {
            receiver->start += size;
            return frame + SHUF__FRAME_HEADER;
        }
        if (result == SHUF__FRAME_BAD) {
            shuf__fail(error, SHUF_PROTOCOL,
                       "socket %s: frame length %zu: expected 1 to %d; perhaps another program "
                       "has this socket",
                       connection->address.sun_path, *length, SHUF__FRAME_MAX);
            close_with_error(connection, error);
            return NULL;
        }
        if (size > sizeof receiver->bytes)
            return receive_long_frame(connection, size, error)
                       ? NULL
                       : connection->buffer + SHUF__FRAME_HEADER;
        if (receive_some(connection, NULL, 0, &got, error))
            return NULL;
    }
}

static unsigned announced_descriptors(const Shuf__Reply *reply)
{
    return reply->status == SHUF_OK && reply->body_case == SHUF__REPLY__BODY_RESULT &&
           reply->result->descriptor;
}

/* A daemon that cannot parse a request replies with an error under id 0. */
static bool id_fits(const struct shuf__connection *connection, const Shuf__Reply *reply)
{
    return reply->id == connection->last_id || (reply->id == 0 && reply->status != SHUF_OK);
}

shuf_status shuf__connection_reply(struct shuf__connection *connection, const Shuf__Reply **reply,
                                   struct shuf__error *error)
{
    size_t length;
    const uint8_t *message = receive_frame(connection, &length, error);
    if (!message)
        return error->status;
    *reply = shuf__reply_unpack(&connection->arena, message, length);
    if (!*reply) {
        shuf__fail(error, SHUF_PROTOCOL,
                   "socket %s: frame of %zu byte%s: not a reply; perhaps another program has "
                   "this socket",
                   connection->address.sun_path, length, shuf__plural(length));
        return close_with_error(connection, error);
    }
    connection->unmap |= (*reply)->unmap;
    if (!id_fits(connection, *reply)) {
        shuf__fail(error, SHUF_PROTOCOL, "reply id %" PRIu64 ": expected %" PRIu64, (*reply)->id,
                   connection->last_id);
        return close_with_error(connection, error);
    }
    if ((*reply)->status != SHUF_OK && (*reply)->payload_bytes != 0) {
        shuf__fail(error, SHUF_PROTOCOL,
                   "reply payload_bytes %" PRIu64 ": expected 0 with status %" PRIu32,
                   (*reply)->payload_bytes, (*reply)->status);
        return close_with_error(connection, error);
    }
    return check_descriptors(connection, announced_descriptors(*reply), error);
}

int shuf__connection_descriptor(struct shuf__connection *connection)
{
    return take_descriptor(&connection->receiver);
}

/* ---- Strings and errors of the peer ---- */

void shuf__copy_string(char *out, size_t size, const char *word)
{
    size_t length = strnlen(word, size - 1);
    memcpy(out, word, length);
    out[length] = '\0';
    shuf__make_printable(out);
}

static shuf_status fail_body(const Shuf__Reply *reply, const char *expected,
                             struct shuf__error *error)
{
    return shuf__fail(error, SHUF_PROTOCOL, "reply body %d: expected %s", (int)reply->body_case,
                      expected);
}

shuf_status shuf__reply_check(const Shuf__Reply *reply, Shuf__Reply__BodyCase body,
                              const char *name, struct shuf__error *error)
{
    return reply->body_case == body ? SHUF_OK : fail_body(reply, name, error);
}

shuf_status shuf__reply_fail(const Shuf__Reply *reply, struct shuf__error *error)
{
    shuf_status status = (shuf_status)reply->status;
    assert(status != SHUF_OK);
    if (status == SHUF_NO_DAEMON) /* callers would take it for a lost connection */
        return shuf__fail(error, SHUF_PROTOCOL, "reply status NO_DAEMON: expected another");
    shuf__fail(error, status, "%s", *reply->message ? reply->message : shuf_status_message(status));
    shuf__make_printable(error->text);
    return status;
}

/* ---- Sending ---- */

/* The first `size` bytes of the buffer. */
static shuf_status send_all(struct shuf__connection *connection, size_t size,
                            struct shuf__error *error)
{
    uint64_t end = end_of_wait(connection);
    for (size_t done = 0; done < size;) {
        if (limit_wait(connection, SO_SNDTIMEO, end) != 0)
            return fail_and_close(connection, "a request was sent", error);
        ssize_t sent = send(connection->fd, connection->buffer + done, size - done, MSG_NOSIGNAL);
        if (sent >= 0) {
            done += (size_t)sent;
            end = end_of_wait(connection);
        } else if (errno == EPIPE) {
            break; /* the daemon has closed, but its last reply may still be readable */
        } else if (!may_wait_on(end)) {
            return fail_and_close(connection, "a request was sent", error);
        }
    }
    return SHUF_OK;
}

shuf_status shuf__connection_send(struct shuf__connection *connection, Shuf__Request *request,
                                  struct shuf__error *error)
{
    int unused = shuf__connection_descriptor(connection); /* of an earlier reply */
    if (unused >= 0)
        close(unused);
    request->id = ++connection->last_id;
    size_t size = shuf__message_pack(&request->base, connection->buffer, sizeof connection->buffer);
    if (size == 0)
        return shuf__fail(error, SHUF_INVALID, "request: too long; expected at most %d bytes",
                          SHUF__FRAME_MAX);
    return send_all(connection, size, error);
}

/* ---- Hello ---- */

static shuf_status connect_failed(struct shuf__connection *connection, struct shuf__error *error)
{
    int cause = errno;
    const char *path = connection->address.sun_path;
    if (connection->fd >= 0)
        close_socket(connection); /* what closed the last connection stays known */
    connection->is_refused = true;
    connection->silent_ends = 0;
    if (cause != EINTR && shuf__is_other_file(path))
        return shuf__fail(error, SHUF_NO_DAEMON,
                          "socket %s: another kind of file, expected the socket of a daemon", path);
    switch (cause) {
    case ENOENT:
    case ENOTDIR:
    case ECONNREFUSED:
        return shuf__fail(error, SHUF_NO_DAEMON, "socket %s: no daemon answers (%s)", path,
                          strerror(cause));
    case EACCES:
        return shuf__fail_denied(path, error);
    case EPERM: /* not by the mode of the socket */
        return shuf__fail(error, SHUF_DENIED,
                          "socket %s: %s: a seccomp filter or security module of this process "
                          "refused the call",
                          path, strerror(cause));
    case EAGAIN:
        return shuf__fail(error, SHUF_BUSY,
                          "socket %s: too many connections wait for the daemon; try again", path);
    case ENOMEM:
    case ENOBUFS:
        return shuf__fail(error, SHUF_NO_MEMORY, "socket %s: %s", path, strerror(cause));
    case EINTR:
        return shuf__fail_interrupted(path, error);
    default:
        return shuf__fail(error, SHUF_IO, "socket %s: %s", path, strerror(cause));
    }
}

/* The send timeout also bounds connect(), which waits while the backlog is full. */
static int connect_socket(struct shuf__connection *connection)
{
    const uint64_t end = shuf__now_ns() + handshake_ns(connection);
    do
        if (limit_wait(connection, SO_SNDTIMEO, end) != 0)
            return -1;
        else if (connect(connection->fd, (const struct sockaddr *)&connection->address,
                         sizeof connection->address) == 0)
            return 0;
    while (may_wait_on(end));
    return -1;
}

/* The reply of another protocol version still names its daemon. */
static shuf_status refuse_version(const Shuf__HelloReply *hello, struct shuf__error *error)
{
    char daemon[64];
    shuf__copy_string(daemon, sizeof daemon, hello->daemon);
    return shuf__fail(error, SHUF_VERSION, "protocol version %" PRIu32 " of %s: expected %d",
                      hello->version, daemon, SHUF__PROTOCOL_VERSION);
}

static shuf_status check_hello(struct shuf__connection *connection, const Shuf__Reply *reply,
                               struct shuf__error *error)
{
    connection->came_late = reply->status == SHUF_TIMEOUT;
    if (reply->status != SHUF_OK)
        shuf__reply_fail(reply, error);
    else if (reply->body_case != SHUF__REPLY__BODY_HELLO || reply->payload_bytes != 0)
        fail_body(reply, "a HelloReply", error);
    else if (reply->hello->version != SHUF__PROTOCOL_VERSION)
        refuse_version(reply->hello, error);
    else
        return SHUF_OK;
    return close_with_error(connection, error);
}

static shuf_status exchange_hello(struct shuf__connection *connection, struct shuf__error *error)
{
    static char client[] = "libshuf " SHUF_VERSION_TEXT;
    Shuf__Hello hello = SHUF__HELLO__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    const Shuf__Reply *reply;
    hello.version = SHUF__PROTOCOL_VERSION;
    hello.client = client;
    request.body_case = SHUF__REQUEST__BODY_HELLO;
    request.hello = &hello;
    if (shuf__connection_send(connection, &request, error) ||
        shuf__connection_reply(connection, &reply, error))
        return error->status;
    return check_hello(connection, reply, error);
}

/* A daemon seldom ends before its answer. Another program may close every connection like this. */
static shuf_status fail_silent(struct shuf__connection *connection, struct shuf__error *error)
{
    connection->silent_ends++;
    return shuf__fail(error, SHUF_NO_DAEMON,
                      "socket %s: accepted the connection, but closed it before an answer; perhaps "
                      "another program has this socket",
                      connection->address.sun_path);
}

static shuf_status open_once(struct shuf__connection *connection, struct shuf__error *error)
{
    assert(connection->fd < 0);
    connection->came_late = false;
    if (connection->address.sun_path[0] == '\0')
        return shuf__fail(error, SHUF_INVALID, "socket: none, shuf_connect() refused the path");
    if (shuf__is_interrupted(0))
        return shuf__fail_interrupted(connection->address.sun_path, error);
    open_receiver(&connection->receiver);
    connection->limits = (struct shuf__wait_limits){0};
    connection->fd = shuf__client_socket();
    set_cancel_socket(&connection->cancel, connection->fd);
    if (connection->fd < 0 || connect_socket(connection) != 0)
        return connect_failed(connection, error);
    connection->generation++;
    connection->is_refused = false;
    connection->deadline_ns = shuf__now_ns() + handshake_ns(connection);
    shuf_status status = exchange_hello(connection, error);
    connection->deadline_ns = 0;
    return status == SHUF_NO_DAEMON && !connection->has_received ? fail_silent(connection, error)
                                                                 : status;
}

/* ---- Attempts ---- */

/* A process that gets no processor for a second sends its Hello too late. A new socket may belong
 * to its group a moment later: a service manager first makes it. */

enum { MOST_LATE = 4 }; /* connections in a row whose Hello comes too late */
static const uint64_t most_denied_ns =
    2000000000; /* also if somebody changes the socket again and again */
static const struct timespec before_next = {.tv_nsec = 20000000};

/* When the attempts at a new socket end. */
static uint64_t end_of_denied(const struct shuf__connection *connection)
{
    const uint64_t timeout = connection->timeout_ns;
    return shuf__now_ns() + (timeout > 0 && timeout < most_denied_ns ? timeout : most_denied_ns);
}

static bool may_open_soon(const struct shuf__connection *connection, shuf_status status, int late,
                          uint64_t end)
{
    if (connection->cancel.is_cancelled)
        return false;
    if (connection->came_late)
        return late < MOST_LATE;
    return status == SHUF_DENIED && connection->is_refused && shuf__now_ns() < end &&
           shuf__is_new_socket(connection->address.sun_path);
}

shuf_status shuf__connection_open(struct shuf__connection *connection, struct shuf__error *error)
{
    const uint64_t end = end_of_denied(connection);
    for (int late = 0;;) {
        const shuf_status status = open_once(connection, error);
        late += connection->came_late;
        if (!may_open_soon(connection, status, late, end))
            return status;
        *error = (struct shuf__error){0};
        nanosleep(&before_next, NULL);
    }
}
