/* SPDX-License-Identifier: MIT
 *
 * Refuses connections with an error. Used if there are too many clients, and if the daemon cannot
 * start.
 */
#ifndef SHUFD_REFUSE_H
#define SHUFD_REFUSE_H

#include "error.h"

/* Sends the error to the client, and closes the connection. Does not wait for the client. */
void shuf__refuse_connection(int fd, const struct shuf__error *error);

/* Refuses all connections in the backlog of a listening, non-blocking socket, with the status
 * DEVICE and the cause why the daemon cannot start. */
void shuf__refuse_backlog(int listening, const struct shuf__error *cause);

/* The same for the socket that the service manager has passed, if there is one. Call it instead of
 * shuf__listener_open(). */
void shuf__refuse_passed(const struct shuf__error *cause);

#endif
