/* SPDX-License-Identifier: MIT
 *
 * The memory of a session in its first state.
 */
#ifndef SHUFD_SESSION_MAKE_H
#define SHUFD_SESSION_MAKE_H

#include "session_state.h"

/* Without handles of the loop. The caller sets outbox.payload.ready
 * and client.died. NULL when out of memory. */
struct shuf__session *shuf__session_make(struct shuf__sessions *sessions, int fd);

#endif
