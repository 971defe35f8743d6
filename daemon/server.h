/* SPDX-License-Identifier: MIT
 *
 * The daemon as a whole: the loop, who is connected, and how it ends.
 */
#ifndef SHUFD_SERVER_H
#define SHUFD_SERVER_H

#include "cache/cache.h"
#include "cache/lease.h"
#include "config/config.h"
#include "config/log.h"
#include "engine/engine.h"
#include "message.h"
#include "net/listener.h"
#include "net/spin.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#define SHUF__DAEMON "shufd " SHUF_VERSION_TEXT

enum { SHUF__SIGNALS = 3 }; /* that it ends on */

struct shuf__session;

struct shuf__server {
    const struct shuf__config *config;
    const struct shuf__log *log;
    uv_loop_t loop;
    uv_poll_t accept;
    uv_timer_t accept_again; /* after running out of descriptors */
    uv_timer_t deadline;     /* of the drain, then of the end */
    uv_signal_t signals[SHUF__SIGNALS];
    struct shuf__listener listener;
    struct shuf__engine *engine;
    struct shuf__allocations allocations;
    struct shuf__cache results;
    struct shuf__leases leases;
    struct shuf__spin spin;
    LIST_HEAD(, shuf__client_process) detached;
    LIST_HEAD(, shuf__session) sessions;
    TAILQ_HEAD(, shuf__session) replying;
    uv_prepare_t send; /* their replies, before the loop sleeps */
    uint64_t clients, clients_limit, served, start_ms;
    bool draining, forced, ended;
    int exit_code;
    char cause[SHUF__ERROR_TEXT]; /* where exit_code is no success */
    struct shuf__arena arena;     /* of the request being handled */
};

/* Serves until SIGTERM, SIGINT or SIGHUP; the exit code (sysexits.h). */
int shuf__server_run(const struct shuf__config *config, const struct shuf__log *log);

/* ---- For sessions ---- */

/* A session is over: its place is free. */
void shuf__server_forget(struct shuf__server *server, struct shuf__session *session);

/* The device failed: nothing that it holds can be trusted, so the daemon ends and
 * its service manager starts it anew. */
void shuf__server_device_failed(struct shuf__server *server, const struct shuf__error *error);

#endif
