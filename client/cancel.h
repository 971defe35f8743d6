/* SPDX-License-Identifier: MIT
 *
 * Lets another thread end the call that waits on a socket. The mutex is needed because the number
 * of a closed socket may belong to another file.
 */
#ifndef SHUF__CANCEL_H
#define SHUF__CANCEL_H

#include <pthread.h>
#include <stdbool.h>

struct shuf__cancel {
    pthread_mutex_t mutex;
    _Atomic bool is_cancelled;
    int fd; /* -1: none */
};

/* All later calls on the handle fail too. */
void shuf__cancel(struct shuf__cancel *cancel);

/* The socket that a cancellation shuts down, also an earlier one. -1: none; the caller may then
 * close the socket. */
void shuf__cancel_set_socket(struct shuf__cancel *cancel, int fd);

#endif
