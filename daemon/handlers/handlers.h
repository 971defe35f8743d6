/* SPDX-License-Identifier: MIT
 *
 * The handlers of requests. Each kind of request has one handler, in a file of its own. The
 * table of kinds is SHUF__REQUEST_KINDS in proto/request_kinds.h. A handler replies, or submits a
 * job and lets the session wait for it.
 */
#ifndef SHUFD_HANDLERS_H
#define SHUFD_HANDLERS_H

#include "net/session.h"

void shuf__handle_hello(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_permute(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_stream(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_status(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_release(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_leases(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_index(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_allocate(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_write(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_shuffle(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_drop(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_exchange(struct shuf__session *session, const Shuf__Request *request);
void shuf__handle_metrics(struct shuf__session *session, const Shuf__Request *request);

#endif
