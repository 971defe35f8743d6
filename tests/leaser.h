/* SPDX-License-Identifier: MIT
 *
 * A peer that plays the daemon's part in leases, and writes down what the client
 * says. A request's seed names the block that the result is in; small results
 * have blocks that stay mapped, large ones have not.
 */
#ifndef TESTS_LEASER_H
#define TESTS_LEASER_H

#include "peer.h"
#include "shuf.h"

#include <stdbool.h>

enum {
    LEASER_SMALL = 10,      /* values in 2 MiB */
    LEASER_LARGE = 1500000, /* in 6 MiB, which are not kept mapped */
    LEASER_BLOCKS = 300,    /* seeds are below */
    LEASER_BUFFER = 299,    /* the block of a buffer */
    LEASER_OFFSET = 64,     /* of the values in a block */
    LEASER_UNIT = 2 << 20,
};

/* What an answer is made of. */
struct leaser_parcel {
    Shuf__ResultReply reply;
    uint64_t bulk; /* bytes behind the reply */
    size_t file;   /* bytes of the memory behind a descriptor */
    bool unsealed;
    unsigned descriptors;
};

/* All zeros by default, and again after leaser_finish(). */
extern struct leaser {
    /* How it plays: */
    Shuf__Transport transport; /* 0: MEMFD */
    char *device_id;
    void (*spoil)(struct leaser_parcel *parcel);
    void (*hand_over)(struct leaser_parcel *parcel); /* CUDA_IPC: sets the handles */
    int leave;   /* the request that it leaves at, Hello being 0 */
    int leavers; /* so many connections do */
    int refuse;  /* takes that are BUSY, from the second one on */
    bool odd;    /* it answers a Write as if it had been a Release */
    /* What there was: */
    bool has[LEASER_BLOCKS]; /* descriptors that this connection has */
    uint64_t leases;
    int takes;
    /* "hello take+ take-1/7": a descriptor sent, lease 1 and block 7 given back; "write10:7": to
     * byte 10 of a buffer, 7 of them */
    char said[8192];
} leaser;

void leaser_script(int fd, int connection);

/* The public transport of one of the wire's: 0 of 0. */
unsigned leaser_bit(Shuf__Transport transport);

/* Starts the peer with this script, and connects. */
shuf *leaser_begin(peer_script script);

/* Closes and stops. Nothing may be left open or mapped, and the client said just this. */
void leaser_finish(shuf *handle, const char *said);

/* A result of `n` values in that block; the lease before goes back in the same request. */
void leaser_take(shuf *handle, uint64_t block, uint64_t n, shuf_lease **lease);
void leaser_release(shuf *handle, shuf_lease **lease);

/* Value `i` of a block, which differs from one connection to the next. Copies are of block 0. */
uint32_t leaser_value(int connection, uint64_t block, uint64_t i);

/* The first thousand, in host memory. */
void leaser_check(const shuf_lease *lease, int connection, uint64_t block);

/* Mappings of descriptors that this process has. */
int leaser_mappings(void);

/* ---- For other scripts ---------------------------------------------------------- */

struct leaser_parcel leaser_parcel(const Shuf__Permute *asked);

/* The descriptor of a block with its values, the caller's to close. */
int leaser_memory(const struct leaser_parcel *parcel, int connection);

#endif
