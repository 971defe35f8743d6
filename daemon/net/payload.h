/* SPDX-License-Identifier: MIT
 *
 * The bytes that follow a reply: handed out in chunks, straight from the block
 * where the host can read it, else by way of two small buffers that the engine
 * fills in turn. So a client that reads slowly costs the daemon little.
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
    struct shuf__cache_entry *result; /* NULL while nothing is to be sent */
    struct shuf__engine *engine;
    uint64_t size, sent;

    /* Where the host cannot read the block: chunk number i of the result goes
     * through stage i mod 2. */
    uint8_t *stage[SHUF__PAYLOAD_STAGES];
    uint64_t fetched; /* bytes of whole chunks that stand in stages or are sent */
    bool fetching;
    struct shuf__engine_job fetch;
    struct shuf__error error;     /* of the last fetch */
    void (*ready)(void *context); /* a fetch ended: look again */
    void *context;
};

enum shuf__payload_state {
    SHUF__PAYLOAD_READY,  /* a chunk is there */
    SHUF__PAYLOAD_WAIT,   /* `ready` will be called */
    SHUF__PAYLOAD_END,    /* all is sent */
    SHUF__PAYLOAD_FAILED, /* payload->error tells why */
};

/* Takes over a reference to the result when it succeeds; fails with SHUF_NO_MEMORY. `ready` and
 * `context` stay the caller's to set, once. */
shuf_status shuf__payload_begin(struct shuf__payload *payload, struct shuf__cache_entry *result,
                                struct shuf__engine *engine, uint64_t size,
                                struct shuf__error *error);

/* The bytes to send next, at most SHUF__PAYLOAD_CHUNK. */
enum shuf__payload_state shuf__payload_next(struct shuf__payload *payload, const uint8_t **bytes,
                                            size_t *size);

/* So many of them are sent. */
void shuf__payload_advance(struct shuf__payload *payload, size_t sent);

/* Gives the result and the stages back. While a fetch is under way it does
 * nothing: call it again when `ready` has been called. True when all is given back. */
bool shuf__payload_end(struct shuf__payload *payload);

#endif
