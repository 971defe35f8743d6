/* SPDX-License-Identifier: MIT
 *
 * Index: single places of a permutation. Few of primefold's are looked up on the
 * spot, sooner than another thread would wake; many are the engine's work, so that
 * the loop never waits for them. Those of the other algorithms are found by counting
 * what comes before, which a table remembers.
 */
#include "algorithm.h"
#include "engine.h"
#include "handlers.h"
#include "parse.h"
#include "server.h"
#include "table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    HERE = 1024, /* places: 30 us as a rule, 100 at most, with the prime that comes first */
    TURN_MS = 1, /* of the loop, for all of them; then they are the engine's too */
};

/* One request that the engine is at. */
struct shuf__lookup {
    struct shuf__task task;
    struct shuf__session *session; /* NULL: it has left */
    struct shuf__server *server;
    struct shuf__result *table; /* rank index, while it runs; NULL: it needs none */
    struct shuf__look_up request;
    uint32_t uid;
    struct shuf__error error;
    size_t count;
    uint64_t place[]; /* what was asked for; in the end what was found */
};

/* ---- the engine's thread ---- */

static struct shuf__lookup *lookup_of(struct shuf__task *task)
{
    return (struct shuf__lookup *)((char *)task - offsetof(struct shuf__lookup, task));
}

static bool is_cancelled(void *context)
{
    const struct shuf__task *task = context;
    return atomic_load_explicit(&task->cancelled, memory_order_relaxed);
}

static struct shuf__job job_of(struct shuf__lookup *l)
{
    return (struct shuf__job){
        .request = {.kind = SHUF__LOOK_UP, .look_up = l->request},
        .cancelled = is_cancelled,
        .cancel_context = &l->task,
    };
}

static void run(struct shuf__task *task, struct shuf__backend *backend)
{
    struct shuf__lookup *l = lookup_of(task);
    struct shuf__job job = job_of(l);
    if (l->table && !(job.rank_index = shuf__table_open(l->table, backend, &l->error)))
        return;
    l->error.status = backend->ops->look_up(backend, &job, l->place, l->count, &l->error);
}

/* ---- the loop's thread ---- */

static bool begin(struct shuf__task *task)
{
    struct shuf__lookup *l = lookup_of(task);
    const struct shuf__permutation *p = &l->request.permutation;
    if (shuf__rank_index_bytes(p->algorithm, p->n) == 0)
        return true;
    l->table = shuf__table_take(&l->server->results, l->uid, p, &l->error);
    return l->table != NULL;
}

static void reply_places(struct shuf__session *session, enum shuf_algorithm algorithm,
                         uint64_t *place, size_t count)
{
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__IndexReply body = SHUF__INDEX_REPLY__INIT;
    reply.body_case = SHUF__REPLY__BODY_INDEX;
    reply.index = &body;
    body.algorithm = (char *)(uintptr_t)shuf__algorithm_name(algorithm);
    body.n_value = count;
    body.value = place;
    shuf__session_reply(session, &reply, NULL, -1);
}

static void reply(const struct shuf__lookup *l)
{
    if (l->error.status)
        shuf__session_fail(l->session, &l->error);
    else
        reply_places(l->session, l->request.permutation.algorithm, (uint64_t *)(uintptr_t)l->place,
                     l->count);
}

static void done(struct shuf__task *task)
{
    struct shuf__lookup *l = lookup_of(task);
    struct shuf__session *session = l->session;
    shuf__table_give_back(l->table);
    if (session) {
        session->lookup = NULL;
        shuf__session_resume(session);
        reply(l);
        shuf__session_continue(session);
    }
    if (l->error.status == SHUF_DEVICE)
        shuf__server_device_failed(l->server, &l->error);
    free(l);
}

void shuf__lookup_drop(struct shuf__lookup *l)
{
    struct shuf__engine *engine = l->session->server->engine;
    l->session->lookup = NULL;
    l->session = NULL;
    shuf__engine_cancel(engine, &l->task);
}

