/* SPDX-License-Identifier: MIT
 *
 * The heartbeat that the service manager's watchdog expects. It stops if the loop, a lane's thread
 * or the device hangs. Then the service manager kills the daemon and starts it again.
 */
#ifndef SHUFD_HEARTBEAT_H
#define SHUFD_HEARTBEAT_H

#include "engine/engines.h"

struct shuf__heartbeat {
    struct shuf__engine *engine;
    uv_timer_t tick;
    uint64_t interval_ns;          /* of the watchdog */
    struct shuf__engine_job probe; /* a small computation, if the device has no other work */
    struct shuf__error error;      /* of the probe */
    uint64_t fingerprint;          /* of the first probe, expected of all others; 0: none yet */
};

/* Call before the loop runs. */
void shuf__heartbeat_init(struct shuf__heartbeat *heartbeat, uv_loop_t *loop);

/* Does nothing if the service manager has no watchdog. If a probe fails, `engine` reports the
 * broken device. */
void shuf__heartbeat_start(struct shuf__heartbeat *heartbeat, struct shuf__engine *engine);

#endif
