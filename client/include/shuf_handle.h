/* SPDX-License-Identifier: MIT
 *
 * The type of a handle. Also the events of long calls, for a program that shows progress, and the
 * signals that arrive during calls. Included by shuf.h.
 */
#ifndef SHUF_HANDLE_H
#define SHUF_HANDLE_H

#include "shuf_status.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A connection to one daemon. */
typedef struct shuf shuf;

typedef enum shuf_event {
    SHUF_EVENT_LOST = 1, /* the call lost its daemon, and tries to reach the next one */
    SHUF_EVENT_FOUND,    /* after a loss: a call has reached a daemon again */
    SHUF_EVENT_PART,     /* another 64 MiB, a part or all of a result have come */
} shuf_event;

/* Called by the thread of the call, during the call. This process has `done` of the `all` bytes of
 * the result. A summary that comes in parts counts the bytes that the daemon has summarized; both
 * numbers are 0 in other calls that copy no result. A call that moves records itself counts the
 * bytes of the permutation. A call with the handle fails with SHUF_INVALID inside the observer. */
typedef void (*shuf_observer)(void *context, shuf_event event, uint64_t done, uint64_t all);

/* Reports the events of later calls with this handle to `observer`; NULL ends the reports. */
SHUF_API shuf_status shuf_set_observer(shuf *handle, shuf_observer observer, void *context);

/* Called in the thread of a call, so that a signal can end the call. Return true if the call has to
 * end, for example because the handler of the signal has set a flag. libshuf calls it
 * - before each request to the daemon, so at the start of nearly every call;
 * - while the call waits for the daemon: after a signal handler without SA_RESTART has interrupted
 *   the wait, each 100 ms, and before each further attempt to reach a daemon;
 * - while the call copies: after each chunk of a sink, each MiB from the socket, and each 64 MiB
 *   from or to mapped host memory.
 * So the call ends also if the signal came before the wait, if the handler has SA_RESTART, or if
 * another thread handled the signal. It does not end during a copy from or to device memory.
 *
 * The call then fails with SHUF_CANCELLED. If its request has not been sent, the connection stays.
 * Otherwise the connection closes, as after a timeout (shuf_set_timeout()), and the next call
 * connects again. Later calls fail too while the function returns true. shuf_lease_release() asks
 * the function only while it waits. shuf_close() always frees the handle.
 *
 * errno is EINTR if a signal has interrupted the wait, else 0. So a function that takes long can
 * return false most of the time when errno is 0. Calls with the handle are not allowed inside the
 * function. */
typedef bool (*shuf_interrupt)(void);

/* Sets the function for all handles of the process, also for shuf_connect(). NULL, the default: a
 * signal ends no call. Thread-safe. */
SHUF_API void shuf_set_interrupt(shuf_interrupt interrupt);

#ifdef __cplusplus
}
#endif

#endif
