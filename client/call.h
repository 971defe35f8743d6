/* SPDX-License-Identifier: MIT
 *
 * An exchange that survives the loss of its daemon. A result is a pure function of its request,
 * so the call sends the same request to the next daemon and continues at the first byte that is
 * still missing.
 */
#ifndef SHUF__CALL_H
#define SHUF__CALL_H

#include "exchange.h"
#include "handle.h"

/* Leaves the message of a failure in the handle. */
shuf_status shuf__call_run(shuf *handle, struct shuf__exchange *exchange);

/* A wait for something that may come: {0} at its start. */
struct shuf__wait {
    uint64_t give_up_ns, pause_ms;
};

/* Pauses before another attempt, each time longer. False where the reconnect time of the handle, or
 * its timeout if that is less, is over since the first call. */
bool shuf__wait_again(const shuf *handle, struct shuf__wait *wait);

#endif
