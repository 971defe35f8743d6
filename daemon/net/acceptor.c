/* SPDX-License-Identifier: MIT
 *
 * See acceptor.h.
 */
#include "acceptor.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ACCEPTS_PER_TURN = 64,
    ACCEPT_AGAIN_MS = 100,
    READ = 4096,
};

/* A fresh socket has room for one reply, so this never waits. Unread bytes of the client would make
 * the socket send a reset instead of the end of the stream. One read takes the greeting of every
 * honest client, and a client that floods the socket costs no more. */
static void refuse_connection(struct shuf__acceptor *acceptor, int fd)
{
    uint8_t bytes[READ];
    char text[SHUF__ERROR_TEXT];
    struct shuf__error error;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    shuf__fail(&error, SHUF_BUSY,
               "clients %" PRIu64 ": the most that may be connected; try again later",
               acceptor->limit);
    memcpy(text, error.text, sizeof text);
    reply.status = SHUF_BUSY;
    reply.message = text;
    size_t size = shuf__message_pack(&reply.base, bytes, sizeof bytes);
    assert(size > 0);
    if (send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size) {
        shutdown(fd, SHUT_WR);
        (void)!recv(fd, bytes, sizeof bytes, 0);
    }
    close(fd);
    acceptor->sessions->stats->refused++;
    shuf__log_client(acceptor->sessions->log, SHUF__LOG_DEBUG, "client refused: %s", error.text);
}

static void on_connection(uv_poll_t *poll, int status, int events);

static void accept_again(uv_timer_t *timer)
{
    struct shuf__acceptor *acceptor = timer->data;
    uv_poll_start(&acceptor->poll, UV_READABLE, on_connection);
}

/* Without descriptors or memory the loop would spin on a connection that it cannot accept. Some
 * client may close its connection soon. */
static void pause_accepting(struct shuf__acceptor *acceptor)
{
    shuf__log_client(acceptor->sessions->log, SHUF__LOG_WARNING,
                     "accept: %s; trying again in %d ms", strerror(errno), ACCEPT_AGAIN_MS);
    uv_poll_stop(&acceptor->poll);
    uv_timer_start(&acceptor->again, accept_again, ACCEPT_AGAIN_MS, 0);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
    struct shuf__acceptor *acceptor = poll->data;
    (void)status; /* accept4() reports the error */
    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int fd = accept4(acceptor->listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && errno == EAGAIN)
            return;
        if (fd < 0 && errno != ECONNABORTED && errno != EINTR) {
            pause_accepting(acceptor);
            return;
        }
        if (fd >= 0 && acceptor->sessions->count >= acceptor->limit)
            refuse_connection(acceptor, fd);
        else if (fd >= 0)
            shuf__session_open(acceptor->sessions, fd);
    }
}

int shuf__acceptor_init(struct shuf__acceptor *acceptor, struct shuf__sessions *sessions,
                        const struct shuf__listener *listener)
{
    acceptor->sessions = sessions;
    acceptor->listener = listener;
    acceptor->poll.data = acceptor->again.data = acceptor;
    uv_timer_init(sessions->loop, &acceptor->again);
    return uv_poll_init(sessions->loop, &acceptor->poll, listener->fd);
}

void shuf__acceptor_start(struct shuf__acceptor *acceptor)
{
    uv_poll_start(&acceptor->poll, UV_READABLE, on_connection);
}

void shuf__acceptor_stop(struct shuf__acceptor *acceptor)
{
    uv_poll_stop(&acceptor->poll);
    uv_timer_stop(&acceptor->again);
}
