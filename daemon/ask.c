/* SPDX-License-Identifier: MIT
 *
 * See ask.h.
 */
#include "ask.h"

#include "algorithm.h"
#include "compute.h"
#include "handlers.h"
#include "holder.h"
#include "lease.h"
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* One request, from its result to its reply. */
struct shuf__ask {
    struct shuf__waiter waiter; /* its result: a reference of the ask */
    struct shuf__session *session;
    struct shuf__key key;
    struct shuf__shape shape;
    struct shuf__result *input; /* see struct shuf__asked */
    Shuf__Transport transport;
    bool prefetch, shared;
    uint64_t start_ns; /* for the log */
};

/* The values stay where they are; else they are sent, or only summed up. A buffer has none yet. */
static bool is_leased(const struct shuf__ask *ask)
{
    return ask->transport > SHUF__TRANSPORT__TRANSPORT_INLINE || shuf__key_is_buffer(&ask->key);
}

static bool is_sent(const struct shuf__ask *ask)
{
    return ask->transport == SHUF__TRANSPORT__TRANSPORT_INLINE && !shuf__key_is_buffer(&ask->key);
}

/* ---- log ---- */

static void log_request(const struct shuf__ask *ask)
{
    char text[SHUF__REQUEST_TEXT];
    const struct shuf__session *session = ask->session;
    if (session->server->log->level < SHUF__LOG_DEBUG)
        return;
    shuf__log(session->server->log, SHUF__LOG_DEBUG,
              "client pid %ld, uid %ld: request %" PRIu64 ": %s, %" PRIu64 " bytes, %s%s",
              (long)session->peer.pid, (long)session->peer.uid, session->id,
              shuf__request_describe(&ask->key.request, true, text), ask->shape.bytes,
              shuf__transport_name(ask->transport), ask->prefetch ? ", prefetch" : "");
}

static void log_reply(const struct shuf__ask *ask, uint64_t device_ns)
{
    char text[SHUF__REQUEST_TEXT];
    const struct shuf__session *session = ask->session;
    if (session->server->log->level < SHUF__LOG_DEBUG)
        return;
    shuf__log(session->server->log, SHUF__LOG_DEBUG,
              "client pid %ld, uid %ld: request %" PRIu64 ": %s, %" PRIu64
              " bytes, %.3f ms, of which %.3f ms on the device%s",
              (long)session->peer.pid, (long)session->peer.uid, session->id,
              shuf__request_describe(&ask->key.request, false, text), ask->shape.bytes,
              (double)(uv_hrtime() - ask->start_ns) / 1e6, (double)device_ns / 1e6,
              ask->shared ? ", shared" : "");
}

/* ---- the reply ---- */

struct reply {
    Shuf__Reply reply;
    Shuf__ResultReply body;
    Shuf__Sums sums;
};

static void begin_reply(const struct shuf__ask *ask, struct reply *r)
{
    const struct shuf__backend *backend = shuf__engine_backend(ask->session->server->engine);
    const struct shuf__request *request = &ask->key.request;
    const struct shuf__permutation *p = shuf__request_permutation(request);
    const enum shuf__distribution distribution = shuf__request_distribution(request);
    r->reply = (Shuf__Reply)SHUF__REPLY__INIT;
    r->body = (Shuf__ResultReply)SHUF__RESULT_REPLY__INIT;
    r->reply.body_case = SHUF__REPLY__BODY_RESULT;
    r->reply.result = &r->body;
    r->body.record = request->kind == SHUF__SHUFFLE ? request->shuffle.record : 0;
    r->body.distribution = (Shuf__Distribution)shuf__wire_distribution(distribution);
    r->body.method = (Shuf__Method)shuf__wire_method(distribution);
    if (p)
        r->body.algorithm = (char *)(uintptr_t)shuf__algorithm_name(p->algorithm);
    r->body.dtype = (Shuf__Dtype)request->dtype;
    r->body.rows = ask->shape.rows;
    r->body.count = ask->shape.count;
    r->body.bytes = ask->shape.bytes;
    r->body.backend = (char *)(uintptr_t)backend->ops->name;
    r->body.device = (char *)(uintptr_t)backend->device;
    r->body.transport = ask->transport;
    r->body.shared = ask->shared;
}

