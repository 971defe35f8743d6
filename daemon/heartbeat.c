/* SPDX-License-Identifier: MIT
 *
 * See heartbeat.h. A probe is a small computation that tests the device. A busy device needs no
 * probe, because its jobs show that it works. A computation may take longer than the watchdog's
 * interval. But every computation regularly asks whether it is cancelled, and these questions show
 * that the device works. A lane that opens the device for longer than that interval counts as
 * hanging, although other lanes may work.
 */
#include "heartbeat.h"

#include "service_manager.h"

#include <inttypes.h>
#include <stddef.h>

enum {
    /* One tick starts a probe, and the next tick checks it. So two of four ticks send a heartbeat.
     */
    TICKS_PER_INTERVAL = 4,
    PROBE_VALUES = 1024,
};

static struct shuf__heartbeat *heartbeat_of(struct shuf__engine_job *probe)
{
    return (struct shuf__heartbeat *)((char *)probe - offsetof(struct shuf__heartbeat, probe));
}

/* ---- The probe, on a lane's thread ---- */

static shuf_status compute(struct shuf__backend *backend, struct shuf__block *block,
                           uint64_t *fingerprint, struct shuf__error *error)
{
    uint64_t device_ns;
    const struct shuf__computation computation = {
        .request = {.kind = SHUF__PERMUTATION,
                    .dtype = SHUF_U32,
                    .permutation = {.n = PROBE_VALUES,
                                    .rows = 1,
                                    .count = PROBE_VALUES,
                                    .stride = 1,
                                    .algorithm = SHUF_ALGORITHM_PRIMEFOLD}},
    };
    if (shuf__backend_compute(backend, &computation, block, &device_ns, error))
        return error->status;
    return backend->ops->fingerprint(backend, block, sizeof(uint32_t), PROBE_VALUES, 0, fingerprint,
                                     error);
}

static shuf_status check(struct shuf__heartbeat *heartbeat, uint64_t fingerprint)
{
    if (heartbeat->fingerprint == 0)
        heartbeat->fingerprint = fingerprint;
    if (heartbeat->fingerprint == fingerprint)
        return SHUF_OK;
    return shuf__fail(&heartbeat->error, SHUF_DEVICE,
                      "probe: fingerprint %016" PRIx64 ", expected %016" PRIx64
                      "; the device computes wrong values",
                      fingerprint, heartbeat->fingerprint);
}

static void run_probe(struct shuf__engine_job *probe, struct shuf__backend *backend)
{
    struct shuf__heartbeat *heartbeat = heartbeat_of(probe);
    struct shuf__block block;
    uint64_t fingerprint;
    heartbeat->error.status = SHUF_OK;
    if (backend->ops->alloc(backend, backend->ops->own, SHUF__BLOCK_UNIT, &block,
                            &heartbeat->error))
        return;
    if (compute(backend, &block, &fingerprint, &heartbeat->error) == SHUF_OK)
        check(heartbeat, fingerprint);
    backend->ops->free(backend, &block);
}

/* ---- On the loop's thread ---- */

/* A probe without memory is no failure: the device has answered, and so it works. */
static void end_probe(struct shuf__engine_job *probe)
{
    struct shuf__heartbeat *heartbeat = heartbeat_of(probe);
    shuf__engine_report(heartbeat->engine, &heartbeat->error);
}

static void on_tick(uv_timer_t *tick)
{
    struct shuf__heartbeat *heartbeat = tick->data;
    struct shuf__error ignored;
    if (shuf__engines_progressed(heartbeat->engine, heartbeat->interval_ns))
        shuf__service_manager_alive();
    else if (shuf__engine_is_idle(heartbeat->engine))
        shuf__engine_submit(heartbeat->engine, &heartbeat->probe, &ignored);
}

void shuf__heartbeat_init(struct shuf__heartbeat *heartbeat, uv_loop_t *loop)
{
    heartbeat->probe.name = "shufd: probe";
    heartbeat->probe.uid = SHUF__UID_DAEMON;
    heartbeat->probe.run = run_probe;
    heartbeat->probe.done = end_probe;
    heartbeat->tick.data = heartbeat;
    uv_timer_init(loop, &heartbeat->tick);
}

void shuf__heartbeat_start(struct shuf__heartbeat *heartbeat, struct shuf__engine *engine)
{
    const uint64_t interval_ms = shuf__service_manager_watchdog_ms();
    const uint64_t tick_ms = interval_ms / TICKS_PER_INTERVAL;
    heartbeat->engine = engine;
    heartbeat->interval_ns = interval_ms * 1000000;
    if (tick_ms > 0)
        uv_timer_start(&heartbeat->tick, on_tick, tick_ms, tick_ms);
}
