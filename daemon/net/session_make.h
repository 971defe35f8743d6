/* SPDX-License-Identifier: MIT
 *
 * Allocates a session and sets its first state.
 */
#ifndef SHUFD_SESSION_MAKE_H
#define SHUFD_SESSION_MAKE_H

#include "session_state.h"

#include <sys/socket.h>

/* Does not open handles of libuv. The caller sets outbox.payload.ready and client.died. NULL when
 * out of memory. */
struct shuf__session *shuf__session_make(struct shuf__sessions *sessions, int fd,
                                         const struct ucred *peer);

#endif
