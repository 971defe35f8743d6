/* SPDX-License-Identifier: MIT
 *
 * The end of all sessions, and the end of those that read slowly.
 *
 * Clients that read their replies slowly keep the results in memory. They may do so until another
 * request needs the memory. Then the slowest client is cut off. Its libshuf repeats the request,
 * and continues at the first byte that it has not read.
 *
 * When the daemon drains, the sessions get the replies to the requests that it has accepted. A
 * client that reads its reply slowly would delay the end, so it is cut off too.
 */
#ifndef SHUFD_DRAIN_H
#define SHUFD_DRAIN_H

#include "session.h"

/* A client that reads its reply at this rate is not cut off. Messages and documents call it
 * 1 MiB/s. */
enum { SHUF__READ_BYTES_PER_MS = 1024 };

/* The bytes of the results that clients read slowly, in host or device memory. If `only` is not
 * NULL, counts only the clients of that user. `context`: the sessions. */
uint64_t shuf__slow_readers_bytes(void *context, enum shuf__side side, const uint32_t *only);

/* Gives back the result of the slowest reader, and cuts off the reader in its next turn. False: all
 * clients read fast enough. */
bool shuf__slow_readers_cut_off(void *context, enum shuf__side side);

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
