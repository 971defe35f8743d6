/* SPDX-License-Identifier: MIT
 *
 * Looks every 2 seconds whether the path of the socket still names it. If somebody has removed or
 * replaced the file, no client finds the daemon. The daemon then makes a new socket. It cannot do
 * so for a socket of the service manager, or if the path is in use: then it tells the reason to the
 * log and to the service manager.
 */
#ifndef SHUFD_SOCKET_WATCH_H
#define SHUFD_SOCKET_WATCH_H

#include "backend.h"
#include "config/config.h"
#include "net/acceptor.h"
#include "net/listener.h"

struct shuf__socket_watch {
    uv_timer_t tick;
    struct shuf__listener *listener;
    struct shuf__acceptor *acceptor;
    const struct shuf__config *config;
    const struct shuf__log *log;
    void (*changed)(struct shuf__socket_watch *watch); /* called when `fault` has changed */
    char fault[SHUF__ERROR_TEXT];                      /* why no client finds the daemon, or "" */
};

/* Call before the loop runs. */
void shuf__socket_watch_init(struct shuf__socket_watch *watch, uv_loop_t *loop);

/* The other fields must be set. */
void shuf__socket_watch_start(struct shuf__socket_watch *watch);

#endif
