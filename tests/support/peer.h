/* SPDX-License-Identifier: MIT
 *
 * A fake peer for tests of the client: a thread with a raw socket that runs a script for each
 * connection.
 */
#ifndef TESTS_PEER_H
#define TESTS_PEER_H

#include "message.h"
#include "shuf_status.h"

/* Serves one connection; `connection` counts from 0. The peer closes `fd` when the function
 * returns. */
typedef void (*peer_script)(int fd, int connection);

void peer_start(peer_script script);

/* Waits until the current connection ends. Returns the number of connections. */
int peer_stop(void);

/* The path of the socket, valid from start to stop. */
const char *peer_path(void);

/* ---- For scripts -------------------------------------------------------------- */

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

#endif
