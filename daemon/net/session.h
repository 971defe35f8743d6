/* SPDX-License-Identifier: MIT
 *
 * One connection: bytes to frames to requests, replies and payload back. One
 * request is worked on at a time, and nothing is read meanwhile: a client that
 * does not take its answers is not asked for more work.
 */
#ifndef SHUFD_SESSION_H
#define SHUFD_SESSION_H

#include "cache/lease.h"
#include "message.h"
#include "payload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <uv.h>

struct shuf__ask;
struct shuf__client_process;
struct shuf__lookup;
struct shuf__server;
struct shuf__writing;

enum { SHUF__REPLY_MAX = SHUF__FRAME_HEADER + SHUF__FRAME_MAX };

enum shuf__session_state {
    SHUF__SESSION_READING,     /* for the next request */
    SHUF__SESSION_WORKING,     /* it waits for its result */
    SHUF__SESSION_SENDING,     /* the reply and its payload */
    SHUF__SESSION_HALF_CLOSED, /* the last word is sent; the peer may read it */
    SHUF__SESSION_CLOSED,      /* memory is kept while `holds` > 0 */
};

struct shuf__session {
    struct shuf__server *server;
    LIST_ENTRY(shuf__session) link;
    struct ucred peer;
    int fd;
    uv_poll_t poll;
    uv_timer_t deadline; /* of a frame, or of lingering */
    int watched;         /* what poll is asked to watch */
    unsigned holds;      /* handles not yet closed, fetches not yet done */
    enum shuf__session_state state;
    bool greeted;
    bool same_namespace;           /* as the daemon's, of PIDs; once that is known */
    bool last;                     /* the reply on its way is the last */
    uint64_t id;                   /* of the request at hand */
    struct shuf__ask *ask;         /* what waits for its result, or NULL */
    struct shuf__lookup *lookup;   /* an Index that the engine is at, or NULL */
    struct shuf__writing *writing; /* a Write, or NULL */
    LIST_HEAD(, shuf__lease) leases;
    uint64_t leased, prefetches;         /* of these */
    struct shuf__client_process *holder; /* NULL until it is given a block */
    int descriptor;                      /* goes with the reply's first byte; -1: none */

    size_t begin, end; /* received and not yet handled */
    bool replies;      /* among the server's, whose replies are sent next */
    TAILQ_ENTRY(shuf__session) reply_link;
    size_t reply_sent, reply_size;
    struct shuf__payload payload;
    uint8_t reply[SHUF__REPLY_MAX];
    uint8_t received[SHUF__FRAME_HEADER + SHUF__FRAME_MAX];
};

/* Takes the accepted, non-blocking socket over, also when it fails. */
void shuf__session_open(struct shuf__server *server, int fd);

/* Ends it now: work is cancelled, nothing more is sent. */
void shuf__session_close(struct shuf__session *session);

/* Sends the replies that have been made since the last time; before the loop sleeps. */
void shuf__sessions_send(struct shuf__server *server);

/* The daemon drains: closes it unless an answer is under way, which will be its last. */
void shuf__session_drain(struct shuf__session *session);

/* ---- For request handlers ---- */

/* Sends `reply` under the request's id; with it `descriptor`, which it takes over (-1: none), and
 * then the values of `result`, a reference to which it takes over (NULL: none). */
void shuf__session_reply(struct shuf__session *session, Shuf__Reply *reply,
                         struct shuf__cache_entry *result, int descriptor);

/* Sends a failure. */
void shuf__session_fail(struct shuf__session *session, const struct shuf__error *error);

/* The same, and closes the connection when it is sent; `reply` may carry a body. */
void shuf__session_refuse(struct shuf__session *session, Shuf__Reply *reply,
                          const struct shuf__error *error);

/* The request waits. When the client leaves first, shuf__ask_drop() (handlers.h) is called. */
void shuf__session_work(struct shuf__session *session, struct shuf__ask *ask);

/* What it waited for has come: the reply is made next, and then shuf__session_continue() goes on
 * to the next request. */
void shuf__session_resume(struct shuf__session *session);
void shuf__session_continue(struct shuf__session *session);

#endif
