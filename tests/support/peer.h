/* SPDX-License-Identifier: MIT
 *
 * A fake peer for tests of the client: a thread with a raw socket that runs a script for each
 * connection. One of the scripts is a fake daemon that serves leases and logs the client's
 * requests.
 */
#ifndef TESTS_PEER_H
#define TESTS_PEER_H

#include "message.h"
#include "shuf.h"
#include "shuf_status.h"

#include <stdbool.h>

/* Serves one connection; `connection` counts from 0. The peer closes `fd` when the function
 * returns. */
typedef void (*peer_script)(int fd, int connection);

void peer_start(peer_script script);

/* Waits until the current connection ends. Returns the number of connections. */
int peer_stop(void);

/* The path of the socket, valid from start to stop. */
const char *peer_path(void);

/* ---- For scripts ---- */

void peer_send(int fd, const void *bytes, size_t size);

/* Sends one byte with `count` descriptors, possibly none. */
void peer_send_byte(int fd, uint8_t byte, const int *descriptors, unsigned count);

/* Sends a reply; the descriptors travel with the first byte of the frame. */
void peer_send_reply(int fd, const Shuf__Reply *reply, const int *descriptors, unsigned count);

/* Returns the next request, which is valid until the next call; NULL when the client has closed the
 * connection. */
const Shuf__Request *peer_receive(int fd);

/* Waits until the client has closed the connection. */
void peer_await_close(int fd);

extern char peer_escape_text[]; /* clears a terminal, and imitates a line of output */
#define PEER_HOSTILE_SHOWN "?[2Jshufd?1"

/* Replies to a Hello, with the request's id plus `id_shift`. */
void peer_welcome(int fd, uint32_t version, uint64_t id_shift);

/* Sends a reply with these fields and no body. Its message is "because" and peer_escape_text. */
void peer_refuse(int fd, uint64_t id, shuf_status status, uint64_t payload);

/* ---- A fake daemon with leases ---- */

/* The seed of a request is the id of the block with its result. Clients keep the blocks of small
 * results mapped, and unmap those of large ones. */

enum {
    LEASE_SERVER_SMALL = 10, /* values of a small result, in a block of 2 MiB */
    /* values of a result of 6 MiB; clients do not keep its block mapped */
    LEASE_SERVER_LARGE = 1500000,
    LEASE_SERVER_BLOCKS = 300, /* the number of blocks; every seed must be less */
    LEASE_SERVER_BUFFER = 299, /* the id of a buffer's block */
    LEASE_SERVER_OFFSET = 64,  /* bytes from the front of a block to its values */
    LEASE_SERVER_UNIT = 2 << 20,
};

/* A reply, with its payload and descriptors. */
struct lease_server_reply {
    Shuf__ResultReply reply;
    uint64_t payload; /* bytes after the reply */
    size_t file;      /* the size of the file that a descriptor refers to */
    bool unsealed;
    unsigned descriptors;
};

/* Set the fields under "Behaviour" before lease_server_start(). lease_server_finish() sets all
 * fields to zero. */
extern struct lease_server {
    /* Behaviour: */
    Shuf__Transport transport; /* 0: MEMFD */
    char *device_id;
    void (*corrupt)(struct lease_server_reply *reply);
    void (*set_ipc_handles)(struct lease_server_reply *reply); /* for CUDA_IPC */
    int lost_at;          /* the number of the request at which the server closes the connection;
                           * Hello is 0 */
    int lost_connections; /* the number of connections that the server closes */
    /* the number of lease requests that fail with BUSY; the first request succeeds */
    int busy_takes;
    bool wrong_write_reply; /* the reply to a Write is a ReleaseReply */
    /* State: */
    /* Whether the connection has received the block's descriptor. */
    bool has_descriptor[LEASE_SERVER_BLOCKS];
    uint64_t leases;
    int takes;
    /* The requests so far, such as "hello take+ take-1/7" (+: a descriptor was sent; -1/7: lease 1
     * released, block 7 unmapped) and "write10:7" (7 bytes at offset 10 of a buffer). */
    char log[8192];
} lease_server;

void lease_server_script(int fd, int connection);

/* The public transport of a wire transport; 0 for 0. */
unsigned lease_server_transport(Shuf__Transport transport);

/* Starts the fake daemon with this script and connects. */
shuf *lease_server_start(peer_script script);

/* Closes the handle and stops the fake daemon. Checks the log, and that no descriptor or mapping
 * remains. */
void lease_server_finish(shuf *handle, const char *log);

/* Takes a lease of `n` values in this block; the request also releases the old lease in *lease. */
void lease_server_take(shuf *handle, uint64_t block, uint64_t n, shuf_lease **lease);
void lease_server_release(shuf *handle, shuf_lease **lease);

/* Returns value `i` of a block. Each connection has other values. An inline result has the values
 * of block 0. */
uint32_t lease_server_value(int connection, uint64_t block, uint64_t i);

/* Checks the first thousand values of a lease in host memory. */
void lease_server_check(const shuf_lease *lease, int connection, uint64_t block);

/* The number of mappings that this process has of the fake daemon's descriptors. */
int lease_server_mappings(void);

/* ---- For other scripts ---- */

/* To a request for a permutation of n values in the block. */
struct lease_server_reply lease_server_reply_to(uint64_t n, uint64_t block, bool prefetch);

/* Returns a descriptor of a block with its values; the caller closes it. */
int lease_server_memory(const struct lease_server_reply *reply, int connection);

#endif
