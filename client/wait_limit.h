/* SPDX-License-Identifier: MIT
 *
 * The limit of a wait on a socket in blocking mode: the socket's own timeout, so a long transfer
 * needs no poll(). If the program has an interrupt function, one system call waits for at most
 * SHUF__ASK_MS. So the function is asked again after a signal that came just before the system
 * call, or that another thread handled.
 */
#ifndef SHUF__WAIT_LIMIT_H
#define SHUF__WAIT_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

enum { SHUF__ASK_MS = 100 };

/* The timeouts of a socket in nanoseconds, as last set. {0}: a new socket, which has none. */
struct shuf__wait_limits {
    uint64_t receive_ns, send_ns;
};

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t shuf__now_ns(void);

/* Limits the next system call with `option`, SO_RCVTIMEO or SO_SNDTIMEO. `end`: of the whole wait;
 * 0: no limit. Returns -1 with errno, which is EAGAIN if the end has come. */
int shuf__limit_wait(struct shuf__wait_limits *limits, int fd, int option, uint64_t end);

/* Call it after a failure with errno. True: repeat the system call, because the wait is not over.
 * False: errno has the reason; EINTR if the interrupt function ends the call. */
bool shuf__may_wait_on(uint64_t end);

#endif
