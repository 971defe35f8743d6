/* SPDX-License-Identifier: MIT
 *
 * See inbox.h.
 */
#include "inbox.h"

#include "peer_socket.h"

#include <string.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

ssize_t shuf__inbox_receive(struct shuf__inbox *inbox, int fd)
{
    const size_t room = least(SHUF__INBOX_CHUNK, sizeof inbox->bytes - inbox->end);
    const ssize_t got = shuf__peer_socket_receive(fd, inbox->bytes + inbox->end, room);
    if (got > 0)
        inbox->end += (size_t)got;
    return got;
}

ssize_t shuf__inbox_discard(struct shuf__inbox *inbox, int fd)
{
    inbox->begin = inbox->end = 0;
    return shuf__peer_socket_receive(fd, inbox->bytes, SHUF__INBOX_CHUNK);
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
