/* SPDX-License-Identifier: MIT
 *
 * Transports, the part of a reply that locates the values, and the mapped blocks of the daemon's
 * memory. Leases of one block share its mapping, which has a
 * reference count. Small mappings stay in an LRU list after their last lease, so a loop over a few
 * small results does not map them again. A program may let larger ones stay too. These idle
 * mappings take memory of the daemon, so their bytes are limited. Block ids are valid for one
 * connection. The caller reports each unmapped block to the daemon.
 */
#ifndef SHUF__MAPPING_H
#define SHUF__MAPPING_H

#include "error.h"
#include "gpu_view.h"
#include "shuf.h"
#include "shuf.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* ---- Transports ---- */

/* In the public interface a transport is a bit, so a set of transports is a mask. In the messages
 * it is a number. */

enum { SHUF__TRANSPORTS = 4 };

/* Writes the set as a list of *count wire transports. Fails with SHUF_INVALID for an empty or
 * unknown set. */
shuf_status shuf__transport_list(unsigned transports, Shuf__Transport list[SHUF__TRANSPORTS],
                                 size_t *count, struct shuf__error *error);

/* 0 for an unknown transport. */
shuf_transport shuf__transport_of_wire(Shuf__Transport wire);

/* ---- The reply ---- */

/* The part of a reply that locates the values: transport, block, offset and handles. It is checked
 * and copied, because a reply is valid only until the next one. */
struct shuf__mapping_info {
    shuf_transport transport;
    bool shared; /* cached, or computed for another request too */
    /* For all transports but INLINE: */
    uint64_t lease, block, block_bytes;
    uint64_t offset; /* of the values in the block; all values are inside the block */
    char device_id[64];
    bool descriptor; /* the reply carried one */
    bool writable;   /* the block is a buffer */
    uint8_t ipc[SHUF__IPC_BYTES];
    bool has_event;
    uint8_t event[SHUF__IPC_BYTES];
};

/* The request accepted the set `transports`; the result has `shape`, or is a buffer. Fails with
 * SHUF_PROTOCOL if the reply does not fit. */
shuf_status shuf__mapping_info_read(const Shuf__ResultReply *reply, unsigned transports,
                                    const shuf_shape *shape, bool buffer,
                                    struct shuf__mapping_info *info, struct shuf__error *error);

/* ---- Mappings ---- */

enum {
    /* The most memory that stays mapped without a lease, unless the program sets another limit of
     * device memory. This limit fits a loop over small results: the daemon uses 65 blocks of 2 MiB
     * in turn, and to map one takes 80 us. */
    SHUF__IDLE_HOST_BYTES = 16 << 20,
    SHUF__IDLE_DEVICE_BYTES = 160 << 20,
    SHUF__IDLE_MAPPINGS = 100,     /* in host memory, and as many in device memory */
    SHUF__MAPPING_SMALL = 4 << 20, /* bytes; larger ones stay only if the program sets a limit */
    SHUF__UNMAPPED_MAX =
        2 * SHUF__IDLE_MAPPINGS + 1, /* the most blocks that one function here unmaps */
    SHUF__MAPPING_BUCKETS = 256,
};

struct shuf__mapping {
    LIST_ENTRY(shuf__mapping) bucket;
    TAILQ_ENTRY(shuf__mapping) idle;
    uint64_t block, bytes;
    shuf_transport transport;
    bool writable; /* a buffer: not kept, because its block id is never used again */
    unsigned lease_count;
    bool detached; /* its connection has ended: it is in no bucket; unmapped with its last lease */
    void *host;    /* host memory; NULL: device memory */
    struct shuf__gpu_view view; /* device memory */
};

/* Mappings without a lease, in host or in device memory. */
struct shuf__idle_mappings {
    TAILQ_HEAD(, shuf__mapping) list; /* oldest first */
    unsigned count;
    uint64_t bytes;
};

struct shuf__mappings {
    uint64_t generation; /* of the connection that the block ids are valid for */
    struct shuf__gpu *gpus;
    struct shuf__idle_mappings host, device;
    uint64_t device_limit; /* bytes of idle mappings, set by the program; 0: none */
    LIST_HEAD(, shuf__mapping) buckets[SHUF__MAPPING_BUCKETS];
};

void shuf__mappings_open(struct shuf__mappings *mappings);

/* Requires that no lease is left. */
void shuf__mappings_close(struct shuf__mappings *mappings);

/* From now on, block ids are those of connection `generation`. If that is a new connection, unmaps
 * the idle mappings, and detaches those with leases. */
void shuf__mappings_set_generation(struct shuf__mappings *mappings, uint64_t generation);

/* Finds the block's mapping, or maps it by `fd` (-1: the reply carried none), and adds a lease to
 * it. The caller closes `fd`. Fails with SHUF_PROTOCOL, SHUF_DEVICE, SHUF_NO_MEMORY or SHUF_IO. */
shuf_status shuf__mapping_acquire(struct shuf__mappings *mappings,
                                  const struct shuf__mapping_info *info, int fd,
                                  struct shuf__mapping **mapping, struct shuf__error *error);

/* Removes a lease from the mapping. If that unmaps blocks, writes their ids to `blocks`. Returns
 * the number of these blocks. `keep` false: unmaps even a small mapping. */
size_t shuf__mapping_release(struct shuf__mappings *mappings, struct shuf__mapping *mapping,
                             bool keep, uint64_t blocks[SHUF__UNMAPPED_MAX]);

/* Sets device_limit. If it is less than before, unmaps all idle mappings of device memory, writes
 * their ids to `blocks` and returns their number. */
size_t shuf__mappings_set_limit(struct shuf__mappings *mappings, uint64_t bytes,
                                uint64_t blocks[SHUF__UNMAPPED_MAX]);

/* Unmaps all idle mappings, writes their ids to `blocks` and returns their number. */
size_t shuf__mappings_trim(struct shuf__mappings *mappings, uint64_t blocks[SHUF__UNMAPPED_MAX]);

/* True when the block is mapped. */
bool shuf__mapping_exists(const struct shuf__mappings *mappings, uint64_t block);

/* The address of byte `offset` of the block, in host or in device memory. */
const void *shuf__mapping_at(const struct shuf__mapping *mapping, uint64_t offset);

#endif
