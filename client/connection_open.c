/* SPDX-License-Identifier: MIT
 *
 * Opens a connection, if needed by several attempts. A process that gets no processor for a second
 * sends its Hello too late. A new socket may belong to its group a moment later: a service manager
 * first makes it.
 */
#include "connection.h"

#include "denied.h"

#include <time.h>

enum { MOST_LATE = 4 }; /* connections in a row whose Hello comes too late */
static const uint64_t most_denied_ns =
    2000000000; /* also if somebody changes the socket again and again */
static const struct timespec pause = {.tv_nsec = 20000000};

/* When the attempts at a new socket end. */
static uint64_t end_of_denied(const struct shuf__connection *connection)
{
    const uint64_t timeout = connection->timeout_ns;
    return shuf__now_ns() + (timeout > 0 && timeout < most_denied_ns ? timeout : most_denied_ns);
}

static bool may_open_soon(const struct shuf__connection *connection, shuf_status status, int late,
                          uint64_t end)
{
    if (connection->cancel.is_cancelled)
        return false;
    if (connection->came_late)
        return late < MOST_LATE;
    return status == SHUF_DENIED && connection->is_refused && shuf__now_ns() < end &&
           shuf__is_new_socket(connection->address.sun_path);
}

shuf_status shuf__connection_open(struct shuf__connection *connection, struct shuf__error *error)
{
    const uint64_t end = end_of_denied(connection);
    for (int late = 0;;) {
        const shuf_status status = shuf__connection_open_once(connection, error);
        late += connection->came_late;
        if (!may_open_soon(connection, status, late, end))
            return status;
        *error = (struct shuf__error){0};
        nanosleep(&pause, NULL);
    }
}
