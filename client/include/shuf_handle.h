/* SPDX-License-Identifier: MIT
 *
 * The type of a handle. Also the events of long calls, for a program that shows progress. Included
 * by shuf.h.
 */
#ifndef SHUF_HANDLE_H
#define SHUF_HANDLE_H

#include "shuf_status.h"

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

#ifdef __cplusplus
}
#endif

#endif
