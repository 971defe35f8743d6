/* SPDX-License-Identifier: MIT
 *
 * The object behind the public `shuf *`. The modules of its members, such as connection.c, do not
 * include this header. The public calls (api_*.c) and the modules that they call do.
 */
#ifndef SHUF__HANDLE_H
#define SHUF__HANDLE_H

#include "connection.h"
#include "mapping.h"
#include "shuf.h"

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>

struct shuf__held_lease;
LIST_HEAD(shuf__held_leases, shuf__held_lease);

/* A wait for something that may come: {0} at its start. */
struct shuf__wait {
    uint64_t give_up_ns, pause_ms;
};

struct shuf {
    _Atomic(const void *) user; /* the thread whose call uses the handle; NULL: none */
    unsigned depth;             /* of nested calls: a public call may make others */
    pid_t process;              /* the process that connected; no other may use the socket */
    unsigned reconnect_ms;
    bool reported_loss; /* the observer has SHUF_EVENT_LOST, and gets SHUF_EVENT_FOUND next */
    bool gave_up;       /* a call waited in vain for a daemon, so later ones try once */
    /* Of the public call that runs: */
    bool lost_daemon;              /* it has not reached another daemon since */
    struct shuf__wait next_daemon; /* begins with the first attempt after a loss */
    shuf_observer observer;        /* may be NULL */
    void *observer_context;
    bool in_callback; /* a sink, an observer or a visitor runs: it must not use the handle */
    uint64_t copied;  /* bytes of a result, in its complete parts */
    uint64_t copying; /* bytes of this result; 0: no result comes in parts */
    struct shuf__held_leases leases;
    struct shuf__mappings mappings;
    struct shuf__error error; /* of the last call; its text is empty after a success */
    struct shuf__connection connection;
};

/* Whether this process has opened the connection. False in its child after fork(). */
bool shuf__handle_is_ours(const shuf *handle);

/* Call these before and after a callback of the caller. They save and restore the handle's error,
 * because calls inside the callback may change it. */
struct shuf__error shuf__handle_begin_callback(shuf *handle);
void shuf__handle_end_callback(shuf *handle, const struct shuf__error *before);

/* Reports an event to the observer, if there is one. */
void shuf__handle_observe(shuf *handle, shuf_event event, uint64_t done, uint64_t all);

/* Fails with SHUF_INVALID, and the message in the handle, if another process connected the
 * handle. */
shuf_status shuf__handle_check(shuf *handle);

#endif
