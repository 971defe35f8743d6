/* SPDX-License-Identifier: MIT
 *
 * A session is one connection. It turns bytes into frames and requests, and sends replies and
 * payloads. It handles one request at a time, and reads nothing until the reply is sent. So a
 * client that does not read its replies cannot submit more work.
 */
#ifndef SHUFD_SESSION_H
#define SHUFD_SESSION_H

#include "session_state.h"

#include <sys/socket.h>

/* Opens a session on an accepted, non-blocking socket of this peer. Takes over the socket, also on
 * failure. */
void shuf__session_open(struct shuf__sessions *sessions, int fd, const struct ucred *peer);

/* Ends the session now: cancels its pending work and sends nothing more. */
void shuf__session_close(struct shuf__session *session);

void shuf__sessions_init(struct shuf__sessions *sessions, uv_loop_t *loop);

/* Closes the handles of libuv. All sessions must be closed. */
void shuf__sessions_close(struct shuf__sessions *sessions);

/* Sets how long the loop stays awake after a reply. 0 is the initial value: it sleeps at once. On a
 * single processor it never stays awake, because it would delay the clients for which it waits. */
void shuf__spin_set(struct shuf__spin *spin, uint64_t nanoseconds);

/* Call when a reply was sent. */
void shuf__spin_replied(struct shuf__spin *spin, uint64_t now_ns);

/* Handles requests and sends replies for a short time. Call it before the loop sleeps. */
void shuf__sessions_serve(struct shuf__sessions *sessions);

/* Handles one request, or sends one part of the reply. The caller holds a reference (`refs`),
 * because this may close the session. */
void shuf__session_serve(struct shuf__session *session);
void shuf__session_unref(struct shuf__session *session);

/* The turn of the session: `serve` of its `ready`. */
void shuf__session_take_turn(struct shuf__ready *ready);

/* Whether the socket has no room for the reply, because the client has not read. */
bool shuf__session_waits_for_client(const struct shuf__session *session);

/* Call when the daemon drains. Closes the session now, or after the reply to its request. */
void shuf__session_drain(struct shuf__session *session);

/* ---- For request handlers ---- */

/* Sends `reply` under the request's id with the descriptor of the block `lent`, and then the values
 * of `entry` (both NULL: none). Takes over a reference to the entry. */
void shuf__session_reply(struct shuf__session *session, Shuf__Reply *reply,
                         struct shuf__cache_entry *entry, const struct shuf__lent *lent);

/* Sends `reply`, and then `size` bytes of `text`. Frees the text. */
void shuf__session_reply_text(struct shuf__session *session, Shuf__Reply *reply, char *text,
                              size_t size);

/* Sends an error as the reply. */
void shuf__session_fail(struct shuf__session *session, const struct shuf__error *error);

/* Sends an error, and then closes the connection. `reply` may have a body. */
void shuf__session_refuse(struct shuf__session *session, Shuf__Reply *reply,
                          const struct shuf__error *error);

/* Makes the session wait for `pending` before it replies. */
void shuf__session_wait(struct shuf__session *session, struct shuf__pending *pending);

/* Call when the pending work is over, if that of many sessions may be over at once. The session
 * calls pending->reply in its turn, so the sessions of other users need not wait. */
void shuf__session_reply_in_turn(struct shuf__session *session);

/* Call when the pending work is over. Then reply, and call shuf__session_advance(), which handles
 * the next request. `started_ns`: when the job of the work left the queue, or 0. */
void shuf__session_end_pending(struct shuf__session *session, uint64_t started_ns);
void shuf__session_advance(struct shuf__session *session);

#endif
