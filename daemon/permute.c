/* SPDX-License-Identifier: MIT
 *
 * Permute: what is asked for is looked up or made, and answered with its summary
 * and a lease, its bytes, or neither.
 */
#include "compute.h"
#include "handlers.h"
#include "holder.h"
#include "lease.h"
#include "memfd.h"
#include "plan.h"
#include "server.h"
#include "transport.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* One request, from its result to its reply. */
struct shuf__ask {
    struct shuf__waiter waiter; /* its result: a reference of the ask */
    struct shuf__session *session;
    struct shuf__plan plan;
    enum shuf_algorithm algorithm;
    Shuf__Transport transport;
    enum shuf__memory kind;
    bool prefetch, shared;
    uint64_t start_ns; /* for the log */
};

/* The values stay where they are; else they are sent, or only summed up. */
static bool is_leased(const struct shuf__ask *ask)
{
    return ask->transport > SHUF__TRANSPORT__TRANSPORT_INLINE;
}

static const char *const algorithm_names[] = {
#define X(name, text, what) [SHUF_ALGORITHM_##name] = text,
    SHUF_ALGORITHM_MAP(X)
#undef X
};

const char *shuf__permute_algorithm_name(uint32_t algorithm)
{
    return algorithm_names[algorithm];
}

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

shuf_status shuf__permute_algorithm(const char *name, enum shuf_algorithm *algorithm,
                                    struct shuf__error *error)
{
    for (int i = 0; i < SHUF_ALGORITHM_COUNT; i++)
        if (*name == '\0' || strcmp(name, algorithm_names[i]) == 0) {
            *algorithm = (enum shuf_algorithm)i;
            return SHUF_OK;
        }
    return unknown_algorithm(name, error);
}

/* ---- log ---- */

static void log_request(const struct shuf__ask *ask)
{
    const struct shuf__session *session = ask->session;
    const struct shuf__plan *plan = &ask->plan;
    shuf__log(session->server->log, SHUF__LOG_DEBUG,
              "client pid %ld, uid %ld: request %" PRIu64 ": permute n %" PRIu64
              ", %s, seed %" PRIu64 ", epoch %" PRIu64 ", %" PRIu64 " x %" PRIu64
              " values, %" PRIu64 " bytes, %s%s",
              (long)session->peer.pid, (long)session->peer.uid, session->id, plan->n,
              algorithm_names[ask->algorithm], plan->seed, plan->epoch, plan->rows, plan->count,
              plan->bytes, shuf__transport_name(ask->transport), ask->prefetch ? ", prefetch" : "");
}

static void log_reply(const struct shuf__ask *ask, uint64_t device_ns)
{
    const struct shuf__session *session = ask->session;
    shuf__log(session->server->log, SHUF__LOG_DEBUG,
              "client pid %ld, uid %ld: request %" PRIu64 ": n %" PRIu64 ", %s, %" PRIu64
              " bytes, %.3f ms, of which %.3f ms on the device%s",
              (long)session->peer.pid, (long)session->peer.uid, session->id, ask->plan.n,
              algorithm_names[ask->algorithm], ask->plan.bytes,
              (double)(uv_hrtime() - ask->start_ns) / 1e6, (double)device_ns / 1e6,
              ask->shared ? ", shared" : "");
}

/* ---- the reply ---- */

static void begin_reply(const struct shuf__ask *ask, Shuf__Reply *reply, Shuf__PermuteReply *body)
{
    const struct shuf__backend *backend = shuf__engine_backend(ask->session->server->engine);
    *reply = (Shuf__Reply)SHUF__REPLY__INIT;
    *body = (Shuf__PermuteReply)SHUF__PERMUTE_REPLY__INIT;
    reply->body_case = SHUF__REPLY__BODY_PERMUTE;
    reply->permute = body;
    body->algorithm = (char *)(uintptr_t)algorithm_names[ask->algorithm];
    body->dtype = ask->plan.dtype;
    body->rows = ask->plan.rows;
    body->count = ask->plan.count;
    body->bytes = ask->plan.bytes;
    body->backend = (char *)(uintptr_t)backend->ops->name;
    body->device = (char *)(uintptr_t)backend->device;
    body->transport = ask->transport;
    body->shared = ask->shared;
}

static void tell_summary(const struct shuf__ask *ask, struct shuf__summary *summary,
                         Shuf__PermuteReply *body)
{
    body->device_ns = summary->device_ns;
    if (ask->waiter.want.fingerprint)
        body->fingerprint = summary->fingerprint;
    if (!ask->waiter.want.edges)
        return;
    body->n_head = summary->heads;
    body->head = summary->head;
    body->n_tail = summary->tails;
    body->tail = summary->tail;
}

/* A shard may be empty, for any number of rows: then there is nothing to compute or to lease. */
static void reply_empty(struct shuf__ask *ask)
{
    Shuf__Reply reply;
    Shuf__PermuteReply body;
    if (ask->transport != SHUF__TRANSPORT__TRANSPORT_NONE)
        ask->transport = SHUF__TRANSPORT__TRANSPORT_INLINE;
    begin_reply(ask, &reply, &body);
    ask->session->server->served++;
    log_reply(ask, 0);
    shuf__session_reply(ask->session, &reply, NULL, -1);
}

/* The descriptor for a client that does not have the block yet; -1 with errno. */
static int share(const struct shuf__block *block)
{
    return block->kind == SHUF__MEMORY_MEMFD ? shuf__memfd_share(block)
                                             : fcntl(block->fd, F_DUPFD_CLOEXEC, 0);
}

/* Descriptors on their way count against the daemon's user, and a client that does not read leaves
 * them there: it gets one at a time. */
static bool has_read_all(const struct shuf__session *session)
{
    int unread = 0;
    return ioctl(session->fd, SIOCOUTQ, &unread) != 0 || unread == 0;
}

