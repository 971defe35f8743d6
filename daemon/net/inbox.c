/* SPDX-License-Identifier: MIT
 *
 * See inbox.h.
 */
#include "inbox.h"

#include <string.h>
#include <sys/socket.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Passes no room for control data, so the kernel closes descriptors that a client sends, where it
 * cannot refuse them (listener.c). */
ssize_t shuf__inbox_receive(struct shuf__inbox *inbox, int fd)
{
    ssize_t got = recv(fd, inbox->bytes + inbox->end,
                       least(SHUF__INBOX_CHUNK, sizeof inbox->bytes - inbox->end), 0);
    if (got > 0)
        inbox->end += (size_t)got;
    return got;
}

ssize_t shuf__inbox_discard(struct shuf__inbox *inbox, int fd)
{
    inbox->begin = inbox->end = 0;
    return recv(fd, inbox->bytes, SHUF__INBOX_CHUNK, 0);
}

bool shuf__inbox_has_frame(const struct shuf__inbox *inbox)
{
    size_t length;
    const uint8_t *front = inbox->bytes + inbox->begin;
    return shuf__frame_parse(front, inbox->end - inbox->begin, &length) != SHUF__FRAME_PARTIAL;
}

enum shuf__frame_result shuf__inbox_next(struct shuf__inbox *inbox, const uint8_t **message,
                                         size_t *length)
{
    const uint8_t *front = inbox->bytes + inbox->begin;
    enum shuf__frame_result found = shuf__frame_parse(front, inbox->end - inbox->begin, length);
    if (found == SHUF__FRAME_WHOLE) {
        *message = front + SHUF__FRAME_HEADER;
        inbox->begin += SHUF__FRAME_HEADER + *length;
    }
    return found;
}

size_t shuf__inbox_compact(struct shuf__inbox *inbox)
{
    size_t rest = inbox->end - inbox->begin;
    if (inbox->begin > 0)
        memmove(inbox->bytes, inbox->bytes + inbox->begin, rest);
    inbox->begin = 0;
    inbox->end = rest;
    return rest;
}
