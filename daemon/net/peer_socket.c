/* SPDX-License-Identifier: MIT
 *
 * See peer_socket.h. MSG_PEEK without room for descriptors frees none, and reports with MSG_CTRUNC
 * that there are some (unix(7)).
 */
#include "peer_socket.h"

#include "closing.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

enum {
    CHUNK = 16 << 10,
    UNREAD = 1 << 20, /* bytes that close() reads */
};

static atomic_bool may_get_descriptors;

static bool forbid_descriptors(int fd)
{
    const int allowed = 0;
    return setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &allowed, sizeof allowed) == 0;
}

void shuf__peer_socket_forbid_descriptors(int fd, bool has_clients)
{
    if (!forbid_descriptors(fd) || has_clients)
        may_get_descriptors = true;
}

/* With SO_OOBINLINE a byte out of band is a byte like the others, also for MSG_PEEK. */
int shuf__peer_socket_accept(int listening)
{
    const int yes = 1;
    if (!shuf__closing_continue()) {
        errno = EUSERS;
        return -1;
    }
    const int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0 && may_get_descriptors) {
        forbid_descriptors(fd);
        setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &yes, sizeof yes);
    }
    return fd;
}

static ssize_t peek(int fd, void *bytes, size_t size)
{
    struct iovec room = {.iov_base = bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &room, .msg_iovlen = 1};
    const ssize_t seen = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);
    if (seen > 0 && message.msg_flags & MSG_CTRUNC) {
        errno = EBADMSG;
        return -1;
    }
    return seen;
}

/* Receives no bytes that came after the look at the first ones. */
static ssize_t receive_seen(int fd, void *bytes, size_t size)
{
    const ssize_t seen = peek(fd, bytes, size);
    return seen > 0 ? recv(fd, bytes, (size_t)seen, MSG_DONTWAIT) : seen;
}

ssize_t shuf__peer_socket_receive(int fd, void *bytes, size_t size)
{
    if (!may_get_descriptors)
        return recv(fd, bytes, size, MSG_DONTWAIT);
    return receive_seen(fd, bytes, size);
}

/* Whether unread bytes have descriptors, or are so many that this is not known. After shutdown() no
 * more bytes come. */
static bool may_have_descriptors(int fd)
{
    uint8_t bytes[CHUNK];
    size_t read = 0;
    shutdown(fd, SHUT_RDWR);
    while (read < UNREAD) {
        const ssize_t got = receive_seen(fd, bytes, sizeof bytes);
        if (got <= 0 && !(got < 0 && errno == EINTR))
            return got < 0 && errno == EBADMSG;
        read += got > 0 ? (size_t)got : 0;
    }
    return true;
}

void shuf__peer_socket_close(int fd)
{
    if (may_get_descriptors && may_have_descriptors(fd))
        shuf__closing_add(fd);
    else
        close(fd);
}

/* The connections in the backlog may have descriptors. */
void shuf__peer_socket_close_listening(int fd)
{
    if (!may_get_descriptors) {
        close(fd);
        return;
    }
    shuf__closing_add(fd);
    shuf__closing_finish();
}
