/* SPDX-License-Identifier: MIT
 *
 * One handler a request kind, in a file of its own; handlers.c has the table that
 * finds them. A handler replies, refuses, or gives the session's work to the engine.
 */
#ifndef SHUFD_HANDLERS_H
#define SHUFD_HANDLERS_H

#include "net/session.h"

/* Has the request handled, or refuses it where it is of no kind or not its turn. */
void shuf__handle(struct shuf__session *session, const Shuf__Request *request);

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

/* The client of a request for a result that waits has left. */
void shuf__ask_drop(struct shuf__ask *ask);

/* The same of an Index, and of a Write. */
void shuf__lookup_drop(struct shuf__lookup *lookup);
void shuf__writing_drop(struct shuf__writing *writing);

#endif
