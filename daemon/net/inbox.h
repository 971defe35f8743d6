/* SPDX-License-Identifier: MIT
 *
 * The bytes that a session has received and not yet handled: the request at their front, and
 * requests that the client has sent ahead.
 */
#ifndef SHUFD_INBOX_H
#define SHUFD_INBOX_H

#include "frame.h"

#include <stdbool.h>
#include <sys/types.h>

struct shuf__inbox {
    size_t begin, end;
    uint8_t bytes[SHUF__FRAME_HEADER + SHUF__FRAME_MAX];
};

/* Receives bytes behind those that it has; returns as recv() does. Needs a call of
 * shuf__inbox_compact() before. */
ssize_t shuf__inbox_receive(struct shuf__inbox *inbox, int fd);

/* Receives bytes and discards them; returns as recv() does. The inbox is empty then. */
ssize_t shuf__inbox_discard(struct shuf__inbox *inbox, int fd);

/* Whether shuf__inbox_next() would find more than a part of a frame. */
bool shuf__inbox_has_frame(const struct shuf__inbox *inbox);

/* Takes the message at the front if it is whole; returns as shuf__frame_parse() does. The message
 * is valid until the next call of another function. */
enum shuf__frame_result shuf__inbox_next(struct shuf__inbox *inbox, const uint8_t **message,
                                         size_t *length);

/* Moves the rest to the front, and returns its size. */
size_t shuf__inbox_compact(struct shuf__inbox *inbox);

#endif
