/* SPDX-License-Identifier: MIT
 *
 * See service.h.
 */
#include "service.h"

#include "dispatch.h"

static void init_sessions(struct shuf__service *service)
{
    struct shuf__sessions *sessions = &service->sessions;
    sessions->loop = service->loop;
    sessions->log = service->log;
    sessions->processes = &service->processes;
    sessions->leases = &service->leases;
    sessions->spin = &service->spin;
    sessions->handle = shuf__dispatch;
    LIST_INIT(&sessions->list);
    TAILQ_INIT(&sessions->replying);
}

void shuf__service_init(struct shuf__service *service, uv_loop_t *loop,
                        const struct shuf__config *config, const struct shuf__log *log)
{
    service->config = config;
    service->log = log;
    service->loop = loop;
    shuf__allocations_init(&service->allocations, loop);
    service->pool.allocations = &service->allocations;
    shuf__pool_init(&service->pool, loop);
    shuf__cache_init(&service->cache, &service->pool);
    shuf__client_processes_init(&service->processes, loop, &service->allocations);
    shuf__leases_init(&service->leases, loop);
    shuf__spin_init(&service->spin, loop);
    init_sessions(service);
    shuf__service_configure(service);
}

void shuf__service_configure(struct shuf__service *service)
{
    const struct shuf__config *config = service->config;
    service->allocations.budgets[SHUF__SIDE_HOST].configured = config->host_memory;
    service->allocations.budgets[SHUF__SIDE_DEVICE].configured = config->device_memory;
    service->leases.limit = config->leases;
    service->sessions.frame_timeout_ms = shuf__config_ms(config->frame_timeout);
    shuf__spin_set(&service->spin, config->spin_time);
    shuf__pool_set_keep(&service->pool, shuf__config_ms(config->cache_time));
}

void shuf__service_set_engine(struct shuf__service *service, struct shuf__engine *engine)
{
    service->engine = engine;
    service->allocations.engine = engine;
    service->cache.engine = engine;
    service->sessions.engine = engine;
}
