/* SPDX-License-Identifier: MIT
 *
 * See receiver.h.
 */
#include "receiver.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DESCRIPTORS = 4 }; /* read from one message; a valid reply has at most one */

void shuf__receiver_open(struct shuf__receiver *receiver)
{
    receiver->start = receiver->end = 0;
    receiver->descriptors = 0;
    receiver->truncated = false;
    receiver->descriptor = -1;
}

void shuf__receiver_close(struct shuf__receiver *receiver)
{
    int fd = shuf__receiver_descriptor(receiver);
    if (fd >= 0)
        close(fd);
    shuf__receiver_open(receiver);
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

ssize_t shuf__receiver_receive(struct shuf__receiver *receiver, int fd, void *out, size_t size,
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

ssize_t shuf__receiver_fill(struct shuf__receiver *receiver, int fd)
{
    size_t held = receiver->end - receiver->start;
    assert(held < sizeof receiver->bytes);
    if (receiver->start > 0)
        memmove(receiver->bytes, receiver->bytes + receiver->start, held);
    receiver->start = 0;
    receiver->end = held;
    ssize_t got = shuf__receiver_receive(receiver, fd, receiver->bytes + held,
                                         sizeof receiver->bytes - held, 0);
    if (got > 0)
        receiver->end += (size_t)got;
    return got;
}

size_t shuf__receiver_read(struct shuf__receiver *receiver, void *out, size_t size)
{
    size_t held = receiver->end - receiver->start;
    if (size > held)
        size = held;
    if (size > 0)
        memcpy(out, receiver->bytes + receiver->start, size);
    receiver->start += size;
    return size;
}

bool shuf__receiver_check_descriptors(struct shuf__receiver *receiver, unsigned expected)
{
    bool as_expected = receiver->descriptors == expected && !receiver->truncated;
    receiver->descriptors = 0;
    receiver->truncated = false;
    return as_expected;
}

int shuf__receiver_descriptor(struct shuf__receiver *receiver)
{
    int fd = receiver->descriptor;
    receiver->descriptor = -1;
    return fd;
}
