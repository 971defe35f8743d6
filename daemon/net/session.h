/* SPDX-License-Identifier: MIT
 *
 * One connection: it turns bytes into frames and requests, and sends replies and payloads. It
 * handles one request at a time and reads nothing meanwhile: a client that does not read its
 * replies cannot submit more work.
 */
#ifndef SHUFD_SESSION_H
#define SHUFD_SESSION_H

#include "session_state.h"

/* Takes over the accepted, non-blocking socket, also on failure. */
void shuf__session_open(struct shuf__sessions *sessions, int fd);

/* Ends it now: cancels its pending work and sends nothing more. */
void shuf__session_close(struct shuf__session *session);

void shuf__sessions_init(struct shuf__sessions *sessions, uv_loop_t *loop);

/* Closes the handle of the loop; the sessions must be closed. */
void shuf__sessions_close(struct shuf__sessions *sessions);

/* Handles requests and sends replies, for a moment; to be called before the loop sleeps. */
void shuf__sessions_serve(struct shuf__sessions *sessions);

/* The socket has no room: its client has not read. */
bool shuf__session_waits_for_client(const struct shuf__session *session);

/* The daemon drains: closes the session, after its reply if it works on one. */
void shuf__session_drain(struct shuf__session *session);

/* ---- For request handlers ---- */

/* Sends `reply` under the request's id, with `descriptor`, which it takes over (-1: none), and then
 * the values of `entry`, a reference to which it takes over (NULL: none). */
void shuf__session_reply(struct shuf__session *session, Shuf__Reply *reply,
                         struct shuf__cache_entry *entry, int descriptor);

/* Sends `reply`, and then `size` bytes of `text`, which it frees. */
void shuf__session_reply_text(struct shuf__session *session, Shuf__Reply *reply, char *text,
                              size_t size);

/* Sends a failure. */
void shuf__session_fail(struct shuf__session *session, const struct shuf__error *error);

/* The same, and closes the connection when it is sent; `reply` may have a body. */
void shuf__session_refuse(struct shuf__session *session, Shuf__Reply *reply,
                          const struct shuf__error *error);

/* The request waits for the pending work. */
void shuf__session_wait(struct shuf__session *session, struct shuf__pending *pending);

/* The pending work is over: the caller replies next, and then calls shuf__session_advance(), which
 * handles the next request. `started_ns`: when its job left the queue, or 0. */
void shuf__session_end_pending(struct shuf__session *session, uint64_t started_ns);
void shuf__session_advance(struct shuf__session *session);

#endif
