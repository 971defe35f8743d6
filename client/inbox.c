/* SPDX-License-Identifier: MIT
 *
 * See inbox.h.
 */
#include "inbox.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DESCRIPTORS = 4 }; /* read from one message; a valid reply has at most one */

void shuf__inbox_open(struct shuf__inbox *inbox)
{
    inbox->start = inbox->end = 0;
    inbox->descriptors = 0;
    inbox->truncated = false;
    inbox->descriptor = -1;
}

void shuf__inbox_close(struct shuf__inbox *inbox)
{
    int fd = shuf__inbox_descriptor(inbox);
    if (fd >= 0)
        close(fd);
    shuf__inbox_open(inbox);
}

static void keep_first(struct shuf__inbox *inbox, const uint8_t *at, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int fd;
        memcpy(&fd, at + i * sizeof fd, sizeof fd); /* aligned for bytes only */
        if (inbox->descriptor < 0)
            inbox->descriptor = fd;
        else
            close(fd);
        inbox->descriptors++;
    }
}

ssize_t shuf__inbox_receive(struct shuf__inbox *inbox, int fd, void *out, size_t size, int flags)
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
            keep_first(inbox, CMSG_DATA(c), (c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    inbox->truncated |= message.msg_flags & MSG_CTRUNC;
    return got;
}

ssize_t shuf__inbox_fill(struct shuf__inbox *inbox, int fd)
{
    size_t held = inbox->end - inbox->start;
    assert(held < sizeof inbox->bytes);
    if (inbox->start > 0)
        memmove(inbox->bytes, inbox->bytes + inbox->start, held);
    inbox->start = 0;
    inbox->end = held;
    ssize_t got =
        shuf__inbox_receive(inbox, fd, inbox->bytes + held, sizeof inbox->bytes - held, 0);
    if (got > 0)
        inbox->end += (size_t)got;
    return got;
}

size_t shuf__inbox_read(struct shuf__inbox *inbox, void *out, size_t size)
{
    size_t held = inbox->end - inbox->start;
    if (size > held)
        size = held;
    if (size > 0)
        memcpy(out, inbox->bytes + inbox->start, size);
    inbox->start += size;
    return size;
}

bool shuf__inbox_check_descriptors(struct shuf__inbox *inbox, unsigned expected)
{
    bool as_expected = inbox->descriptors == expected && !inbox->truncated;
    inbox->descriptors = 0;
    inbox->truncated = false;
    return as_expected;
}

int shuf__inbox_descriptor(struct shuf__inbox *inbox)
{
    int fd = inbox->descriptor;
    inbox->descriptor = -1;
    return fd;
}
