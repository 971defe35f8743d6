/* SPDX-License-Identifier: MIT
 *
 * Refuses connections with an error: if the daemon cannot start, and, on a thread of its own, if
 * there are too many clients. To send the reply and to close the socket, the kernel wakes
 * the client and frees the bytes that it has sent, which can take 100 microseconds. On the loop's
 * thread a flood of connections would delay the requests of others by this time.
 *
 * The thread refuses at most one connection in each SHUF__REFUSAL_NS. Otherwise such a flood would
 * take two processors, one of them for the loop, which accepts the connections. A pause before each
 * one delays other threads of the same processor less than a longer pause before several. With the
 * kernel's timers a pause takes about 0.2 ms, so it refuses about 5000 in a second.
 */
#ifndef SHUFD_REFUSALS_H
#define SHUFD_REFUSALS_H

#include "error.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

enum { SHUF__REFUSALS_MOST = 16, SHUF__REFUSAL_NS = 125000 };

struct shuf__refusals {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct {
        int fd;
        struct shuf__error error;
    } refusal[SHUF__REFUSALS_MOST];
    size_t first, count; /* `count` includes the one that the thread works on */
    bool is_started, is_stopping, is_full;
    uv_async_t room;
    void (*has_room)(struct shuf__refusals *refusals); /* on the loop's thread */
};

/* Starts the thread. Returns 0, or an error number of libuv. */
int shuf__refusals_start(struct shuf__refusals *refusals, uv_loop_t *loop);

/* Whether the thread has too much to do. If so, it calls has_room() later. */
bool shuf__refusals_are_full(struct shuf__refusals *refusals);

/* Sends the error to the client, and closes the connection. Does not wait for the client. The
 * thread must have room. */
void shuf__refusals_add(struct shuf__refusals *refusals, int fd, const struct shuf__error *error);

/* Refuses the connections that wait, and ends the thread and the handle of libuv. Does nothing if
 * the thread has not started. */
void shuf__refusals_stop(struct shuf__refusals *refusals);

/* Refuses all connections in the backlog of a listening, non-blocking socket, with the status
 * DEVICE and the cause why the daemon cannot start. */
void shuf__refuse_backlog(int listening, const struct shuf__error *cause);

/* The same for the socket that the service manager has passed, if there is one. Call it instead of
 * shuf__listener_open(). */
void shuf__refuse_passed(const struct shuf__error *cause);

#endif
