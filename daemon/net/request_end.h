/* SPDX-License-Identifier: MIT
 *
 * The moments in the life of a request that the metrics, the log and the probes see.
 */
#ifndef SHUFD_REQUEST_END_H
#define SHUFD_REQUEST_END_H

#include "session_state.h"

/* The frame of a request is complete; `request` NULL: it cannot be parsed. */
void shuf__request_received(struct shuf__session *session, const Shuf__Request *request);

/* The reply to the request is made. */
void shuf__request_replied(struct shuf__session *session, const Shuf__Reply *reply);

/* Logs a reply that is an error; `text` is its message. */
void shuf__request_failed(const struct shuf__session *session, shuf_status status,
                          const char *text);

/* The last byte of the reply is in the socket. The loop stays awake for the next request. */
void shuf__request_sent(struct shuf__session *session);

/* The session closes before that. */
void shuf__request_cancelled(struct shuf__session *session);

#endif