static bool has_random_access(const struct shuf__look_up *request)
{
    return shuf_algorithm_has_random_access(request->permutation.algorithm);
}

static struct shuf__lookup *make_lookup(struct shuf__session *session,
                                        const struct shuf__look_up *request,
                                        const Shuf__Index *message)
{
    const size_t bytes = message->n_at * sizeof *message->at;
    struct shuf__lookup *l = malloc(sizeof *l + bytes);
    if (!l)
        return NULL;
    *l = (struct shuf__lookup){
        .task = {.begin = begin, .run = run, .done = done},
        .session = session,
        .server = session->server,
        .request = *request,
        .uid = session->peer.uid,
        .count = message->n_at,
    };
    memcpy(l->place, message->at, bytes);
    return l;
}

static shuf_status hand_over(struct shuf__session *session, const struct shuf__look_up *request,
                             const Shuf__Index *message, struct shuf__error *error)
{
    struct shuf__server *server = session->server;
    struct shuf__lookup *l = make_lookup(session, request, message);
    if (!l)
        return shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
    if (!shuf__engine_submit(server->engine, &l->task)) {
        free(l);
        return shuf__fail(error, SHUF_BUSY,
                          "queue %" PRIu64 ": the most jobs that may wait; try again later",
                          server->config->queue);
    }
    shuf__session_work(session, NULL);
    session->lookup = l;
    return SHUF_OK;
}

/* Others' requests of this turn may have taken their time already. */
static bool is_small(struct shuf__session *session, const struct shuf__look_up *request,
                     size_t count)
{
    return has_random_access(request) && count <= HERE &&
           uv_hrtime() / 1000000 <= uv_now(&session->server->loop) + TURN_MS;
}

static shuf_status understand(const Shuf__Index *message, struct shuf__request *request,
                              struct shuf__error *error)
{
    const struct shuf__permutation *p = &request->look_up.permutation;
    if (shuf__parse_index(message, request, error))
        return error->status;
    if (p->n <= SHUF__RANK_INDEX_N_MAX || shuf__rank_index_bytes(p->algorithm, p->n) == 0)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID,
                      "n %" PRIu64 ": index expected at most 2^36 or a power of two with %s, which "
                      "has to count the values before a place",
                      p->n, shuf__algorithm_name(p->algorithm));
}

static void log_request(const struct shuf__session *session, const struct shuf__request *request,
                        size_t count)
{
    char text[SHUF__REQUEST_TEXT];
    if (session->server->log->level < SHUF__LOG_DEBUG)
        return;
    shuf__log(session->server->log, SHUF__LOG_DEBUG,
              "client pid %ld, uid %ld: request %" PRIu64 ": %s, %zu %s", (long)session->peer.pid,
              (long)session->peer.uid, session->id, shuf__request_describe(request, true, text),
              count, request->look_up.inverse ? "values" : "positions");
}

void shuf__handle_index(struct shuf__session *session, const Shuf__Request *message)
{
    struct shuf__error error;
    struct shuf__request request;
    const struct shuf__look_up *look_up = &request.look_up;
    const Shuf__Index *index = message->index;
    if (understand(index, &request, &error)) {
        shuf__session_fail(session, &error);
        return;
    }
    log_request(session, &request, index->n_at);
    if (is_small(session, look_up, index->n_at)) {
        struct shuf__backend *backend = shuf__engine_backend(session->server->engine);
        const struct shuf__job job = {.request = request};
        if (backend->ops->look_up(backend, &job, index->at, index->n_at, &error)) /* in the arena */
            shuf__session_fail(session, &error);
        else
            reply_places(session, look_up->permutation.algorithm, index->at, index->n_at);
    } else if (hand_over(session, look_up, index, &error)) {
        shuf__session_fail(session, &error);
    }
}
