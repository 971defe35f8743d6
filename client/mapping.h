/* SPDX-License-Identifier: MIT
 *
 * The blocks of the daemon's memory that this process has mapped. Leases of one
 * block share its mapping, and a small one outlives its leases for a while, so
 * that a loop over small results maps nothing. What is kept here belongs to one
 * connection, since the daemon names blocks to it; the daemon is told of each
 * block that goes.
 */
#ifndef SHUF__MAPPING_H
#define SHUF__MAPPING_H

#include "gpu.h"
#include "offer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum {
    SHUF__MAPPINGS_IDLE = 128,     /* kept without a lease: */
    SHUF__MAPPING_SMALL = 4 << 20, /* those of at most so many bytes */
    SHUF__MAPPING_BUCKETS = 256,
};

struct shuf__mapping {
    LIST_ENTRY(shuf__mapping) bucket;
    TAILQ_ENTRY(shuf__mapping) idle;
    uint64_t block, bytes;
    shuf_transport transport;
    bool writable; /* a buffer's, which never comes back and so is not kept */
    unsigned leases;
    bool stray; /* of a connection that was lost: in no bucket, and gone with its last lease */
    void *host; /* host memory; NULL: */
    struct shuf__gpu_view view;
};

struct shuf__mappings {
    uint64_t connection; /* the generation of the one that they are of */
    struct shuf__gpu *gpus;
    unsigned idles;
    TAILQ_HEAD(shuf__idle, shuf__mapping) idle; /* oldest first */
    LIST_HEAD(, shuf__mapping) buckets[SHUF__MAPPING_BUCKETS];
};

void shuf__mappings_open(struct shuf__mappings *mappings);

/* No lease may be left. */
void shuf__mappings_close(struct shuf__mappings *mappings);

/* What is kept is of connection `generation` from here on: what was, of another, goes. */
void shuf__mappings_renew(struct shuf__mappings *mappings, uint64_t generation);

/* The mapping of the block that is offered, for one lease more: an old one, or a new one by `fd`
 * (-1: none came), which stays the caller's. Fails with SHUF_PROTOCOL, SHUF_DEVICE, SHUF_NO_MEMORY
 * or SHUF_IO. */
shuf_status shuf__mapping_take(struct shuf__mappings *mappings, const struct shuf__offer *offer,
                               int fd, struct shuf__mapping **mapping, struct shuf__error *error);

/* One lease less. True when that unmapped something: *block is to be told to the daemon, unless
 * it is gone. `keep` false: nothing is worth keeping for it. */
bool shuf__mapping_drop(struct shuf__mappings *mappings, struct shuf__mapping *mapping, bool keep,
                        uint64_t *block);

/* Unmaps what is kept without a lease; the ids go to `blocks`, how many there were is returned. */
size_t shuf__mappings_trim(struct shuf__mappings *mappings, uint64_t blocks[SHUF__MAPPINGS_IDLE]);

/* Whether the block is mapped. */
bool shuf__mapping_known(const struct shuf__mappings *mappings, uint64_t block);

/* Where its byte `offset` is: an address of this process's, or a device's. */
const void *shuf__mapping_at(const struct shuf__mapping *mapping, uint64_t offset);

#endif
