/* SPDX-License-Identifier: MIT
 *
 * The bytes that follow a reply: handed out in chunks, straight from the block
 * where the host can read it, else by way of two small buffers that the engine
 * fills in turn. So a client that reads slowly costs the daemon little.
 */
#ifndef SHUFD_BULK_H
#define SHUFD_BULK_H

#include "results.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SHUF__BULK_CHUNK = 256 * 1024,
    SHUF__BULK_STAGES = 2,
};

struct shuf__bulk {
    struct shuf__result *result; /* NULL while nothing is to be sent */
    struct shuf__engine *engine;
    uint64_t size, sent;

    /* Where the host cannot read the block: chunk number i of the result goes
     * through stage i mod 2. */
    uint8_t *stage[SHUF__BULK_STAGES];
    uint64_t fetched; /* bytes of whole chunks that stand in stages or are sent */
    bool fetching;
    struct shuf__task fetch;
    struct shuf__error error;     /* of the last fetch */
    void (*ready)(void *context); /* a fetch ended: look again */
    void *context;
};

enum shuf__bulk_state {
    SHUF__BULK_READY,  /* a chunk is there */
    SHUF__BULK_WAIT,   /* `ready` will be called */
    SHUF__BULK_END,    /* all is sent */
    SHUF__BULK_FAILED, /* bulk->error tells why */
};

/* Takes over a reference to the result when it succeeds; fails with SHUF_NO_MEMORY. `ready` and
 * `context` stay the caller's to set, once. */
shuf_status shuf__bulk_begin(struct shuf__bulk *bulk, struct shuf__result *result,
                             struct shuf__engine *engine, uint64_t size, struct shuf__error *error);

/* The bytes to send next, at most SHUF__BULK_CHUNK. */
enum shuf__bulk_state shuf__bulk_next(struct shuf__bulk *bulk, const uint8_t **bytes, size_t *size);

/* So many of them are sent. */
void shuf__bulk_advance(struct shuf__bulk *bulk, size_t sent);

/* Gives the result and the stages back. While a fetch is under way it does
 * nothing: call it again when `ready` has been called. True when all is given back. */
bool shuf__bulk_end(struct shuf__bulk *bulk);

#endif
