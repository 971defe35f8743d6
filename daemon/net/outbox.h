/* SPDX-License-Identifier: MIT
 *
 * The reply that a session sends: its bytes, its descriptor and its payload.
 */
#ifndef SHUFD_OUTBOX_H
#define SHUFD_OUTBOX_H

#include "message.h"
#include "payload.h"

enum { SHUF__REPLY_MAX = SHUF__FRAME_HEADER + SHUF__FRAME_MAX };

struct shuf__outbox {
    int descriptor; /* sent with the first byte of the reply; -1: none */
    size_t sent, size;
    struct shuf__payload payload;
    uint8_t reply[SHUF__REPLY_MAX];
};

enum shuf__outbox_state {
    SHUF__OUTBOX_SENT,   /* everything is sent */
    SHUF__OUTBOX_MORE,   /* the rest can be sent when the socket has room */
    SHUF__OUTBOX_WAIT,   /* payload.ready will be called */
    SHUF__OUTBOX_FAILED, /* payload.error says why */
    SHUF__OUTBOX_LOST,   /* errno says why */
};

/* Packs the reply. Set its payload and descriptor before. */
void shuf__outbox_put(struct shuf__outbox *outbox, const Shuf__Reply *reply);

/* Sends only one chunk, so that other sessions are served too. */
enum shuf__outbox_state shuf__outbox_send(struct shuf__outbox *outbox, int fd);

/* Closes the daemon's copy of the descriptor, if there is one. */
void shuf__outbox_drop_descriptor(struct shuf__outbox *outbox);

#endif