static void tell_sums(const struct shuf__request *request, const struct shuf__sums *sums,
                      struct reply *r)
{
    const struct shuf__measure measure = shuf__measure_of(request);
    r->sums = (Shuf__Sums)SHUF__SUMS__INIT;
    r->sums.centre = measure.centre;
    r->sums.scale = measure.scale;
    r->sums.z1 = sums->power[0];
    r->sums.z2 = sums->power[1];
    r->sums.z3 = sums->power[2];
    r->sums.z4 = sums->power[3];
    r->sums.least = sums->least;
    r->sums.largest = sums->largest;
    r->body.sums = &r->sums;
}

static void tell_summary(const struct shuf__ask *ask, struct shuf__summary *summary,
                         struct reply *r)
{
    r->body.device_ns = summary->device_ns;
    if (ask->waiter.want.fingerprint)
        r->body.fingerprint = summary->fingerprint;
    if (ask->waiter.want.sums)
        tell_sums(&ask->key.request, &summary->sums, r);
    if (!ask->waiter.want.edges)
        return;
    r->body.n_head = summary->heads;
    r->body.head = summary->head;
    r->body.n_tail = summary->tails;
    r->body.tail = summary->tail;
}

/* A shard may be empty, for any number of rows: then there is nothing to compute or to lease. */
static void reply_empty(struct shuf__ask *ask)
{
    struct reply r;
    if (ask->transport != SHUF__TRANSPORT__TRANSPORT_NONE)
        ask->transport = SHUF__TRANSPORT__TRANSPORT_INLINE;
    begin_reply(ask, &r);
    ask->session->server->served++;
    log_reply(ask, 0);
    shuf__session_reply(ask->session, &r.reply, NULL, -1);
}

/* Descriptors on their way count against the daemon's user, and a client that does not read leaves
 * them there: it gets one at a time. */
static bool has_read_all(const struct shuf__session *session)
{
    int unread = 0;
    return ioctl(session->fd, SIOCOUTQ, &unread) != 0 || unread == 0;
}

static shuf_status hand_out(const struct shuf__session *session, const struct shuf__cell *cell,
                            bool fresh, Shuf__ResultReply *body, int *fd, struct shuf__error *error)
{
    if (cell->kind == SHUF__MEMORY_CUDA_IPC) {
        body->ipc_handle.data = (uint8_t *)(uintptr_t)cell->block.ipc;
        body->ipc_handle.len = sizeof cell->block.ipc;
        return SHUF_OK;
    }
    if (!fresh)
        return SHUF_OK;
    if (!has_read_all(session))
        return shuf__fail(error, SHUF_BUSY,
                          "descriptor of a block: expected the replies before it to be read first");
    const struct shuf__backend *backend = shuf__engine_backend(session->server->engine);
    if ((*fd = backend->ops->export_block(&cell->block)) < 0)
        return shuf__fail(error, SHUF_IO, "descriptor of a block: %s", strerror(errno));
    body->descriptor = true;
    return SHUF_OK;
}

/* Makes the reference to the result a lease of the client's. What then does not reach it is not
 * among what it has. */
