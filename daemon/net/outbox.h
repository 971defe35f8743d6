/* SPDX-License-Identifier: MIT
 *
 * The reply that a session sends: its bytes, its descriptor and its payload.
 */
#ifndef SHUFD_OUTBOX_H
#define SHUFD_OUTBOX_H

#include "message.h"
#include "payload.h"

enum { SHUF__REPLY_MAX = SHUF__FRAME_HEADER + SHUF__FRAME_MAX };

/* A block that the reply lends to its client. The descriptor is opened only to be sent with the
 * first byte of the reply, so replies that wait need no descriptors. The lease keeps the block. */
struct shuf__lent {
    const struct shuf__allocation *allocation; /* NULL: none */
    uint64_t lease;
};

struct shuf__outbox {
    struct shuf__lent lent;
    bool has_lent; /* a descriptor was sent on this connection */
    size_t sent, size;
    struct shuf__payload payload;
    uint8_t reply[SHUF__REPLY_MAX];
};

enum shuf__outbox_state {
    SHUF__OUTBOX_SENT,   /* everything is sent */
    SHUF__OUTBOX_MORE,   /* the rest can be sent when the socket has room */
    SHUF__OUTBOX_WAIT,   /* payload.ready will be called */
    SHUF__OUTBOX_FAILED, /* payload.error says why */
    SHUF__OUTBOX_UNLENT, /* there is no descriptor of the block; errno says why */
    SHUF__OUTBOX_LOST,   /* errno says why */
};

/* Packs the reply. Set its payload and `lent` before. */
void shuf__outbox_put(struct shuf__outbox *outbox, const Shuf__Reply *reply);

/* Sends only one chunk, so that other sessions are served too. */
enum shuf__outbox_state shuf__outbox_send(struct shuf__outbox *outbox, int fd);

#endif
