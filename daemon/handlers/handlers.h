/* SPDX-License-Identifier: MIT
 *
 * The handlers of requests. The kinds are in proto/message.h. A handler replies, or submits a
 * job and lets the session wait for it.
 */
#ifndef SHUFD_HANDLERS_H
#define SHUFD_HANDLERS_H

#include "net/session.h"

/* Handles the request. Refuses it if its kind is unknown, or if it comes before Hello. */
void shuf__dispatch(struct shuf__session *session, const Shuf__Request *request);

/* A Permute, Stream, Shuffle, Exchange or Buffer, from its message to its reply (result.c). */
void shuf__handle_result(struct shuf__session *session, const Shuf__Request *request);

/* A look-up (index.c). */
void shuf__handle_index(struct shuf__session *session, const Shuf__Request *request);

#endif
