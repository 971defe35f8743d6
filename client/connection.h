/* SPDX-License-Identifier: MIT
 *
 * One connection to a daemon: connect and Hello under a deadline, send a
 * request, receive its reply and the raw bytes behind it. Whatever fails here
 * leaves the connection closed; SHUF_NO_DAEMON means that the peer went away,
 * and is the one failure after which asking again makes sense.
 */
#ifndef SHUF__CONNECTION_H
#define SHUF__CONNECTION_H

#include "error.h"
#include "inbox.h"
#include "message.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

enum {
    SHUF__CONNECTION_BUFFER = 256 * 1024, /* frames, and what a stream hands on */
    SHUF__HANDSHAKE_MS = 10000,           /* a daemon that is just starting has a GPU to wake */
};

struct shuf__connection {
    int fd;              /* -1: none */
    uint64_t generation; /* which connection this is: what the daemon keeps for it ends with it */
    uint64_t last_id;
    uint64_t deadline_ns; /* for receiving; 0: none, a long computation is no fault */
    struct sockaddr_un address;
    struct shuf__inbox inbox;
    struct shuf__arena arena; /* the last reply */
    uint8_t buffer[SHUF__CONNECTION_BUFFER];
};

/* Connects to ->address and says Hello. */
shuf_status shuf__connection_open(struct shuf__connection *connection, struct shuf__error *error);
void shuf__connection_close(struct shuf__connection *connection);

/* Sends the request under a new id, which is written into it. */
shuf_status shuf__connection_send(struct shuf__connection *connection, Shuf__Request *request,
                                  struct shuf__error *error);

/* The reply to the last request, valid until the next one. That it answers with
 * an error is for the caller to see. */
shuf_status shuf__connection_reply(struct shuf__connection *connection, const Shuf__Reply **reply,
                                   struct shuf__error *error);

/* The descriptor that the last reply announced, which is then the caller's to close; -1: none,
 * or taken already. One that nobody takes is closed. */
int shuf__connection_descriptor(struct shuf__connection *connection);

/* Takes a peer's word into `out` of `size` bytes: cut to it, and printable. */
void shuf__copy_word(char *out, size_t size, const char *word);

/* Fails with what a reply whose status is not SHUF_OK says, made printable. */
shuf_status shuf__reply_fail(const Shuf__Reply *reply, struct shuf__error *error);

/* Up to `size` raw bytes, at least one; as many as `size` unless the peer left
 * or a signal came. */
shuf_status shuf__connection_receive(struct shuf__connection *connection, void *out, size_t size,
                                     size_t *received, struct shuf__error *error);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t shuf__now_ns(void);

#endif