static shuf_status lease(struct shuf__ask *ask, const uint8_t *event, Shuf__ResultReply *body,
                         int *fd, struct shuf__error *error)
{
    bool fresh;
    struct shuf__result *result = ask->waiter.result;
    const struct shuf__backend *backend = shuf__engine_backend(ask->session->server->engine);
    body->block = result->cell->id;
    body->block_bytes = result->cell->bytes;
    if (ask->transport == SHUF__TRANSPORT__TRANSPORT_INLINE) /* a buffer that nobody maps */
        return shuf__lease_take(ask->session, result, ask->transport, false, &body->lease, error);
    if (shuf__holder_expose(ask->session, result->cell, &fresh, error))
        return error->status;
    if (hand_out(ask->session, result->cell, fresh, body, fd, error) ||
        shuf__lease_take(ask->session, result, ask->transport, false, &body->lease, error)) {
        if (fresh)
            shuf__holder_unmapped(ask->session, result->cell->id);
        return error->status;
    }
    if (shuf__pool_of(result->cell->kind) == SHUF__POOL_DEVICE)
        body->device_id = (char *)(uintptr_t)backend->device_id;
    if (event) {
        body->ipc_event.data = (uint8_t *)(uintptr_t)event;
        body->ipc_event.len = SHUF__IPC_HANDLE;
    }
    return SHUF_OK;
}

/* Consumes the ask's reference to the result, as a lease, as what is sent, or not at all. */
static void reply_result(struct shuf__ask *ask, const uint8_t *event)
{
    int fd = -1;
    struct reply r;
    struct shuf__error error;
    struct shuf__result *result = ask->waiter.result;
    struct shuf__summary summary = result->summary; /* the reply points into it */
    begin_reply(ask, &r);
    tell_summary(ask, &summary, &r);
    if (is_leased(ask) && lease(ask, event, &r.body, &fd, &error)) {
        if (fd >= 0)
            close(fd);
        shuf__compute_unref(result);
        shuf__session_fail(ask->session, &error);
        return;
    }
    ask->session->server->served += !shuf__key_is_buffer(&ask->key);
    log_reply(ask, summary.device_ns);
    bool bulk = is_sent(ask);
    if (bulk)
        shuf__lease_end_prefetch(ask->session, result);
    if (ask->transport == SHUF__TRANSPORT__TRANSPORT_NONE)
        shuf__compute_unref(result);
    shuf__session_reply(ask->session, &r.reply, bulk ? result : NULL, fd);
}

/* ---- waiting ---- */

static void told(struct shuf__waiter *waiter, const struct shuf__error *error, const uint8_t *event)
{
    struct shuf__ask *ask = (struct shuf__ask *)waiter;
    struct shuf__session *session = ask->session;
    shuf__session_resume(session);
    if (error) {
        shuf__compute_unref(waiter->result);
        shuf__session_fail(session, error);
    } else {
        reply_result(ask, event);
    }
    free(ask);
    shuf__session_continue(session);
}

void shuf__ask_drop(struct shuf__ask *ask)
{
    shuf__compute_leave(&ask->waiter);
    shuf__compute_unref(ask->waiter.result);
    free(ask);
}

static shuf_status await(const struct shuf__ask *ask, struct shuf__error *error)
{
    struct shuf__ask *kept = malloc(sizeof *kept);
    if (!kept)
        return shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
    *kept = *ask;
    if (shuf__compute_for(kept->session->server, &kept->waiter, error)) {
        free(kept);
        return error->status;
    }
    shuf__session_work(kept->session, kept);
    return SHUF_OK;
}

/* ---- the request ---- */

static shuf_status find_or_make(struct shuf__ask *ask, struct shuf__error *error)
{
    struct shuf__results *results = &ask->session->server->results;
    const struct shuf__key *key = &ask->key;
    struct shuf__result *result =
        shuf__key_is_shared(key) ? shuf__results_find(results, key) : NULL;
    if (result) {
        ask->shared = true;
        if (result->ready)
            results->hits++;
        else
            results->joined++;
        ask->waiter.result = shuf__result_ref(result);
        return SHUF_OK;
    }
    ask->waiter.result = shuf__results_make(results, key, ask->shape.bytes);
    if (!ask->waiter.result)
        return shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
    if (ask->input)
        ask->waiter.result->input = shuf__result_ref(ask->input);
    return SHUF_OK;
}

