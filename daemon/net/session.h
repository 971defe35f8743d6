/* SPDX-License-Identifier: MIT
 *
 * One connection: it turns bytes into frames and requests, and sends replies and payloads. It
 * handles one request at a time and reads nothing meanwhile: a client that does not read its
 * replies cannot submit more work.
 */
#ifndef SHUFD_SESSION_H
#define SHUFD_SESSION_H

#include "cache/lease.h"
#include "config/log.h"
#include "inbox.h"
#include "message.h"
#include "outbox.h"
#include "spin.h"
#include "stats/stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

struct shuf__session;

/* All sessions, and the parts of the daemon that they use. */
struct shuf__sessions {
    uv_loop_t *loop;
    const struct shuf__log *log;
    uint64_t frame_timeout_ms;
    struct shuf__engine *engine;
    struct shuf__client_processes *processes;
    struct shuf__leases *leases;
    struct shuf__spin *spin;
    struct shuf__stats *stats;
    uint64_t slow_ns; /* a request that takes longer is logged; 0: none */
    LIST_HEAD(, shuf__session) list;
    TAILQ_HEAD(, shuf__session) replying;
    uint64_t count;
    bool draining;            /* the daemon ends: no session waits for its client */
    struct shuf__arena arena; /* of the request that is handled */
    void (*handle)(struct shuf__session *session, const Shuf__Request *request);
    void (*closed)(struct shuf__sessions *sessions); /* after a session has left the list */
};

/* The work of a request, for which its session waits; embedded in the work. */
struct shuf__pending {
    void (*cancel)(struct shuf__pending *pending); /* the session closes before the reply */
};

enum shuf__session_state {
    SHUF__SESSION_READING,     /* the next request */
    SHUF__SESSION_WORKING,     /* waits for its pending work */
    SHUF__SESSION_SENDING,     /* the reply and its payload */
    SHUF__SESSION_HALF_CLOSED, /* the last reply is sent; waits for the client to close */
    SHUF__SESSION_CLOSED,      /* its memory stays while `holds` > 0 */
};

struct shuf__session {
    struct shuf__sessions *all;
    LIST_ENTRY(shuf__session) link;
    struct shuf__client client;
    struct shuf__lease_list leases;
    int fd;
    uv_poll_t poll;
    uv_timer_t deadline; /* of a frame, or of the client's close */
    int watched;         /* the events that `poll` watches */
    unsigned holds;      /* handles not yet closed, fetches not yet done, functions that run */
    enum shuf__session_state state;
    bool greeted;
    bool closes_after_reply;
    uint64_t id;                   /* of the request that is handled */
    uint64_t number;               /* of the connection; never used again */
    struct shuf__request_record record; /* of the request that is handled */
    struct shuf__user_count *user;
    struct shuf__pending *pending; /* NULL: none */

    bool is_replying; /* in the list of those that reply next */
    TAILQ_ENTRY(shuf__session) reply_link;
    struct shuf__outbox outbox;
    struct shuf__inbox inbox;
};

/* Takes over the accepted, non-blocking socket, also on failure. */
void shuf__session_open(struct shuf__sessions *sessions, int fd);

/* Ends it now: cancels its pending work and sends nothing more. */
void shuf__session_close(struct shuf__session *session);

/* Sends the replies made since the last call; to be called before the loop sleeps. */
void shuf__sessions_send(struct shuf__sessions *sessions);

/* The daemon drains: closes the session, after its reply if it works on one. */
void shuf__session_drain(struct shuf__session *session);

/* ---- For request handlers ---- */

/* Sends `reply` under the request's id, with `descriptor`, which it takes over (-1: none), and then
 * the values of `entry`, a reference to which it takes over (NULL: none). */
void shuf__session_reply(struct shuf__session *session, Shuf__Reply *reply,
                         struct shuf__cache_entry *entry, int descriptor);

/* Sends `reply`, and then `size` bytes of `text`, which it frees. */
void shuf__session_reply_text(struct shuf__session *session, Shuf__Reply *reply, char *text,
                              size_t size);

/* Sends a failure. */
void shuf__session_fail(struct shuf__session *session, const struct shuf__error *error);

/* The same, and closes the connection when it is sent; `reply` may have a body. */
void shuf__session_refuse(struct shuf__session *session, Shuf__Reply *reply,
                          const struct shuf__error *error);

/* The request waits for the pending work. */
void shuf__session_wait(struct shuf__session *session, struct shuf__pending *pending);

/* The pending work is over: the caller replies next, and then calls shuf__session_advance(), which
 * handles the next request. `started_ns`: when its job left the queue, or 0. */
void shuf__session_end_pending(struct shuf__session *session, uint64_t started_ns);
void shuf__session_advance(struct shuf__session *session);

#endif
