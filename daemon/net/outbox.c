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

void shuf__outbox_drop_descriptor(struct shuf__outbox *outbox)
{
    if (outbox->descriptor >= 0)
        close(outbox->descriptor);
    outbox->descriptor = -1;
}

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

/* Sends the rest of the reply and a chunk of the payload. On failure returns false and sets errno.
 */
static bool send_turn(struct shuf__outbox *outbox, int fd, const uint8_t *chunk, size_t size)
{
    struct iovec parts[2] = {
        {outbox->reply + outbox->sent, outbox->size - outbox->sent},
        {(void *)(uintptr_t)chunk, size},
    };
    union {
        struct cmsghdr header; /* only gives the union its alignment */
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (outbox->descriptor >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        attach(&message, outbox->descriptor);
    }
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent < 0)
        return errno == EAGAIN || errno == EINTR;
    shuf__outbox_drop_descriptor(outbox); /* it was sent with the first byte */
    size_t of_reply = (size_t)sent < parts[0].iov_len ? (size_t)sent : parts[0].iov_len;
    outbox->sent += of_reply;
    shuf__payload_advance(&outbox->payload, (size_t)sent - of_reply);
    return true;
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
    if (!send_turn(outbox, fd, chunk, size))
        return SHUF__OUTBOX_LOST;
    if (outbox->sent < outbox->size ||
        shuf__payload_next(&outbox->payload, &chunk, &size) != SHUF__PAYLOAD_END)
        return SHUF__OUTBOX_MORE;
    outbox->sent = outbox->size = 0;
    return SHUF__OUTBOX_SENT;
}
