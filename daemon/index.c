/* SPDX-License-Identifier: MIT
 *
 * Index: single places of a permutation. Few are looked up on the spot, sooner
 * than another thread would wake; many are the engine's work, so that the loop
 * never waits for them.
 */
#include "index.h"
#include "engine.h"
#include "handlers.h"
#include "server.h"
#include "shuf/primefold.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    HERE = 1024,  /* places: 30 us as a rule, 100 at most, with the prime that comes first */
    TURN_MS = 1,  /* of the loop, for all of them; then they are the engine's too */
    STRIDE = 512, /* places between two looks at whether anybody still waits */
};

static const char algorithm[] = "primefold";

/* One request that the engine is at. */
struct shuf__lookup {
    struct shuf__task task;
    struct shuf__session *session; /* NULL: it has left */
    uint64_t n, seed, epoch;
    bool inverse;
    size_t count;
    uint64_t place[]; /* what was asked for; in the end what was found */
};

/* ---- on either thread ---- */

static shuf_primefold make(uint64_t n, uint64_t seed, uint64_t epoch, bool inverse)
{
    shuf_primefold f = shuf_primefold_make(n, seed, epoch);
    if (inverse)
        shuf_primefold_make_inverse(&f);
    return f;
}

static void look_up(const shuf_primefold *f, bool inverse, uint64_t *place, size_t count)
{
    for (size_t i = 0; i < count; i++)
        place[i] =
            inverse ? shuf_primefold_inverse(f, place[i]) : shuf_primefold_forward(f, place[i]);
}

/* ---- the engine's thread ---- */

static struct shuf__lookup *lookup_of(struct shuf__task *task)
{
    return (struct shuf__lookup *)((char *)task - offsetof(struct shuf__lookup, task));
}

static void run(struct shuf__task *task, struct shuf__backend *backend)
{
    struct shuf__lookup *l = lookup_of(task);
    const shuf_primefold f = make(l->n, l->seed, l->epoch, l->inverse);
    (void)backend; /* a copy to a device and back would take longer */
    for (size_t i = 0; i < l->count; i += STRIDE) {
        if (atomic_load_explicit(&task->cancelled, memory_order_relaxed))
            return;
        look_up(&f, l->inverse, l->place + i, l->count - i < STRIDE ? l->count - i : STRIDE);
    }
}

/* ---- the loop's thread ---- */

static void reply_places(struct shuf__session *session, uint64_t *place, size_t count)
{
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__IndexReply body = SHUF__INDEX_REPLY__INIT;
    reply.body_case = SHUF__REPLY__BODY_INDEX;
    reply.index = &body;
    body.algorithm = (char *)(uintptr_t)algorithm;
    body.n_value = count;
    body.value = place;
    shuf__session_reply(session, &reply, NULL, -1);
}

static void done(struct shuf__task *task)
{
    struct shuf__lookup *l = lookup_of(task);
    struct shuf__session *session = l->session;
    if (session) {
        session->lookup = NULL;
        shuf__session_resume(session);
        reply_places(session, l->place, l->count);
    }
    free(l);
    if (session)
        shuf__session_continue(session);
}

void shuf__lookup_drop(struct shuf__lookup *l)
{
    struct shuf__engine *engine = l->session->server->engine;
    l->session->lookup = NULL;
    l->session = NULL;
    shuf__engine_cancel(engine, &l->task);
}

static struct shuf__lookup *make_lookup(struct shuf__session *session, const Shuf__Index *request)
{
    const size_t bytes = request->n_at * sizeof *request->at;
    struct shuf__lookup *l = malloc(sizeof *l + bytes);
    if (!l)
        return NULL;
    *l = (struct shuf__lookup){
        .task = {.run = run, .done = done},
        .session = session,
        .n = request->n,
        .seed = request->seed,
        .epoch = request->epoch,
        .inverse = request->inverse,
        .count = request->n_at,
    };
    memcpy(l->place, request->at, bytes);
    return l;
}

static shuf_status hand_over(struct shuf__session *session, const Shuf__Index *request,
                             struct shuf__error *error)
{
    struct shuf__server *server = session->server;
    struct shuf__lookup *l = make_lookup(session, request);
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
static bool is_small(struct shuf__session *session, const Shuf__Index *request)
{
    return request->n_at <= HERE &&
           uv_hrtime() / 1000000 <= uv_now(&session->server->loop) + TURN_MS;
}

static shuf_status check_algorithm(const char *name, struct shuf__error *error)
{
    if (*name == '\0')
        name = shuf__permute_algorithm_name(0); /* the default */
    if (strcmp(name, algorithm) == 0)
        return SHUF_OK;
    return shuf__fail(error, SHUF_INVALID, "algorithm \"%.64s\": index expected %s", name,
                      algorithm);
}

static void log_request(const struct shuf__session *session, const Shuf__Index *request)
{
    shuf__log(session->server->log, SHUF__LOG_DEBUG,
              "client pid %ld, uid %ld: request %" PRIu64 ": index n %" PRIu64 ", %s, seed %" PRIu64
              ", epoch %" PRIu64 ", %zu %s",
              (long)session->peer.pid, (long)session->peer.uid, session->id, request->n, algorithm,
              request->seed, request->epoch, request->n_at,
              request->inverse ? "values" : "positions");
}

void shuf__handle_index(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__error error;
    const Shuf__Index *index = request->index;
    if (check_algorithm(index->algorithm, &error) || shuf__index_check_request(index, &error)) {
        shuf__session_fail(session, &error);
        return;
    }
    log_request(session, index);
    if (is_small(session, index)) {
        const shuf_primefold f = make(index->n, index->seed, index->epoch, index->inverse);
        look_up(&f, index->inverse, index->at, index->n_at); /* in the arena, which is ours */
        reply_places(session, index->at, index->n_at);
    } else if (hand_over(session, index, &error)) {
        shuf__session_fail(session, &error);
    }
}
