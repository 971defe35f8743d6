/* SPDX-License-Identifier: MIT
 *
 * Accepts connections and opens their sessions; refuses those above the limit. It takes turns with
 * the users (ready.h), because a flood of connections may not delay requests.
 */
#ifndef SHUFD_ACCEPTOR_H
#define SHUFD_ACCEPTOR_H

#include "listener.h"
#include "number.h"
#include "refusals.h"
#include "session.h"

struct shuf__acceptor {
    struct shuf__sessions *sessions;
    const struct shuf__listener *listener;
    uint64_t descriptors;        /* descriptors of sessions and client processes at a time */
    struct shuf__amount of_user; /* the part of the remaining sessions that one user may have */
    struct shuf__ready ready;
    uint32_t watched; /* the events of the listening socket that `ready` watches */
    uv_timer_t again; /* accepts again, after a shortage of descriptors */
    uv_prepare_t prepare;
    uv_timer_t closing; /* runs while sockets wait to be closed */
    struct shuf__refusals refusals;
    bool awaits_room;                /* for a refusal */
    uint64_t crowded, crowded_since; /* uv_hrtime() of the last and first lack of room in a row */
    unsigned dropped;                /* connections, in this millisecond */
};

/* Returns 0, or an error number of libuv: the system has no descriptors, no memory or no threads.
 */
int shuf__acceptor_init(struct shuf__acceptor *acceptor, struct shuf__sessions *sessions,
                        const struct shuf__listener *listener);

/* Sets the limits, also that of sockets that wait to be closed (peer_socket.h). A user who is not
 * privileged may have `of_user` of the sessions that the other users leave, and at least one. A
 * session needs a descriptor, and a process (memory/client_process.h) too.
 */
void shuf__acceptor_set_limits(struct shuf__acceptor *acceptor, uint64_t limit,
                               uint64_t descriptors, uint64_t closing, struct shuf__amount of_user);

void shuf__acceptor_start(struct shuf__acceptor *acceptor);

void shuf__acceptor_stop(struct shuf__acceptor *acceptor);

/* Call it after shuf__acceptor_stop(), or if the daemon does not start. */
void shuf__acceptor_close(struct shuf__acceptor *acceptor);

#endif
