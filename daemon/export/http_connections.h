/* SPDX-License-Identifier: MIT
 *
 * The connections of libmicrohttpd, oldest first. One lasts at most five seconds. If many are open,
 * a new one replaces the oldest one without a request. To end a connection, these functions shut
 * its socket down; libmicrohttpd closes it when it reads the end of the stream. All functions are
 * safe to call from every thread.
 */
#ifndef SHUFD_HTTP_CONNECTIONS_H
#define SHUFD_HTTP_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

struct shuf__http_connection;

struct shuf__http_connections {
    uv_mutex_t lock; /* guards all fields */
    TAILQ_HEAD(, shuf__http_connection) list;
    unsigned count;
};

/* Returns false if the system has no memory. */
bool shuf__http_connections_init(struct shuf__http_connections *all);
void shuf__http_connections_destroy(struct shuf__http_connections *all);

/* Returns NULL if the system has no memory. Then the connection has no limit of time. */
struct shuf__http_connection *shuf__http_connections_add(struct shuf__http_connections *all,
                                                         int fd);

/* NULL has no effect. */
void shuf__http_connections_remove(struct shuf__http_connections *all,
                                   struct shuf__http_connection *connection);

/* Call when a request is complete: a new connection does not replace this one. NULL has no effect.
 */
void shuf__http_connections_asked(struct shuf__http_connections *all,
                                  struct shuf__http_connection *connection);

/* Ends the connections that are too old. Returns false if there are no connections. */
bool shuf__http_connections_sweep(struct shuf__http_connections *all);

bool shuf__http_connections_exist(struct shuf__http_connections *all);

#endif
