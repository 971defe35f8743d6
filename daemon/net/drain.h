/* SPDX-License-Identifier: MIT
 *
 * The end of all sessions: they get the replies to the requests that were accepted. Clients that do
 * not read theirs are cut off, so that they cannot hold up the end of the daemon.
 */
#ifndef SHUFD_DRAIN_H
#define SHUFD_DRAIN_H

#include "session.h"

struct shuf__drain {
    struct shuf__sessions *sessions;
    uv_timer_t tick;
    uint64_t unread; /* clients that were cut off */
};

void shuf__drain_init(struct shuf__drain *drain, struct shuf__sessions *sessions);

/* Closes the idle sessions, and the others after their replies; at once if nothing is read of a
 * reply from one tick to the next. */
void shuf__drain_start(struct shuf__drain *drain, uint64_t tick_ms);

/* Closes all sessions. Returns the number of those whose requests were still at work: the others
 * have left their reply unread. */
uint64_t shuf__drain_force(struct shuf__drain *drain);

#endif
