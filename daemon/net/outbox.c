/* SPDX-License-Identifier: MIT
 *
 * See outbox.h.
 */
#include "outbox.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void shuf__outbox_put(struct shuf__outbox *outbox, const Shuf__Reply *reply)
{
    outbox->sent = 0;
    outbox->size = shuf__message_pack(&reply->base, outbox->reply, sizeof outbox->reply);
    assert(outbox->size > 0); /* all strings of a reply are bounded */
}

static void attach(struct msghdr *message, int descriptor)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
}

/* Sends the rest of the reply and a chunk of the payload. Returns the sent bytes, or -1 with errno.
 */
static ssize_t send_parts(const struct shuf__outbox *outbox, int fd, const uint8_t *chunk,
                          size_t size, int descriptor)
{
    struct iovec parts[2] = {
        {(void *)(uintptr_t)(outbox->reply + outbox->sent), outbox->size - outbox->sent},
        {(void *)(uintptr_t)chunk, size},
    };
    union {
        struct cmsghdr header; /* only gives the union its alignment */
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (descriptor >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        attach(&message, descriptor);
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static ssize_t send_lent(const struct shuf__outbox *outbox, int fd, int descriptor)
{
    const ssize_t sent = send_parts(outbox, fd, NULL, 0, descriptor);
    const int cause = errno;
    close(descriptor);
    errno = cause;
    return sent;
}

static void note_sent(struct shuf__outbox *outbox, size_t sent)
{
    const size_t left = outbox->size - outbox->sent, of_reply = sent < left ? sent : left;
    outbox->sent += of_reply;
    shuf__payload_advance(&outbox->payload, sent - of_reply);
}

enum shuf__outbox_state shuf__outbox_send(struct shuf__outbox *outbox, int fd)
{
    const uint8_t *chunk = NULL;
    size_t size;
    enum shuf__payload_state state = shuf__payload_next(&outbox->payload, &chunk, &size);
    if (state == SHUF__PAYLOAD_FAILED)
        return SHUF__OUTBOX_FAILED;
    if (outbox->sent == outbox->size && state == SHUF__PAYLOAD_WAIT)
        return SHUF__OUTBOX_WAIT;
    const int descriptor =
        outbox->lent.allocation ? shuf__allocation_export(outbox->lent.allocation) : -1;
    if (outbox->lent.allocation && descriptor < 0)
        return SHUF__OUTBOX_UNLENT;
    const ssize_t sent = descriptor >= 0 ? send_lent(outbox, fd, descriptor)
                                         : send_parts(outbox, fd, chunk, size, -1);
    if (sent < 0)
        return errno == EAGAIN || errno == EINTR ? SHUF__OUTBOX_MORE
               : errno == ETOOMANYREFS           ? SHUF__OUTBOX_UNLENT
                                                 : SHUF__OUTBOX_LOST;
    outbox->lent.allocation = NULL;
    outbox->has_lent |= descriptor >= 0;
    note_sent(outbox, (size_t)sent);
    if (outbox->sent < outbox->size ||
        shuf__payload_next(&outbox->payload, &chunk, &size) != SHUF__PAYLOAD_END)
        return SHUF__OUTBOX_MORE;
    outbox->sent = outbox->size = 0;
    return SHUF__OUTBOX_SENT;
}
