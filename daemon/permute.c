/* SPDX-License-Identifier: MIT
 *
 * Permute: checks the request, has the engine compute it, and answers with its
 * summary and, where asked, its bytes.
 */
#include "handlers.h"
#include "plan.h"
#include "server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EDGE = 4 }; /* values of head and of tail */

/* One request in the engine's hands. */
struct permute {
    struct shuf__task task;
    struct shuf__session *session;
    struct shuf__budget *budget;
    struct shuf__plan plan;
    enum shuf_algorithm algorithm;
    bool want_values, want_fingerprint;
    uint64_t start_ns; /* for the log */

    /* written by the engine's thread */
    struct shuf__error error;
    struct shuf__result *result; /* NULL when it failed or the values are not wanted */
    uint64_t device_ns, fingerprint;
    size_t heads, tails;
    uint64_t head[EDGE], tail[EDGE];
};

static const char *const algorithm_names[] = {
#define X(name, text, what) [SHUF_ALGORITHM_##name] = text,
    SHUF_ALGORITHM_MAP(X)
#undef X
};

static shuf_status unknown_algorithm(const char *name, struct shuf__error *error)
{
    char expected[128] = "";
    size_t used = 0;
    for (int i = 0; i < SHUF_ALGORITHM_COUNT && used < sizeof expected; i++) {
        const char *between = i == 0 ? "" : i + 1 == SHUF_ALGORITHM_COUNT ? " or " : ", ";
        used += (size_t)snprintf(expected + used, sizeof expected - used, "%s%s", between,
                                 algorithm_names[i]);
    }
    return shuf__fail(error, SHUF_INVALID, "algorithm \"%.64s\": expected %s", name, expected);
}

/* An empty name is the default, the table's first. */
static shuf_status find_algorithm(const char *name, enum shuf_algorithm *algorithm,
                                  struct shuf__error *error)
{
    for (int i = 0; i < SHUF_ALGORITHM_COUNT; i++)
        if (*name == '\0' || strcmp(name, algorithm_names[i]) == 0) {
            *algorithm = (enum shuf_algorithm)i;
            return SHUF_OK;
        }
    return unknown_algorithm(name, error);
}

/* ---- the engine's thread ---- */

static struct permute *permute_of(struct shuf__task *task)
{
    return (struct permute *)((char *)task - offsetof(struct permute, task));
}

static bool is_cancelled(void *context)
{
    struct permute *permute = context;
    return atomic_load_explicit(&permute->task.cancelled, memory_order_relaxed);
}

static shuf_status compute(struct permute *permute, struct shuf__backend *backend)
{
    const struct shuf__plan *plan = &permute->plan;
    struct shuf__job job = {
        .algorithm = permute->algorithm,
        .n = plan->n,
        .seed = plan->seed,
        .epoch = plan->epoch,
        .rows = plan->rows,
        .offset = plan->offset,
        .count = plan->count,
        .stride = plan->stride,
        .width = plan->width,
        .cancelled = is_cancelled,
        .cancel_context = permute,
    };
    struct shuf__block *block = &permute->result->block;
    if (backend->ops->permute(backend, &job, block, &permute->device_ns, &permute->error))
        return permute->error.status;
    if (permute->want_fingerprint &&
        backend->ops->fingerprint(backend, block, plan->width, plan->rows * plan->count,
                                  &permute->fingerprint, &permute->error))
        return permute->error.status;
    return SHUF_OK;
}

static shuf_status read_edge(struct permute *permute, struct shuf__backend *backend, uint64_t first,
                             size_t count, uint64_t *values)
{
    union {
        uint32_t narrow[EDGE];
        uint64_t wide[EDGE];
    } edge;
    unsigned width = permute->plan.width;
    if (backend->ops->read(backend, &permute->result->block, first * width, count * width, &edge,
                           &permute->error))
        return permute->error.status;
    for (size_t i = 0; i < count; i++)
        values[i] = width == 4 ? edge.narrow[i] : edge.wide[i];
    return SHUF_OK;
}

static shuf_status read_edges(struct permute *permute, struct shuf__backend *backend)
{
    uint64_t values = permute->plan.rows * permute->plan.count;
    permute->heads = values < EDGE ? (size_t)values : EDGE;
    permute->tails = values - permute->heads < EDGE ? (size_t)(values - permute->heads) : EDGE;
    if (read_edge(permute, backend, 0, permute->heads, permute->head))
        return permute->error.status;
    if (permute->tails == 0)
        return SHUF_OK;
    return read_edge(permute, backend, values - permute->tails, permute->tails, permute->tail);
}

/* A shard may be empty, for any number of rows: then there is nothing to compute. */
static shuf_status fill(struct permute *permute, struct shuf__backend *backend)
{
    if (permute->plan.bytes == 0)
        return SHUF_OK;
    if (compute(permute, backend) || read_edges(permute, backend))
        return permute->error.status;
    return SHUF_OK;
}

static void run(struct shuf__task *task, struct shuf__backend *backend)
{
    struct permute *permute = permute_of(task);
    struct shuf__error *error = &permute->error;
    error->status = SHUF_CANCELLED;
    if (is_cancelled(permute))
        return;
    error->status =
        shuf__result_make(permute->budget, backend, permute->plan.bytes, &permute->result, error);
    if (error->status)
        return;
    error->status = fill(permute, backend);
    if (error->status || !permute->want_values) {
        shuf__result_drop(permute->result, backend);
        permute->result = NULL;
    }
}

