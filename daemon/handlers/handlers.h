/* SPDX-License-Identifier: MIT
 *
 * The handlers of requests, each in a file of its own. All requests for a result have one handler.
 * The kinds are in proto/request_kinds.h. A handler replies, or submits a job and lets the session
 * wait for it.
 */
#ifndef SHUFD_HANDLERS_H
#define SHUFD_HANDLERS_H

#include "net/session.h"

void shuf__handle_hello(struct shuf__session *session, const Shuf__Request *request);
/* In result.c: a Permute, Stream, Shuffle, Exchange or Buffer, from its message to its reply. */
void shuf__handle_result(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_status(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_release(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_leases(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_index(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_write(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_drop(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_metrics(struct shuf__session *session, const Shuf__Request *request);

#endif
