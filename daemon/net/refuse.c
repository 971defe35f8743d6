/* SPDX-License-Identifier: MIT
 *
 * See refuse.h. A service manager starts the daemon again as long as a connection is in the backlog
 * of its socket, even if the client has gone. So a daemon that cannot start empties the backlog,
 * for at most a second.
 */
#include "refuse.h"

#include "activation.h"
#include "closing.h"
#include "message.h"
#include "peer_socket.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

enum { READ = 4096, REFUSE_NS = 1000000000 };

/* A new socket has room for one reply, so send() never waits. If bytes of the client are unread at
 * close(), the client gets a reset instead of the reply. So this function reads once, which is
 * enough for the Hello of every normal client. A client that sends more gets the reset. */
void shuf__refuse_connection(int fd, const struct shuf__error *error)
{
    uint8_t bytes[READ];
    char text[SHUF__ERROR_TEXT];
    Shuf__Reply reply = SHUF__REPLY__INIT;
    memcpy(text, error->text, sizeof text);
    reply.status = (uint32_t)error->status;
    reply.message = text;
    size_t size = shuf__message_pack(&reply.base, bytes, sizeof bytes);
    assert(size > 0);
    if (send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size)
        (void)!shuf__peer_socket_receive(fd, bytes, sizeof bytes);
    shuf__peer_socket_close(fd);
}

/* The status is never INVALID, because a client would look for the mistake in its own request. */
void shuf__refuse_backlog(int listening, const struct shuf__error *cause)
{
    struct shuf__error error;
    int fd;
    shuf__fail(&error, SHUF_DEVICE, "the daemon cannot start: %s", cause->text);
    const uint64_t start_ns = uv_hrtime();
    while (uv_hrtime() - start_ns < REFUSE_NS && (fd = shuf__peer_socket_accept(listening)) >= 0)
        shuf__refuse_connection(fd, &error);
    shuf__closing_finish();
}

void shuf__refuse_passed(const struct shuf__error *cause)
{
    struct shuf__error ignored;
    int fd;
    if (shuf__activation_take(&fd, &ignored) || fd < 0)
        return;
    shuf__peer_socket_forbid_descriptors(fd, true);
    shuf__refuse_backlog(fd, cause);
}
