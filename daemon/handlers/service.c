/* SPDX-License-Identifier: MIT
 *
 * See service.h.
 */
#include "service.h"

#include "dispatch.h"
#include "number.h"

#include <stdlib.h>

static void init_sessions(struct shuf__service *service)
{
    struct shuf__sessions *sessions = &service->sessions;
    sessions->loop = service->loop;
    sessions->log = service->log;
    sessions->frame_timeout_ms = service->config->frame_timeout_ms;
    sessions->processes = &service->processes;
    sessions->leases = &service->leases;
    sessions->spin = &service->spin;
    sessions->handle = shuf__dispatch;
    LIST_INIT(&sessions->list);
    TAILQ_INIT(&sessions->replying);
}

/* The daemons of the GPUs of one machine share its host memory. */
static uint64_t count_sharers(const struct shuf__log *log)
{
    struct shuf__error error;
    uint64_t count = 1;
    const char *text = getenv("SHUFD_INSTANCES");
    if (text && (shuf__number_parse("SHUFD_INSTANCES", text, &count, &error) || count == 0)) {
        shuf__log(log, SHUF__LOG_WARNING,
                  "SHUFD_INSTANCES %s: expected the number of daemons on this machine; using 1",
                  text);
        count = 1;
    }
    return count;
}

void shuf__service_init(struct shuf__service *service, uv_loop_t *loop,
                        const struct shuf__config *config, const struct shuf__log *log)
{
    service->config = config;
    service->log = log;
    service->loop = loop;
    service->allocations.budgets[SHUF__SIDE_HOST].configured = config->host_memory;
    service->allocations.budgets[SHUF__SIDE_DEVICE].configured = config->device_memory;
    service->allocations.budgets[SHUF__SIDE_HOST].sharers = count_sharers(log);
    service->allocations.budgets[SHUF__SIDE_DEVICE].sharers = 1;
    shuf__allocations_init(&service->allocations, loop);
    service->pool.allocations = &service->allocations;
    service->pool.keep_ms = config->cache_ms;
    shuf__pool_init(&service->pool, loop);
    shuf__cache_init(&service->cache, &service->pool);
    shuf__client_processes_init(&service->processes, loop, &service->allocations);
    shuf__leases_init(&service->leases, loop, config->leases);
    shuf__spin_init(&service->spin, loop, config->spin_us);
    init_sessions(service);
}

void shuf__service_set_engine(struct shuf__service *service, struct shuf__engine *engine)
{
    service->engine = engine;
    service->allocations.engine = engine;
    service->cache.engine = engine;
    service->sessions.engine = engine;
}
