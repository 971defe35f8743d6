/* SPDX-License-Identifier: MIT
 *
 * See http_connections.h.
 */
#include "http_connections.h"

#include <stdlib.h>
#include <sys/socket.h>

enum { MANY = 16, LIFE_MS = 5000 };

struct shuf__http_connection {
    int fd;
    uint64_t since_ms; /* time of its start, by uv_hrtime() */
    bool has_asked;
    TAILQ_ENTRY(shuf__http_connection) link;
};

static uint64_t now_ms(void)
{
    return uv_hrtime() / 1000000;
}

bool shuf__http_connections_init(struct shuf__http_connections *all)
{
    if (uv_mutex_init(&all->lock) != 0)
        return false;
    TAILQ_INIT(&all->list);
    return true;
}

void shuf__http_connections_destroy(struct shuf__http_connections *all)
{
    uv_mutex_destroy(&all->lock);
}

static void end_oldest(struct shuf__http_connections *all)
{
    struct shuf__http_connection *connection;
    TAILQ_FOREACH (connection, &all->list, link)
        if (!connection->has_asked) {
            connection->has_asked = true; /* so it is not ended a second time */
            shutdown(connection->fd, SHUT_RDWR);
            return;
        }
}

struct shuf__http_connection *shuf__http_connections_add(struct shuf__http_connections *all, int fd)
{
    struct shuf__http_connection *connection = calloc(1, sizeof *connection);
    uv_mutex_lock(&all->lock);
    if (connection) {
        connection->fd = fd;
        connection->since_ms = now_ms();
        if (++all->count > MANY)
            end_oldest(all);
        TAILQ_INSERT_TAIL(&all->list, connection, link);
    }
    uv_mutex_unlock(&all->lock);
    return connection;
}

void shuf__http_connections_remove(struct shuf__http_connections *all,
                                   struct shuf__http_connection *connection)
{
    if (!connection)
        return;
    uv_mutex_lock(&all->lock);
    all->count--;
    TAILQ_REMOVE(&all->list, connection, link);
    uv_mutex_unlock(&all->lock);
    free(connection);
}

void shuf__http_connections_asked(struct shuf__http_connections *all,
                                  struct shuf__http_connection *connection)
{
    if (!connection)
        return;
    uv_mutex_lock(&all->lock);
    connection->has_asked = true;
    uv_mutex_unlock(&all->lock);
}

bool shuf__http_connections_sweep(struct shuf__http_connections *all)
{
    const struct shuf__http_connection *connection;
    const uint64_t now = now_ms();
    uv_mutex_lock(&all->lock);
    TAILQ_FOREACH (connection, &all->list, link)
        if (now - connection->since_ms >= LIFE_MS)
            shutdown(connection->fd, SHUT_RDWR);
    const bool exist = !TAILQ_EMPTY(&all->list);
    uv_mutex_unlock(&all->lock);
    return exist;
}

bool shuf__http_connections_exist(struct shuf__http_connections *all)
{
    uv_mutex_lock(&all->lock);
    const bool exist = !TAILQ_EMPTY(&all->list);
    uv_mutex_unlock(&all->lock);
    return exist;
}
