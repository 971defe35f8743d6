/* SPDX-License-Identifier: MIT
 *
 * See result.h.
 */
#include "result.h"

#include "algorithm.h"
#include "result_message.h"
#include "service.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- Log ---- */

void shuf__result_log(const struct shuf__result_request *r)
{
    char text[SHUF__REQUEST_TEXT];
    const struct shuf__session *session = r->session;
    if (session->all->log->level < SHUF__LOG_DEBUG)
        return;
    shuf__log_client(session->all->log, SHUF__LOG_DEBUG,
                     "client pid %ld, uid %ld: request %" PRIu64 ": %s, %" PRIu64 " byte%s, %s%s",
                     (long)session->client.pid, (long)session->client.uid, session->id,
                     shuf__request_describe(&r->key.request, true, text), r->shape.bytes,
                     shuf__plural(r->shape.bytes), shuf__transport_name(r->transport),
                     r->prefetch ? ", prefetch" : "");
}

/* ---- The reply ---- */

struct reply {
    Shuf__Reply reply;
    Shuf__ResultReply body;
    Shuf__Sums sums;
};

static void begin_reply(const struct shuf__result_request *r, struct reply *reply)
{
    const struct shuf__backend *backend = shuf__engine_backend(r->engine);
    const struct shuf__request *request = &r->key.request;
    const struct shuf__permutation *p = shuf__request_permutation(request);
    const enum shuf__distribution distribution = shuf__request_distribution(request);
    reply->reply = (Shuf__Reply)SHUF__REPLY__INIT;
    reply->body = (Shuf__ResultReply)SHUF__RESULT_REPLY__INIT;
    reply->reply.body_case = SHUF__REPLY__BODY_RESULT;
    reply->reply.result = &reply->body;
    reply->body.record = request->kind == SHUF__SHUFFLE ? request->shuffle.record : 0;
    reply->body.distribution = shuf__wire_distribution(distribution);
    reply->body.method = shuf__wire_method(distribution);
    if (p)
        reply->body.algorithm = (char *)(uintptr_t)shuf__algorithm_name(p->algorithm);
    reply->body.dtype = (Shuf__Dtype)request->dtype;
    reply->body.rows = r->shape.rows;
    reply->body.count = r->shape.count;
    reply->body.bytes = r->shape.bytes;
    reply->body.backend = (char *)(uintptr_t)backend->ops->name;
    reply->body.device = (char *)(uintptr_t)backend->device;
    reply->body.transport = r->transport;
    reply->body.key_check = request->key.check;
    reply->body.shared = r->shared;
}

static void describe_sums(const struct shuf__request *request, const struct shuf__sums *sums,
                          struct reply *reply)
{
    const struct shuf__measure measure = shuf__measure_of(request);
    reply->sums = (Shuf__Sums)SHUF__SUMS__INIT;
    reply->sums.centre = measure.centre;
    reply->sums.scale = measure.scale;
    reply->sums.z1 = sums->power[0];
    reply->sums.z2 = sums->power[1];
    reply->sums.z3 = sums->power[2];
    reply->sums.z4 = sums->power[3];
    reply->sums.least = sums->least;
    reply->sums.largest = sums->largest;
    reply->body.sums = &reply->sums;
}

static void describe_summary(const struct shuf__result_request *r, struct shuf__summary *summary,
                             struct reply *reply)
{
    reply->body.device_ns = summary->device_ns;
    if (r->waiter.options.fingerprint)
        reply->body.fingerprint = summary->fingerprint;
    if (r->waiter.options.sums)
        describe_sums(&r->key.request, &summary->sums, reply);
    if (!r->waiter.options.samples)
        return;
    reply->body.n_first = summary->n_first;
    reply->body.first = summary->first;
    reply->body.n_last = summary->n_last;
    reply->body.last = summary->last;
}

/* ---- Leases ---- */

/* Whether the client has read all replies. A sent descriptor counts against the limit of the
 * daemon's user until the client reads it. So each client may have only one descriptor that it has
 * not read. */
static bool has_read_all(const struct shuf__session *session)
{
    int unread = 0;
    return ioctl(session->fd, SIOCOUTQ, &unread) != 0 || unread == 0;
}

static shuf_status hand_out(const struct shuf__session *session,
                            const struct shuf__allocation *allocation, bool fresh,
                            Shuf__ResultReply *body, struct shuf__error *error)
{
    if (allocation->kind == SHUF__MEMORY_CUDA_IPC) {
        body->ipc_handle.data = (uint8_t *)(uintptr_t)allocation->block.ipc;
        body->ipc_handle.len = sizeof allocation->block.ipc;
        return SHUF_OK;
    }
    if (!fresh)
        return SHUF_OK;
    if (!has_read_all(session))
        return shuf__fail(error, SHUF_BUSY,
                          "descriptor of a block: the client has not read the replies before it; "
                          "read them first");
    body->descriptor = true;
    return SHUF_OK;
}