/* The reference becomes the prefetch's. */
static shuf_status prefetch(struct shuf__ask *ask, struct shuf__error *error)
{
    uint64_t id;
    struct reply r;
    struct shuf__result *result = ask->waiter.result;
    if (shuf__compute_ahead(ask->session->server, result, error) ||
        shuf__lease_take(ask->session, result, ask->transport, true, &id, error))
        return error->status;
    begin_reply(ask, &r);
    r.body.transport = SHUF__TRANSPORT__TRANSPORT_NONE;
    shuf__session_reply(ask->session, &r.reply, NULL, -1);
    return SHUF_OK;
}

static shuf_status serve(struct shuf__ask *ask, struct shuf__error *error)
{
    bool there;
    struct shuf__server *server = ask->session->server;
    if (ask->prefetch)
        return prefetch(ask, error);
    if (shuf__compute_now(server, ask->waiter.result, &ask->waiter.want, &there, error))
        return error->status;
    if (!there)
        return await(ask, error);
    reply_result(ask, NULL);
    return SHUF_OK;
}

static void fail(struct shuf__session *session, const struct shuf__error *error)
{
    struct shuf__server *server = session->server;
    shuf__session_fail(session, error);
    if (error->status == SHUF_DEVICE)
        shuf__server_device_failed(server, error);
}

/* One that could not be leased is not computed first. */
static shuf_status begin(struct shuf__ask *ask, struct shuf__error *error)
{
    if (is_leased(ask) && !ask->prefetch && shuf__lease_may(ask->session, error))
        return error->status;
    return find_or_make(ask, error);
}

static shuf_status understand(struct shuf__ask *ask, const struct shuf__terms *terms,
                              struct shuf__error *error)
{
    enum shuf__memory kind;
    const struct shuf__session *session = ask->session;
    const struct shuf__backend *backend = shuf__engine_backend(session->server->engine);
    const struct shuf__cell *input = ask->input ? ask->input->cell : NULL;
    if (shuf__transport_pick(ask->session, backend, &terms->accepted, input, &ask->transport, &kind,
                             error))
        return error->status;
    if (shuf__key_is_buffer(&ask->key) && ask->transport == SHUF__TRANSPORT__TRANSPORT_NONE)
        return shuf__fail(error, SHUF_INVALID,
                          "accept: no transport in it, expected how the buffer is to be filled");
    ask->key.uid = session->peer.uid;
    ask->key.kind = kind;
    ask->prefetch = terms->prefetch;
    const bool summed_up = terms->fingerprint || terms->sums;
    ask->waiter.told = told;
    ask->waiter.want = (struct shuf__want){
        .fingerprint = terms->fingerprint,
        .sums = terms->sums,
        .edges = shuf__key_is_shared(&ask->key) && (summed_up || !is_leased(ask)),
        .event = terms->event && !summed_up, /* for that it has to be over */
    };
    return SHUF_OK;
}

static void answer(struct shuf__ask *ask)
{
    struct shuf__error error;
    log_request(ask);
    if (ask->shape.bytes == 0) {
        reply_empty(ask);
        return;
    }
    if (begin(ask, &error)) {
        shuf__session_fail(ask->session, &error);
        return;
    }
    if (serve(ask, &error) != SHUF_OK) {
        shuf__compute_unref(ask->waiter.result);
        fail(ask->session, &error);
    }
}

void shuf__ask(struct shuf__session *session, const struct shuf__asked *what,
               const struct shuf__terms *terms)
{
    struct shuf__error error;
    struct shuf__ask ask = {.session = session,
                            .key = {.request = what->request},
                            .shape = shuf__request_shape(&what->request),
                            .input = what->input,
                            .start_ns = uv_hrtime()};
    if (understand(&ask, terms, &error))
        shuf__session_fail(session, &error);
    else
        answer(&ask);
    if (what->input) /* the result has its own */
        shuf__result_unref(what->input);
}
