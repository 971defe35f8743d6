/* SPDX-License-Identifier: MIT
 *
 * The reply that a session sends: its bytes, its descriptor and its payload. The payload is the
 * values of a cache entry, or a text, and is sent in chunks. If the host can read the memory of
 * the values, they are sent from there. Otherwise the engine copies them to two small buffers in
 * turn, the stages. So a client that reads slowly costs the daemon little memory.
 */
#ifndef SHUFD_OUTBOX_H
#define SHUFD_OUTBOX_H

#include "cache/cache.h"
#include "message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- The payload ---- */

enum {
    SHUF__PAYLOAD_CHUNK = 256 * 1024,
    SHUF__PAYLOAD_STAGES = 2,
};

struct shuf__payload {
    struct shuf__cache_entry *entry; /* a reference; NULL: none */
    char *text;                      /* from malloc(); NULL: none */
    const uint8_t *host;             /* the bytes; NULL: the host cannot read them */
    uint64_t size, sent;
    uint64_t since_ns; /* when the payload began */

    /* Used if the host cannot read the block: chunk number i goes through stage number i mod 2. */
    uint8_t *stage[SHUF__PAYLOAD_STAGES];
    uint64_t fetched; /* bytes of complete chunks that are in stages or sent */
    bool fetching;
    struct shuf__engine_job fetch;
    struct shuf__error error; /* of the last fetch, or the reason why the payload was abandoned */
    void (*ready)(void *context);
    void *context;
};

/* Begins to send the values of an entry. On success takes over a reference to the entry. Fails with
 * SHUF_NO_MEMORY. The caller must have set `ready` and `context`. */
shuf_status shuf__payload_begin(struct shuf__payload *payload, struct shuf__cache_entry *entry,
                                struct shuf__error *error);

/* Begins to send a text of `size` bytes from malloc(), and takes it over. */
void shuf__payload_begin_text(struct shuf__payload *payload, char *text, size_t size);

/* Gives the entry back before all its values are sent. The payload then fails with the text `why`.
 * Do not call it during a fetch. */
void shuf__payload_abandon(struct shuf__payload *payload, const char *why);

/* Gives the entry, the text and the stages back. During a fetch it does nothing and returns false.
 * The caller must call it again after `ready`. */
bool shuf__payload_end(struct shuf__payload *payload);

/* ---- The reply ---- */

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
