/* SPDX-License-Identifier: MIT
 *
 * The heartbeat that the service manager's watchdog expects. It stops if the loop, the engine's
 * thread or the device stops, so a daemon that hangs is killed and started again.
 */
#ifndef SHUFD_HEARTBEAT_H
#define SHUFD_HEARTBEAT_H

#include "engine/engine.h"

struct shuf__heartbeat {
    struct shuf__engine *engine;
    uv_timer_t tick;
    struct shuf__engine_job probe; /* a small computation, while the device has no other work */
    struct shuf__error error;      /* of the probe */
    uint64_t fingerprint;          /* of every probe: the first one's; 0: none yet */
};

/* Before the loop runs. */
void shuf__heartbeat_init(struct shuf__heartbeat *heartbeat, uv_loop_t *loop);

/* Does nothing if no watchdog runs. `engine` reports a probe that finds a broken device. */
void shuf__heartbeat_start(struct shuf__heartbeat *heartbeat, struct shuf__engine *engine);

#endif