/* ---- the loop's thread ---- */

static void log_request(const struct permute *permute)
{
    const struct shuf__session *session = permute->session;
    const struct shuf__plan *plan = &permute->plan;
    shuf__log(session->server->log, SHUF__LOG_DEBUG,
              "client pid %ld, uid %ld: request %" PRIu64 ": permute n %" PRIu64
              ", %s, seed %" PRIu64 ", epoch %" PRIu64 ", %" PRIu64 " x %" PRIu64
              " values, %" PRIu64 " bytes",
              (long)session->peer.pid, (long)session->peer.uid, session->id, plan->n,
              algorithm_names[permute->algorithm], plan->seed, plan->epoch, plan->rows, plan->count,
              plan->bytes);
}

static void log_reply(const struct permute *permute)
{
    const struct shuf__session *session = permute->session;
    shuf__log(session->server->log, SHUF__LOG_DEBUG,
              "client pid %ld, uid %ld: request %" PRIu64 ": n %" PRIu64 ", %s, %" PRIu64
              " bytes, %.3f ms, of which %.3f ms on the device",
              (long)session->peer.pid, (long)session->peer.uid, session->id, permute->plan.n,
              algorithm_names[permute->algorithm], permute->want_values ? permute->plan.bytes : 0,
              (double)(uv_hrtime() - permute->start_ns) / 1e6, (double)permute->device_ns / 1e6);
}

static void reply_values(struct permute *permute)
{
    struct shuf__session *session = permute->session;
    const struct shuf__backend *backend = shuf__engine_backend(session->server->engine);
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__PermuteReply body = SHUF__PERMUTE_REPLY__INIT;
    body.algorithm = (char *)(uintptr_t)algorithm_names[permute->algorithm];
    body.dtype = permute->plan.dtype;
    body.rows = permute->plan.rows;
    body.count = permute->plan.count;
    body.bytes = permute->plan.bytes;
    body.device_ns = permute->device_ns;
    body.fingerprint = permute->fingerprint;
    body.n_head = permute->heads;
    body.head = permute->head;
    body.n_tail = permute->tails;
    body.tail = permute->tail;
    body.backend = (char *)(uintptr_t)backend->ops->name;
    body.device = (char *)(uintptr_t)backend->device;
    reply.body_case = SHUF__REPLY__BODY_PERMUTE;
    reply.permute = &body;
    session->server->served++;
    log_reply(permute);
    shuf__session_reply(session, &reply, permute->result, permute->plan.bytes);
    permute->result = NULL;
}

static void done(struct shuf__task *task)
{
    struct permute *permute = permute_of(task);
    struct shuf__session *session = permute->session;
    struct shuf__server *server = session->server;
    bool failed = permute->error.status == SHUF_DEVICE;
    if (shuf__session_resume(session)) {
        if (permute->error.status)
            shuf__session_fail(session, &permute->error);
        else
            reply_values(permute);
    }
    if (permute->result)
        shuf__result_release(permute->result, server->engine);
    if (failed)
        shuf__server_device_failed(server, &permute->error);
    free(permute);
    shuf__session_continue(session);
}

static shuf_status check(const Shuf__Permute *request, struct permute *permute,
                         struct shuf__error *error)
{
    if (find_algorithm(request->algorithm, &permute->algorithm, error) ||
        shuf__plan_make(request, &permute->plan, error))
        return error->status;
    switch (request->transport) {
    case SHUF__TRANSPORT__TRANSPORT_NONE:
    case SHUF__TRANSPORT__TRANSPORT_INLINE:
        return SHUF_OK;
    default:
        return shuf__fail(error, SHUF_INVALID, "transport %d: expected 0 (none) or 1 (inline)",
                          (int)request->transport);
    }
}

static shuf_status submit(struct shuf__session *session, const Shuf__Permute *request,
                          struct permute *permute, struct shuf__error *error)
{
    struct shuf__server *server = session->server;
    if (check(request, permute, error))
        return error->status;
    permute->task.run = run;
    permute->task.done = done;
    permute->session = session;
    permute->budget = &server->budget;
    permute->want_values = request->transport == SHUF__TRANSPORT__TRANSPORT_INLINE;
    permute->want_fingerprint = request->fingerprint;
    permute->start_ns = uv_hrtime();
    log_request(permute);
    if (!shuf__engine_submit(server->engine, &permute->task))
        return shuf__fail(error, SHUF_BUSY,
                          "queue %" PRIu64 ": the most jobs that may wait; try again later",
                          server->config->queue);
    shuf__session_work(session, &permute->task);
    return SHUF_OK;
}

void shuf__handle_permute(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__error error;
    struct permute *permute = calloc(1, sizeof *permute);
    if (!permute)
        shuf__fail(&error, SHUF_NO_MEMORY, "request: out of memory");
    else if (submit(session, request->permute, permute, &error) == SHUF_OK)
        return;
    free(permute);
    shuf__session_fail(session, &error);
}
