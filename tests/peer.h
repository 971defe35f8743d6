/* SPDX-License-Identifier: MIT
 *
 * A peer that is no shufd, for tests of the client: a thread on a raw socket
 * that plays a script on each connection.
 */
#ifndef TESTS_PEER_H
#define TESTS_PEER_H

#include "message.h"
#include "shuf_status.h"

/* Plays one connection, number 0 first; it is closed when this returns. */
typedef void (*peer_script)(int fd, int connection);

void peer_start(peer_script script);

/* Waits for the connection at hand; how many there were. */
int peer_stop(void);

/* Of the socket, from start to stop. */
const char *peer_path(void);

/* ---- For scripts -------------------------------------------------------------- */

void peer_put(int fd, const void *bytes, size_t size);

/* One byte, with descriptors beside it; `count` may be 0. */
void peer_put_byte(int fd, uint8_t byte, const int *descriptors, unsigned count);

/* With descriptors beside the frame's first byte. */
void peer_put_reply(int fd, const Shuf__Reply *reply, const int *descriptors, unsigned count);

/* The next request, valid until the one after it; NULL when the client is gone. */
const Shuf__Request *peer_get(int fd);

/* Until the client has gone. */
void peer_wait_until_gone(int fd);

extern char peer_hostile[]; /* clears a terminal, and feigns a line */
#define PEER_HOSTILE_SHOWN "?[2Jshufd?1"

/* Answers a Hello, under its id and `id_shift` more. */
void peer_welcome(int fd, uint32_t version, uint64_t id_shift);

/* A reply of these, without a body, which says "because" and something hostile. */
void peer_refuse(int fd, uint64_t id, shuf_status status, uint64_t payload);

#endif
