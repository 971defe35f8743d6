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
 * the result; both are 0 in a call that copies no result. A call that moves records itself counts
 * the bytes of the permutation. A call with the handle fails with SHUF_INVALID inside the
 * observer. */
typedef void (*shuf_observer)(void *context, shuf_event event, uint64_t done, uint64_t all);

/* Reports the events of later calls with this handle to `observer`; NULL ends the reports. */
SHUF_API shuf_status shuf_set_observer(shuf *handle, shuf_observer observer, void *context);

/* Called in the thread of a call that waits: after a signal handler without SA_RESTART has
 * interrupted the wait for the daemon, and before each further attempt to reach a daemon. Return
 * true if the call has to end, for example because the handler has set a flag. The call then fails
 * with SHUF_CANCELLED and closes its connection, as after a timeout (shuf_set_timeout()). The next
 * call connects again. Calls with the handle are not allowed inside the function. */
typedef bool (*shuf_interrupt)(void);

/* Sets the function for all handles of the process, also for shuf_connect(). NULL, the default: a
 * signal ends no call. Thread-safe. */
SHUF_API void shuf_set_interrupt(shuf_interrupt interrupt);

#ifdef __cplusplus
}
#endif

#endif
