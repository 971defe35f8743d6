/* SPDX-License-Identifier: MIT
 *
 * The structs of sessions, and the events of a request that the metrics, the log and the probes
 * record. session.h has the functions of sessions.
 */
#ifndef SHUFD_SESSION_STATE_H
#define SHUFD_SESSION_STATE_H

#include "cache/lease.h"
#include "config/log.h"
#include "inbox.h"
#include "message.h"
#include "outbox.h"
#include "ready.h"
#include "stats/stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

struct shuf__session;

/* Keeps the loop awake for a short time after each reply. A client in a loop sends its next request
 * at once, and waking a sleeping processor takes longer than a small request. */
struct shuf__spin {
    uv_idle_t idle; /* while it is active the loop does not sleep */
    uint64_t ns, until_ns;
};

/* All sessions, and the parts of the daemon that they use. */
struct shuf__sessions {
    uv_loop_t *loop;
    const struct shuf__log *log;
    uint64_t frame_timeout_ms;
    struct shuf__engine *engine;
    struct shuf__process_watches *process_watches;
    struct shuf__leases *leases;
    const struct shuf__allocations *allocations;
    struct shuf__accounts *accounts;
    struct shuf__spin spin;
    struct shuf__stats *stats;
    uint64_t slow_ns; /* logs a request that takes longer; 0: logs none */
    LIST_HEAD(, shuf__session) list;
    struct shuf__ready_queue ready;
    uv_idle_t more;           /* active while sessions are ready, so that the loop does not sleep */
    uint64_t count, limit;    /* sessions now, and the most at a time */
    uint64_t configured;      /* the key `clients`; `limit` is lower if files are few */
    bool draining;            /* the daemon ends, so a half-closed session closes at once */
    struct shuf__arena arena; /* memory of the request that is handled */
    void (*handle)(struct shuf__session *session, const Shuf__Request *request);
    void (*closed)(struct shuf__sessions *sessions); /* called when a session has left the list */
};

/* The work for which a session waits before it replies. The struct of the work embeds it. */
struct shuf__pending {
    void (*cancel)(
        struct shuf__pending *pending); /* called if the session closes before the reply */
    void (*reply)(struct shuf__pending *pending); /* see shuf__session_reply_in_turn() */
    bool is_over;                                 /* the next turn of the session calls `reply` */
};

enum shuf__session_state {
    SHUF__SESSION_READING,     /* reads the next request */
    SHUF__SESSION_WORKING,     /* waits for its pending work */
    SHUF__SESSION_SENDING,     /* sends the reply and its payload */
    SHUF__SESSION_ENDING,      /* has sent the last reply; shuts down in its next turn */
    SHUF__SESSION_HALF_CLOSED, /* has sent the last reply; waits until the client closes */
    SHUF__SESSION_UNREAD,      /* has ended, but the client has not read all that was sent */
    SHUF__SESSION_CLOSED,      /* is freed when `refs` is 0 */
};

struct shuf__session {
    struct shuf__sessions *all;
    LIST_ENTRY(shuf__session) link;
    struct shuf__client client;
    struct shuf__lease_list leases;
    int fd;
    uv_timer_t deadline; /* for the rest of a frame, for the client to close, or to look again
                            whether it has read */
    uint32_t watched;    /* the events of the socket that `ready` watches */
    unsigned refs;       /* number of open handles, running fetches, and functions that use it */
    enum shuf__session_state state;
    bool greeted;
    bool closes_after_reply;
    bool is_lost;              /* the next turn of the session closes it */
    bool is_late;              /* the next turn refuses the frame, unless its rest has come */
    uint64_t counted_since_ns; /* when the drain began to count the bytes that the client reads; 0:
                               it does not */
    uint64_t sent_before;      /* bytes of the reply that were sent then */
    uint64_t id;               /* id of the request that is handled */
    uint64_t number;           /* number of the connection; no other one gets it */
    struct shuf__request_record record; /* facts about the request that is handled */
    uint64_t shortages;                 /* number of shortages that the client knows about */
    struct shuf__user_total *user;
    struct shuf__pending *pending; /* NULL: none */

    struct shuf__ready ready;
    struct shuf__outbox outbox;
    struct shuf__inbox inbox;
};

/* ---- The events of a request (request_events.c) ---- */

/* Call when the frame of a request is complete. `request` NULL: the frame cannot be parsed. */
void shuf__request_received(struct shuf__session *session, const Shuf__Request *request);

/* Call when the reply to the request is made. */
void shuf__request_replied(struct shuf__session *session, const Shuf__Reply *reply);

/* Logs a reply that is an error. `text` is the message of the error. */
void shuf__request_failed(const struct shuf__session *session, shuf_status status,
                          const char *text);

/* Call when the last byte of the reply is in the socket. The loop then stays awake for the next
 * request. */
void shuf__request_sent(struct shuf__session *session);

/* Call when the session closes before the last byte of the reply is in the socket. */
void shuf__request_cancelled(struct shuf__session *session);

#endif
