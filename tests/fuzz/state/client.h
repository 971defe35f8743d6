/* SPDX-License-Identifier: MIT
 *
 * The clients of the scripted daemon, and the values that it must give them. The clients remember
 * what they have asked for and what they hold, and check each reply.
 */
#ifndef SHUF__FUZZ_CLIENT_H
#define SHUF__FUZZ_CLIENT_H

#include "daemon.h"
#include "message.h"
#include "shuf/key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- The values that the daemon must give, by the inline functions of the algorithms ---- */

enum { VALUES_RANKS = 5 };

enum values_kind {
    VALUES_UNKNOWN, /* not checked */
    VALUES_PERMUTATION,
    VALUES_UNIFORM,
    VALUES_PLAN,      /* of an exchange */
    VALUES_ONE_SIDED, /* plan of a single part, for ranks of a single window */
};

/* One permutation of primefold, or its inverse. n is 0 if there is none. */
struct values_order {
    uint64_t n, epoch;
    shuf_key key;
    bool inverse;
};

/* Value i of row r stands at position (offset + i * stride) mod n of the permutation of epoch
 * order.epoch + r. A shuffled result has its records in the order `shuffled`. */
struct values {
    enum values_kind kind;
    unsigned width; /* bytes of a value */
    struct values_order order, shuffled;
    uint64_t rows, count, offset, stride;
    uint64_t stream;                                    /* of a uniform stream */
    uint64_t rank, world;                               /* of a plan */
    uint64_t input[VALUES_RANKS], output[VALUES_RANKS]; /* records of each rank */
};

/* ---- Clients ---- */

enum {
    CLIENTS = 4,
    CLIENT_WAITING = 8, /* unanswered requests of a client */
    CLIENT_MAPS = 8,    /* of results that a client has released */
    CLIENT_LOOK_UPS = 3,
};

/* A result that a client has leased. */
struct lease {
    uint64_t id, block;
    void *memory;    /* NULL: not mapped */
    size_t bytes;    /* of the mapping */
    uint64_t offset; /* of the values in the block */
    uint64_t buffer; /* bytes of a buffer; 0: not a buffer */
    unsigned key;    /* the named key of its values */
    struct values values;
};

/* A request without a reply. */
struct waiting {
    uint64_t id;
    bool is_result, maps, prefetch;
    bool needs_privilege; /* only a privileged user may have it */
    struct lease asked;
    uint64_t fingerprint_index;
    bool fingerprint;
    uint64_t at[CLIENT_LOOK_UPS]; /* of look-ups */
    uint64_t released;            /* a lease; 0: none */
    bool everything;
};

struct client {
    int fd; /* -1: closed */
    uint32_t uid;
    uint64_t last_id;
    struct waiting waiting[CLIENT_WAITING];
    unsigned waits;
    struct lease leases[DAEMON_LEASES], released[CLIENT_MAPS];
    unsigned held, maps;
    uint64_t prefetched; /* the last one; the daemon may have ended it */
    size_t got;          /* of its inbox */
    size_t paid, owed;   /* of its payload */
    struct lease paid_for;
    int fds[CLIENT_WAITING];
    unsigned fd_count;
};

/* Two of them are of the first user, one is of a second user, and one of the daemon's user. */
extern struct client clients[CLIENTS];

void clients_init(void);
void client_open(struct client *client);
void client_close(struct client *client);

/* Closes the connection if it has no room for the request. */
void client_send(struct client *client, Shuf__Request *request, const struct waiting *waiting);

/* Takes all received replies. */
void client_read(struct client *client);

/* Unmaps the last one of the results that the client has released. Returns its block; 0: none. */
uint64_t client_unmap_released(struct client *client);

/* The lease with that id, or NULL. */
const struct lease *client_lease(const struct client *client, uint64_t id);

/* After a reload of the keys, a request that waits may get values of the old or the new key. */
void clients_forget_keys(void);

/* Checks the values that the clients have mapped. */
void clients_check(void);

#endif
