/* SPDX-License-Identifier: MIT
 *
 * A peer that serves leases as the daemon does and logs the client's requests. A request's seed is
 * the id of the block with the result. Clients keep the blocks of small results mapped, not those
 * of large ones.
 */
#ifndef TESTS_FAKE_LEASE_SERVER_H
#define TESTS_FAKE_LEASE_SERVER_H

#include "peer.h"
#include "shuf.h"

#include <stdbool.h>

enum {
    LEASE_SERVER_SMALL = 10,      /* values in 2 MiB */
    LEASE_SERVER_LARGE = 1500000, /* in 6 MiB, which are not kept mapped */
    LEASE_SERVER_BLOCKS = 300,    /* each seed is less */
    LEASE_SERVER_BUFFER = 299,    /* the block of a buffer */
    LEASE_SERVER_OFFSET = 64,     /* of the values in a block */
    LEASE_SERVER_UNIT = 2 << 20,
};

/* A reply, with its payload and descriptors. */
struct lease_server_reply {
    Shuf__ResultReply reply;
    uint64_t payload; /* bytes behind the reply */
    size_t file;      /* bytes of the memory of a descriptor */
    bool unsealed;
    unsigned descriptors;
};

/* Set the first part before lease_server_start(). lease_server_finish() sets all to zero. */
extern struct lease_server {
    /* Behaviour: */
    Shuf__Transport transport; /* 0: MEMFD */
    char *device_id;
    void (*corrupt)(struct lease_server_reply *reply);
    void (*set_ipc_handles)(struct lease_server_reply *reply); /* for CUDA_IPC */
    int lost_at;            /* closes the connection at this request; Hello is 0 */
    int lost_connections;   /* the number of connections that it closes */
    int busy_takes;         /* takes that fail with BUSY, from the second one on */
    bool wrong_write_reply; /* replies to a Write with a ReleaseReply */
    /* State: */
    bool has_descriptor[LEASE_SERVER_BLOCKS]; /* the connection has received the block's descriptor
                                               */
    uint64_t leases;
    int takes;
    /* "hello take+ take-1/7": + sent a descriptor, lease 1 released, block 7 unmapped; "write10:7":
     * 7 bytes to offset 10 of a buffer */
    char log[8192];
} lease_server;

void lease_server_script(int fd, int connection);

/* The public transport of a wire transport; 0 for 0. */
unsigned lease_server_transport(Shuf__Transport transport);

/* Starts the peer with this script and connects. */
shuf *lease_server_start(peer_script script);

/* Closes the handle and stops the peer. Checks the log, and that no descriptor or mapping remains.
 */
void lease_server_finish(shuf *handle, const char *log);

/* Takes a lease of `n` values in this block; the old lease goes back in the same request. */
void lease_server_take(shuf *handle, uint64_t block, uint64_t n, shuf_lease **lease);
void lease_server_release(shuf *handle, shuf_lease **lease);

/* Value `i` of a block; different for each connection. Copies have the values of block 0. */
uint32_t lease_server_value(int connection, uint64_t block, uint64_t i);

/* Checks the first thousand values, in host memory. */
void lease_server_check(const shuf_lease *lease, int connection, uint64_t block);

/* The number of mappings of the peer's descriptors in this process. */
int lease_server_mappings(void);

/* ---- For other scripts ---------------------------------------------------------- */

struct lease_server_reply lease_server_reply_to(const Shuf__Permute *message);

/* A descriptor of a block with its values; the caller closes it. */
int lease_server_memory(const struct lease_server_reply *reply, int connection);

#endif