static shuf_status hand_out(const struct shuf__session *session, const struct shuf__cell *cell,
                            bool fresh, Shuf__PermuteReply *body, int *fd,
                            struct shuf__error *error)
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
    if ((*fd = share(&cell->block)) < 0)
        return shuf__fail(error, SHUF_IO, "descriptor of a block: %s", strerror(errno));
    body->descriptor = true;
    return SHUF_OK;
}

/* Makes the reference to the result a lease of the client's. What then does not reach it is not
 * among what it has. */
static shuf_status lease(struct shuf__ask *ask, const uint8_t *event, Shuf__PermuteReply *body,
                         int *fd, struct shuf__error *error)
{
    bool fresh;
    struct shuf__result *result = ask->waiter.result;
    const struct shuf__backend *backend = shuf__engine_backend(ask->session->server->engine);
    if (shuf__holder_expose(ask->session, result->cell, &fresh, error))
        return error->status;
    if (hand_out(ask->session, result->cell, fresh, body, fd, error) ||
        shuf__lease_take(ask->session, result, ask->transport, false, &body->lease, error)) {
        if (fresh)
            shuf__holder_unmapped(ask->session, result->cell->id);
        return error->status;
    }
    body->block = result->cell->id;
    body->block_bytes = result->cell->bytes;
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
    Shuf__Reply reply;
    Shuf__PermuteReply body;
    struct shuf__error error;
    struct shuf__result *result = ask->waiter.result;
    struct shuf__summary summary = result->summary; /* the reply points into it */
    begin_reply(ask, &reply, &body);
    tell_summary(ask, &summary, &body);
    if (is_leased(ask) && lease(ask, event, &body, &fd, &error)) {
        if (fd >= 0)
            close(fd);
        shuf__compute_unref(result);
        shuf__session_fail(ask->session, &error);
        return;
    }
    ask->session->server->served++;
    log_reply(ask, summary.device_ns);
    bool bulk = ask->transport == SHUF__TRANSPORT__TRANSPORT_INLINE;
    if (bulk)
        shuf__lease_end_prefetch(ask->session, result);
    if (ask->transport == SHUF__TRANSPORT__TRANSPORT_NONE)
        shuf__compute_unref(result);
    shuf__session_reply(ask->session, &reply, bulk ? result : NULL, fd);
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

static shuf_status understand(const Shuf__Permute *request, struct shuf__ask *ask,
                              struct shuf__error *error)
{
    struct shuf__server *server = ask->session->server;
    const struct shuf__backend *backend = shuf__engine_backend(server->engine);
    if (shuf__permute_algorithm(request->algorithm, &ask->algorithm, error) ||
        shuf__plan_make(request, &ask->plan, error) ||
        shuf__transport_pick(ask->session, backend, request, &ask->transport, &ask->kind, error))
        return error->status;
    ask->prefetch = request->prefetch;
    ask->waiter.told = told;
    ask->waiter.want = (struct shuf__want){
        .fingerprint = request->fingerprint,
        .edges = request->fingerprint || !is_leased(ask),
        .event = request->event && !request->fingerprint, /* for that it has to be over */
    };
    return SHUF_OK;
}

static struct shuf__key key_of(const struct shuf__ask *ask)
{
    const struct shuf__plan *plan = &ask->plan;
    return (struct shuf__key){
        .n = plan->n,
        .seed = plan->seed,
        .epoch = plan->epoch,
        .rows = plan->rows,
        .offset = plan->offset,
        .count = plan->count,
        .stride = plan->stride,
        .uid = ask->session->peer.uid,
        .algorithm = (uint32_t)ask->algorithm,
        .kind = (uint32_t)ask->kind,
        .width = plan->width,
    };
}

static shuf_status find_or_make(struct shuf__ask *ask, struct shuf__error *error)
{
    struct shuf__results *results = &ask->session->server->results;
    const struct shuf__key key = key_of(ask);
    struct shuf__result *result = shuf__results_find(results, &key);
    if (result) {
        ask->shared = true;
        if (result->ready)
            results->hits++;
        else
            results->joined++;
        ask->waiter.result = shuf__result_ref(result);
        return SHUF_OK;
    }
    ask->waiter.result = shuf__results_make(results, &key, ask->plan.bytes);
    if (!ask->waiter.result)
        return shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
    return SHUF_OK;
}

/* The reference becomes the prefetch's. */
static shuf_status prefetch(struct shuf__ask *ask, struct shuf__error *error)
{
    uint64_t id;
    Shuf__Reply reply;
    Shuf__PermuteReply body;
    struct shuf__result *result = ask->waiter.result;
    if (shuf__compute_ahead(ask->session->server, result, error) ||
        shuf__lease_take(ask->session, result, ask->transport, true, &id, error))
        return error->status;
    begin_reply(ask, &reply, &body);
    body.transport = SHUF__TRANSPORT__TRANSPORT_NONE;
    shuf__session_reply(ask->session, &reply, NULL, -1);
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

void shuf__handle_permute(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__error error;
    const Shuf__Permute *permute = request->permute;
    struct shuf__ask ask = {.session = session, .start_ns = uv_hrtime()};
    if ((permute->give_back && shuf__lease_give_back(session, permute->give_back, &error)) ||
        understand(permute, &ask, &error)) {
        shuf__session_fail(session, &error);
        return;
    }
    log_request(&ask);
    if (ask.plan.bytes == 0) {
        reply_empty(&ask);
        return;
    }
    if (begin(&ask, &error)) {
        shuf__session_fail(session, &error);
        return;
    }
    if (serve(&ask, &error) != SHUF_OK) {
        shuf__compute_unref(ask.waiter.result);
        fail(session, &error);
    }
}
