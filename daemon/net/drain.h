/* SPDX-License-Identifier: MIT
 *
 * The end of all sessions. They get the replies to the requests that the daemon has accepted. A
 * client that reads its reply slowly is cut off, because it would delay the end of the daemon. Its
 * libshuf continues at the next daemon, if there is one within its reconnect time.
 */
#ifndef SHUFD_DRAIN_H
#define SHUFD_DRAIN_H

#include "session.h"

struct shuf__drain {
    struct shuf__sessions *sessions;
    uv_timer_t tick;
    uint64_t read_timeout_ms;
    uint64_t unread; /* clients that were cut off because they did not read fast enough */
};

void shuf__drain_init(struct shuf__drain *drain, struct shuf__sessions *sessions);

/* Closes the sessions without a request now, and the others after their replies. If a client reads
 * its reply at less than 1 MiB/s for this time, closes its session too. */
void shuf__drain_start(struct shuf__drain *drain, uint64_t read_timeout_ms);

/* Closes all sessions. Returns the number of sessions without a complete answer. Sessions with an
 * unread reply are not counted. */
uint64_t shuf__drain_force(struct shuf__drain *drain);

#endif
