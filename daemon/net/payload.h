/* SPDX-License-Identifier: MIT
 *
 * The bytes that follow a reply, sent in chunks: the values of a cache entry, or a text. They come
 * straight from their memory if the host can read it; otherwise the engine copies them to two small
 * buffers in turn. So a client that reads slowly costs the daemon little memory.
 */
#ifndef SHUFD_PAYLOAD_H
#define SHUFD_PAYLOAD_H

#include "cache/cache.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SHUF__PAYLOAD_CHUNK = 256 * 1024,
    SHUF__PAYLOAD_STAGES = 2,
};

struct shuf__payload {
    struct shuf__cache_entry *entry; /* a reference; NULL: none */
    char *text;                      /* from malloc(); NULL: none */
    const uint8_t *host;             /* the bytes; NULL: the host cannot read them */
    uint64_t size, sent;
    uint64_t since_ns; /* when it began */

    /* If the host cannot read the block: chunk number i of the result goes through stage i mod 2.
     */
    uint8_t *stage[SHUF__PAYLOAD_STAGES];
    uint64_t fetched; /* bytes of whole chunks that are in stages or sent */
    bool fetching;
    struct shuf__engine_job fetch;
    struct shuf__error error; /* of the last fetch, or why it was abandoned */
    void (*ready)(void *context);
    void *context;
};

enum shuf__payload_state {
    SHUF__PAYLOAD_READY,  /* a chunk is there */
    SHUF__PAYLOAD_WAIT,   /* `ready` will be called when there is news */
    SHUF__PAYLOAD_END,    /* everything is sent */
    SHUF__PAYLOAD_FAILED, /* payload->error says why */
};

/* Takes over a reference to the entry on success; fails with SHUF_NO_MEMORY. The caller sets
 * `ready` and `context` once, before. */
shuf_status shuf__payload_begin(struct shuf__payload *payload, struct shuf__cache_entry *entry,
                                struct shuf__error *error);

/* Takes over a text of `size` bytes from malloc(). */
void shuf__payload_begin_text(struct shuf__payload *payload, char *text, size_t size);

/* The bytes to send next, at most SHUF__PAYLOAD_CHUNK. */
enum shuf__payload_state shuf__payload_next(struct shuf__payload *payload, const uint8_t **bytes,
                                            size_t *size);

/* `sent` of these bytes are sent. */
void shuf__payload_advance(struct shuf__payload *payload, size_t sent);

/* Gives the entry back before its values are sent: there are no more bytes, but an error with that
 * text. Not during a fetch. */
void shuf__payload_abandon(struct shuf__payload *payload, const char *why);

/* Gives the entry, the text and the stages back. False during a fetch: call it again after `ready`.
 */
bool shuf__payload_end(struct shuf__payload *payload);

#endif