/* Makes the reference to the entry a lease, and gives the client the block. If it fails, the client
 * does not get the block. */
static shuf_status lease(struct shuf__result_request *r, const uint8_t *event,
                         Shuf__ResultReply *body, struct shuf__error *error)
{
    bool fresh;
    struct shuf__cache_entry *entry = r->waiter.entry;
    const struct shuf__backend *backend = shuf__engine_backend(r->session->all->engine);
    body->block = entry->allocation->id;
    body->block_bytes = entry->allocation->bytes;
    if (r->transport == SHUF__TRANSPORT__TRANSPORT_INLINE) /* a buffer that only Write fills */
        return shuf__lease_take(&r->session->leases, entry, r->transport, false, &body->lease,
                                error);
    if (shuf__client_add_mapping(&r->session->client, entry->allocation, &fresh, error))
        return error->status;
    if (hand_out(r->session, entry->allocation, fresh, body, error) ||
        shuf__lease_take(&r->session->leases, entry, r->transport, false, &body->lease, error)) {
        if (fresh)
            shuf__client_unmapped(&r->session->client, &entry->allocation->id, 1);
        return error->status;
    }
    if (shuf__side_of(entry->allocation->kind) == SHUF__SIDE_DEVICE)
        body->device_id = (char *)(uintptr_t)backend->device_id;
    if (event) {
        body->ipc_event.data = (uint8_t *)(uintptr_t)event;
        body->ipc_event.len = SHUF__IPC_HANDLE;
    }
    return SHUF_OK;
}

/* ---- Sending ---- */

static void send_values(struct shuf__result_request *r, Shuf__Reply *reply)
{
    shuf__lease_end_prefetch(&r->session->leases, r->waiter.entry);
    shuf__session_reply(r->session, reply, r->waiter.entry, NULL);
}

static void count_bytes(const struct shuf__result_request *r)
{
    struct shuf__stats *stats = r->session->all->stats;
    if (shuf__result_request_leases(r))
        stats->leased_bytes += r->shape.bytes;
    else if (r->transport == SHUF__TRANSPORT__TRANSPORT_INLINE)
        stats->payload_bytes += r->shape.bytes;
}

void shuf__result_reply(struct shuf__result_request *r, const uint8_t *event)
{
    struct reply reply;
    struct shuf__error error;
    struct shuf__cache_entry *entry = r->waiter.entry;
    struct shuf__summary summary = entry->summary; /* the reply points into it */
    const bool leases = shuf__result_request_leases(r);
    begin_reply(r, &reply);
    describe_summary(r, &summary, &reply);
    if (leases && lease(r, event, &reply.body, &error)) {
        shuf__compute_unref(entry);
        shuf__session_fail(r->session, &error);
        return;
    }
    shuf__service_of(r->session)->served += !shuf__cache_key_is_buffer(&r->key);
    count_bytes(r);
    if (!leases && r->transport == SHUF__TRANSPORT__TRANSPORT_INLINE) {
        send_values(r, &reply.reply);
        return;
    }
    if (!leases)
        shuf__compute_unref(entry);
    const struct shuf__lent lent = {.allocation = reply.body.descriptor ? entry->allocation : NULL,
                                    .lease = reply.body.lease};
    shuf__session_reply(r->session, &reply.reply, NULL, &lent);
}

void shuf__result_reply_summary(const struct shuf__result_request *r,
                                const struct shuf__summary *summary)
{
    struct reply reply;
    struct shuf__summary copy = *summary; /* the reply points into it */
    begin_reply(r, &reply);
    describe_summary(r, &copy, &reply);
    shuf__service_of(r->session)->served++;
    shuf__session_reply(r->session, &reply.reply, NULL, NULL);
}

void shuf__result_reply_empty(struct shuf__result_request *r)
{
    struct reply reply;
    if (r->transport != SHUF__TRANSPORT__TRANSPORT_NONE)
        r->transport = SHUF__TRANSPORT__TRANSPORT_INLINE;
    begin_reply(r, &reply);
    shuf__service_of(r->session)->served++;
    shuf__session_reply(r->session, &reply.reply, NULL, NULL);
}

shuf_status shuf__result_reply_prefetch(struct shuf__result_request *r, struct shuf__error *error)
{
    uint64_t id;
    struct reply reply;
    if (shuf__lease_take(&r->session->leases, r->waiter.entry, r->transport, true, &id, error))
        return error->status;
    begin_reply(r, &reply);
    reply.body.transport = SHUF__TRANSPORT__TRANSPORT_NONE;
    reply.body.lease = id;
    shuf__session_reply(r->session, &reply.reply, NULL, NULL);
    return SHUF_OK;
}
