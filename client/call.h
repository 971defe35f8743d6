/* SPDX-License-Identifier: MIT
 *
 * A round trip that survives the loss of its daemon. A result is a pure function of its request,
 * so the call sends the same request to the next daemon and continues at the first byte that is
 * still missing.
 */
#ifndef SHUF__CALL_H
#define SHUF__CALL_H

#include "handle.h"
#include "round_trip.h"

#include <stdbool.h>

/* Leaves the message of a failure in the handle. One public call may run several round trips. The
 * reconnect time limits the sum of their waits for a daemon. */
shuf_status shuf__call_run(shuf *handle, struct shuf__round_trip *trip);

/* Opens the connection. Tries at least once, and until a daemon answers or the reconnect time is
 * over. After a wait in vain it tries only once, until a daemon answers. */
shuf_status shuf__call_await_daemon(shuf *handle);

/* True if a call of the handle has waited in vain for a daemon, and none has answered since. */
bool shuf__call_gave_up(const shuf *handle);

/* Fails with SHUF_NO_DAEMON: the message says that a daemon was lost. */
shuf_status shuf__call_fail_lost(shuf *handle);

/* The most daemons that a call may lose one after another without receiving a new byte. The limit
 * stops a request that crashes every daemon. */
enum { SHUF__LOSSES_MAX = 16 };

/* Fails with SHUF_NO_DAEMON after so many losses. */
shuf_status shuf__call_fail_losses(shuf *handle);

/* Pauses before another attempt, each time longer. The limit is the reconnect time of the handle,
 * or its timeout if that is less. False if this time has passed since the first call, or
 * if a signal has ended the wait: then the handle has this error. */
bool shuf__wait_again(shuf *handle, struct shuf__wait *wait);

#endif
