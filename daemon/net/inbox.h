/* SPDX-License-Identifier: MIT
 *
 * The bytes that a session has received but not yet handled. They are the next request, and further
 * requests if the client sends these before it has the reply.
 */
#ifndef SHUFD_INBOX_H
#define SHUFD_INBOX_H

#include "message.h"

#include <stdbool.h>
#include <sys/types.h>

/* Most bytes of one recv(). Nearly all requests are smaller. With a client that floods its socket,
 * a larger recv() would take ten times as long, while other clients wait. */
enum { SHUF__INBOX_CHUNK = 8192 };

struct shuf__inbox {
    size_t begin, end;
    uint8_t bytes[SHUF__FRAME_HEADER + SHUF__FRAME_MAX];
};

/* Appends at most SHUF__INBOX_CHUNK received bytes. Returns the result of recv(). Call
 * shuf__inbox_compact() before. */
ssize_t shuf__inbox_receive(struct shuf__inbox *inbox, int fd);

/* Receives as many bytes, and discards them and all bytes of the inbox. Returns the result of
 * recv(). */
ssize_t shuf__inbox_discard(struct shuf__inbox *inbox, int fd);

/* Whether shuf__inbox_next() would find a complete or a bad frame. */
bool shuf__inbox_has_frame(const struct shuf__inbox *inbox);

/* Takes the message at the front if it is complete. Returns the result of shuf__frame_parse(). The
 * message is valid until the next call of another function. */
enum shuf__frame_result shuf__inbox_next(struct shuf__inbox *inbox, const uint8_t **message,
                                         size_t *length);

/* Moves the remaining bytes to the front, and returns their number. */
size_t shuf__inbox_compact(struct shuf__inbox *inbox);

#endif
