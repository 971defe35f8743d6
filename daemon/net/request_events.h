/* SPDX-License-Identifier: MIT
 *
 * The events of a request that the metrics, the log and the probes record.
 */
#ifndef SHUFD_REQUEST_EVENTS_H
#define SHUFD_REQUEST_EVENTS_H

#include "session_state.h"

/* Call when the frame of a request is complete. `request` NULL: the frame cannot be parsed. */
void shuf__request_received(struct shuf__session *session, const Shuf__Request *request);

/* Call when the reply to the request is made. */
void shuf__request_replied(struct shuf__session *session, const Shuf__Reply *reply);

/* Logs a reply that is an error. `text` is the message of the error. */
void shuf__request_failed(const struct shuf__session *session, shuf_status status,
                          const char *text);

/* Call when the last byte of the reply is in the socket. The loop then stays awake for the next
 * request. */
void shuf__request_sent(struct shuf__session *session);

/* Call when the session closes before the last byte of the reply is in the socket. */
void shuf__request_cancelled(struct shuf__session *session);

#endif
