/* SPDX-License-Identifier: MIT
 *
 * The handlers of requests, but those for a result (result.c) and look-ups (index.c), and the
 * choice of the handler. A handler replies, or submits a job and lets the session wait for it.
 */
#include "cache/compute.h"
#include "handlers.h"
#include "identity.h"
#include "memory/transport.h"
#include "message.h"
#include "metrics_text.h"
#include "result_message.h"
#include "service.h"
#include "session_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Hello ---- */

/* Checks the version of the protocol. The refusal of a wrong version names both versions. */
static void handle_hello(struct shuf__session *session, const Shuf__Request *request)
{
    const struct shuf__backend *backend = shuf__engine_backend(session->all->engine);
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__HelloReply hello = SHUF__HELLO_REPLY__INIT;
    struct shuf__error error;
    hello.version = SHUF__PROTOCOL_VERSION;
    hello.daemon = (char *)SHUF__DAEMON;
    hello.backend = (char *)(uintptr_t)backend->ops->name;
    hello.device = (char *)(uintptr_t)backend->device;
    reply.body_case = SHUF__REPLY__BODY_HELLO;
    reply.hello = &hello;
    if (request->hello->version != SHUF__PROTOCOL_VERSION) {
        shuf__fail(&error, SHUF_VERSION,
                   "protocol version %" PRIu32 ": expected %d, which " SHUF__DAEMON " speaks",
                   request->hello->version, SHUF__PROTOCOL_VERSION);
        shuf__session_refuse(session, &reply, &error);
        return;
    }
    session->greeted = true;
    shuf__log_client(session->all->log, SHUF__LOG_DEBUG, "client pid %ld, uid %ld: %.64s",
                     (long)session->client.pid, (long)session->client.uid, request->hello->client);
    shuf__session_reply(session, &reply, NULL, NULL);
}

/* ---- Status ---- */

/* Describes the daemon, its load, and its users. It does not use the device, so it answers at once
 * even if the device is busy. Users see their own row and the totals. Root and the daemon's user
 * see all rows. */

enum { METRICS_PLACES = SHUF__PUBLICATIONS * sizeof(struct shuf__publication) };

struct users {
    Shuf__User user[SHUF__ACCOUNTS_LISTED], *pointers[SHUF__ACCOUNTS_LISTED];
};

/* The mapped bytes of both sides, and the process that has most bytes mapped on one side. */
static void describe_mapped(const struct shuf__account *account, Shuf__User *user)
{
    const uint64_t *most = account->most_mapped;
    const enum shuf__side side =
        most[SHUF__SIDE_HOST] >= most[SHUF__SIDE_DEVICE] ? SHUF__SIDE_HOST : SHUF__SIDE_DEVICE;
    user->mapped = account->mapped[SHUF__SIDE_HOST] + account->mapped[SHUF__SIDE_DEVICE];
    user->mapped_pid = (uint64_t)account->mapped_pid[side];
}

static void describe_user(const struct shuf__account *account, Shuf__User *user)
{
    *user = (Shuf__User)SHUF__USER__INIT;
    user->uid = account->uid;
    user->clients = account->clients;
    user->leases = shuf__account_leases(account);
    user->blocks = account->blocks;
    user->bytes = shuf__account_bytes(account);
    user->idle = shuf__account_idle(account);
    describe_mapped(account, user);
}

static void describe_users(const struct shuf__session *session, struct users *users,
                           Shuf__StatusReply *status)
{
    struct shuf__allocations *allocations = &shuf__service_of(session)->allocations;
    shuf__mapped_bytes_read(allocations);
    const struct shuf__accounts_listed listed = shuf__accounts_list(
        &allocations->accounts, shuf__session_is_privileged(session) ? NULL : &session->client.uid);
    for (unsigned i = 0; i < listed.count; i++) {
        describe_user(listed.account[i], &users->user[i]);
        users->pointers[i] = &users->user[i];
    }
    status->n_users = listed.count;
    status->users = users->pointers;
    status->other_users = listed.others;
}

/* Measures the limit of host memory now. For device memory it takes the limit that the last job has
 * measured, because a busy driver may not answer at once. */
static void describe_memory(struct shuf__service *service, const struct shuf__backend *backend,
                            Shuf__StatusReply *status)
{
    struct shuf__allocations *allocations = &service->allocations;
    shuf__allocations_refresh(allocations, SHUF__MEMORY_MEMFD);
    const struct shuf__budget *own = &allocations->budgets[shuf__side_of(backend->ops->own)];
    const struct shuf__budget *host = &allocations->budgets[SHUF__SIDE_HOST];
    status->memory_used = own->used;
    status->memory_limit = own->limit;
    status->host_used = host->used;
    status->host_limit = host->limit;
    status->blocks = allocations->count;
    status->buffers = allocations->buffers;
    status->pending_free = allocations->pending_free_count;
    status->host_idle = service->pool.idle_bytes[SHUF__SIDE_HOST];
    status->host_idle_limit = host->idle_limit;
    status->device_idle_limit = allocations->budgets[SHUF__SIDE_DEVICE].idle_limit;
    status->device_idle = service->pool.idle_bytes[SHUF__SIDE_DEVICE];
    status->leases = service->leases.table.count;
    status->hits = service->cache.hits;
    status->joined = service->cache.joined;
    status->computed = service->cache.computed;
    status->computed_on_host = service->cache.computed_on_host;
    status->evicted = service->pool.evicted;
}

/* The places that work, and the first fault of another one. */
static void describe_metrics(struct shuf__service *service, char places[METRICS_PLACES],
                             Shuf__StatusReply *status)
{
    size_t used = 0;
    places[0] = '\0';
    status->metrics = places;
    for (int i = 0; i < SHUF__PUBLICATIONS; i++) {
        struct shuf__publication *p = &service->publications[i];
        if (p->fault[0] && !status->metrics_fault[0])
            status->metrics_fault = p->fault;
        else if (!p->fault[0] && p->place[0])
            used += (size_t)snprintf(places + used, METRICS_PLACES - used, "%s%s",
                                     used > 0 ? ", " : "", p->place);
    }
}

static void handle_status(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__service *service = shuf__service_of(session);
    const struct shuf__backend *backend = shuf__engine_backend(service->engine);
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__StatusReply status = SHUF__STATUS_REPLY__INIT;
    struct users users;
    char places[METRICS_PLACES];
    (void)request; /* it has no fields */
    status.daemon = (char *)SHUF__DAEMON;
    status.backend = (char *)(uintptr_t)backend->ops->name;
    status.device = (char *)(uintptr_t)backend->device;
    status.device_id = (char *)(uintptr_t)backend->device_id;
    status.configuration = (char *)(uintptr_t)service->config->file;
    status.pid = (uint64_t)getpid();
    status.pid_namespace = shuf__pid_namespace();
    status.uptime_ms = uv_now(service->loop) - service->start_ms;
    status.clients = service->sessions.count;
    status.client_limit = service->sessions.limit;
    status.queued = shuf__engines_queued(service->engine);
    status.queue_limit = service->config->queue;
    status.served = service->served;
    status.lending_fault = (char *)(uintptr_t)shuf__transport_lending_fault();
    status.reload_fault = service->reload_fault;
    status.gpu_fault = service->gpu_fault;
    status.copies_host = *status.lending_fault != '\0';
    status.log_dropped = shuf__log_losses(service->log).dropped;
    describe_metrics(service, places, &status);
    describe_memory(service, backend, &status);
    describe_users(session, &users, &status);
    shuf__log_client(service->log, SHUF__LOG_DEBUG,
                     "client pid %ld, uid %ld: request %" PRIu64 ": status",
                     (long)session->client.pid, (long)session->client.uid, session->id);
    reply.body_case = SHUF__REPLY__BODY_STATUS_REPLY;
    reply.status_reply = &status;
    shuf__session_reply(session, &reply, NULL, NULL);
}

/* ---- Release: gives leases back ---- */

static void handle_release(struct shuf__session *session, const Shuf__Request *request)
{
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__ReleaseReply body = SHUF__RELEASE_REPLY__INIT;
    struct shuf__error error;
    if (shuf__leases_release(&session->leases, request->release, &error)) {
        shuf__session_fail(session, &error);
        return;
    }
    reply.body_case = SHUF__REPLY__BODY_RELEASE;
    reply.release = &body;
    shuf__session_reply(session, &reply, NULL, NULL);
}

/* ---- Leases ---- */

/* Lists leases, one page for each request. Users see their own leases. Root and the daemon's user
 * see all leases. */

enum {
    PAGE = 16,   /* entries in a reply, each at most about 260 bytes, so a page fits a frame */
    LOOK = 4096, /* most leases that one request looks at, so that others need not wait long */
};

static bool may_see(const struct shuf__session *session, const struct shuf__lease *lease)
{
    return shuf__session_is_privileged(session) || session->client.uid == lease->owner->client->uid;
}

/* An entry of the reply, with the messages that it points at. */
struct entry {
    Shuf__LeaseEntry message;
    struct shuf__result_message request;
};

static void fill(const struct shuf__lease *lease, uint64_t now, struct entry *filled)
{
    Shuf__LeaseEntry *to = &filled->message;
    const struct shuf__cache_entry *entry = lease->entry;
    const struct shuf__shape shape = shuf__request_shape(&entry->key.request);
    *to = (Shuf__LeaseEntry)SHUF__LEASE_ENTRY__INIT;
    to->id = lease->id;
    to->pid = (uint64_t)lease->owner->client->pid;
    to->uid = lease->owner->client->uid;
    to->transport = lease->transport;
    to->prefetch = lease->prefetch;
    to->ready = entry->ready;
    to->age_ms = now - lease->since_ms;
    to->block = entry->allocation ? entry->allocation->id : 0; /* 0 before its job starts */
    to->block_bytes = entry->allocation ? entry->allocation->bytes : 0;
    to->rows = shape.rows;
    to->count = shape.count;
    shuf__result_message_of(&entry->key.request, &filled->request);
    to->request = &filled->request.result;
}

static void handle_leases(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__service *service = shuf__service_of(session);
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__LeasesReply page = SHUF__LEASES_REPLY__INIT;
    struct entry entries[PAGE];
    Shuf__LeaseEntry *pointers[PAGE];
    const struct shuf__lease_table *table = &service->leases.table;
    const struct shuf__ids *ids = &service->leases.ids;
    size_t i = shuf__lease_table_above(table, shuf__ids_number(ids, request->leases->after));
    for (size_t looked = 0; i < table->used && looked < LOOK && page.n_lease < PAGE;
         i++, looked++) {
        const struct shuf__lease *lease = table->slots[i].lease;
        if (!lease || !may_see(session, lease))
            continue;
        fill(lease, uv_now(service->loop), &entries[page.n_lease]);
        pointers[page.n_lease] = &entries[page.n_lease].message;
        page.n_lease++;
    }
    page.next = i < table->used ? shuf__ids_of(ids, table->slots[i - 1].number) : 0;
    page.lease = pointers;
    reply.body_case = SHUF__REPLY__BODY_LEASES;
    reply.leases = &page;
    shuf__session_reply(session, &reply, NULL, NULL);
}

/* ---- Write ---- */

/* Fills a part of a buffer, by a job. The loop never touches the memory of a buffer: a client that
 * punches holes in it makes each access wait in the kernel. */

struct write_job {
    struct shuf__session_job job;
    struct shuf__cache_entry *buffer; /* a reference */
    uint64_t offset;
    size_t count;
    uint8_t data[];
};

static void run_write(struct shuf__engine_job *engine_job, struct shuf__backend *backend)
{
    struct write_job *w = (struct write_job *)shuf__session_job_of(engine_job);
    w->job.error.status = backend->ops->write(backend, &w->buffer->allocation->block, w->offset,
                                              w->count, w->data, &w->job.error);
}

static void release_write(struct shuf__session_job *job)
{
    shuf__compute_unref(((struct write_job *)job)->buffer);
}

static void reply_write(const struct shuf__session_job *job)
{
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__WriteReply body = SHUF__WRITE_REPLY__INIT;
    reply.body_case = SHUF__REPLY__BODY_WRITE;
    reply.write = &body;
    shuf__session_reply(job->session, &reply, NULL, NULL);
}

static struct write_job *make_write_job(struct shuf__cache_entry *buffer,
                                        const Shuf__Write *message)
{
    struct write_job *w = malloc(sizeof *w + message->data.len);
    if (!w)
        return NULL;
    *w = (struct write_job){
        .job = {.engine_job = {.name = "shufd: write",
                               .run = run_write,
                               .may_wait_for_client =
                                   shuf__allocation_may_wait_for_client(buffer->allocation)},
                .release = release_write,
                .reply = reply_write},
        .buffer = buffer,
        .offset = message->offset,
        .count = message->data.len,
    };
    memcpy(w->data, message->data.data, message->data.len);
    return w;
}

static void submit_write(struct shuf__session *session, struct shuf__cache_entry *buffer,
                         const Shuf__Write *message)
{
    struct shuf__error error;
    struct write_job *w = make_write_job(buffer, message);
    struct shuf__engine *engine = shuf__cache_entry_engine(buffer);
    if (!w)
        shuf__fail(&error, SHUF_NO_MEMORY, "request: out of memory");
    else if (shuf__session_job_submit(&w->job, engine, session, &error) == SHUF_OK) {
        shuf__cache_entry_ref(buffer);
        return;
    }
    free(w);
    shuf__session_fail(session, &error);
}

static shuf_status parse_write(const struct shuf__session *session, const Shuf__Write *message,
                               struct shuf__cache_entry **buffer, struct shuf__error *error)
{
    const struct shuf__lease *lease = shuf__lease_find(&session->leases, message->lease, error);
    if (!lease)
        return error->status;
    *buffer = lease->entry;
    if (!shuf__cache_key_is_buffer(&lease->entry->key))
        return shuf__fail(error, SHUF_INVALID,
                          "lease %" PRIu64 ": a result, expected a buffer to write to",
                          message->lease);
    if (message->data.len == 0 || message->data.len > SHUF__WRITE_MAX)
        return shuf__fail(error, SHUF_INVALID, "data of %zu bytes: expected 1 to %d",
                          message->data.len, SHUF__WRITE_MAX);
    return shuf__write_check(message->lease, message->offset, message->data.len,
                             lease->entry->bytes, error);
}

static void handle_write(struct shuf__session *session, const Shuf__Request *message)
{
    struct shuf__error error;
    struct shuf__cache_entry *buffer = NULL;
    const Shuf__Write *write = message->write;
    if (parse_write(session, write, &buffer, &error))
        shuf__session_fail(session, &error);
    else
        submit_write(session, buffer, write);
}

/* ---- Drop ---- */

/* Frees the idle blocks of a user, and the prefetched results of the connection. Users may free
 * only their own blocks. Root and the daemon's user may free the blocks of all users. */

static shuf_status check_drop(const struct shuf__session *session, const Shuf__Drop *drop,
                              struct shuf__error *error)
{
    const uint32_t own = session->client.uid;
    const bool all = drop->of_case == SHUF__DROP__OF_ALL;
    const bool other = drop->of_case == SHUF__DROP__OF_UID && drop->uid != own;
    if ((!all && !other) || shuf__session_is_privileged(session))
        return SHUF_OK;
    if (all)
        return shuf__fail(error, SHUF_DENIED,
                          "all users: expected root or the daemon's user, not uid %" PRIu32, own);
    return shuf__fail(error, SHUF_DENIED,
                      "user %" PRIu32 ": expected your own uid, %" PRIu32
                      "; only root and the daemon's user drop the results of others",
                      drop->uid, own);
}

static void reply_drop(struct shuf__session *session, const struct shuf__dropped *dropped)
{
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__DropReply body = SHUF__DROP_REPLY__INIT;
    body.results = dropped->results;
    body.host_bytes = dropped->bytes[SHUF__SIDE_HOST];
    body.device_bytes = dropped->bytes[SHUF__SIDE_DEVICE];
    body.mapped_bytes = dropped->mapped;
    reply.body_case = SHUF__REPLY__BODY_DROP;
    reply.drop = &body;
    shuf__session_reply(session, &reply, NULL, NULL);
}

static void handle_drop(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__error error;
    const Shuf__Drop *drop = request->drop;
    if (check_drop(session, drop, &error)) {
        shuf__session_fail(session, &error);
        return;
    }
    const bool all = drop->of_case == SHUF__DROP__OF_ALL;
    const uint32_t uid = drop->of_case == SHUF__DROP__OF_UID ? drop->uid : session->client.uid;
    if (all || uid == session->client.uid)
        shuf__lease_end_prefetches(&session->leases);
    const struct shuf__dropped dropped =
        shuf__pool_drop(&shuf__service_of(session)->pool, all, uid);
    reply_drop(session, &dropped);
}

/* ---- Metrics ---- */

/* Sends the metrics of the daemon as text, which is the payload of the reply. */
static void handle_metrics(struct shuf__session *session, const Shuf__Request *request)
{
    size_t size;
    struct shuf__error error;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__MetricsReply body = SHUF__METRICS_REPLY__INIT;
    char *text = shuf__metrics_text(
        shuf__service_of(session), shuf__metrics_reader_of(session->client.uid),
        request->metrics->openmetrics ? SHUF__EXPOSITION_OPENMETRICS : SHUF__EXPOSITION_PROMETHEUS,
        &size);
    if (!text) {
        shuf__fail(&error, SHUF_NO_MEMORY, "metrics: out of memory");
        shuf__session_fail(session, &error);
        return;
    }
    reply.body_case = SHUF__REPLY__BODY_METRICS;
    reply.metrics = &body;
    shuf__session_reply_text(session, &reply, text, size);
}

/* ---- The handler of a request ---- */

#define WORD(NAME, name) " " #name

typedef void handler(struct shuf__session *session, const Shuf__Request *request);

static handler *find_handler(const Shuf__Request *request)
{
    static handler *const handlers[] = {
        [SHUF__REQUEST__BODY_HELLO] = handle_hello,
        [SHUF__REQUEST__BODY_STATUS] = handle_status,
        [SHUF__REQUEST__BODY_RELEASE] = handle_release,
        [SHUF__REQUEST__BODY_LEASES] = handle_leases,
        [SHUF__REQUEST__BODY_INDEX] = shuf__handle_index,
        [SHUF__REQUEST__BODY_WRITE] = handle_write,
        [SHUF__REQUEST__BODY_DROP] = handle_drop,
        [SHUF__REQUEST__BODY_METRICS] = handle_metrics,
        [SHUF__REQUEST__BODY_RESULT] = shuf__handle_result,
    };
    const size_t body = (size_t)request->body_case;
    return body < sizeof handlers / sizeof handlers[0] ? handlers[body] : NULL;
}

static void refuse_request(struct shuf__session *session, const char *text)
{
    Shuf__Reply reply = SHUF__REPLY__INIT;
    struct shuf__error error;
    shuf__fail(&error, SHUF_PROTOCOL, "%s", text);
    shuf__session_refuse(session, &reply, &error);
}

void shuf__dispatch(struct shuf__session *session, const Shuf__Request *request)
{
    handler *handle = find_handler(request);
    const bool hello = request->body_case == SHUF__REQUEST__BODY_HELLO;
    if (!handle)
        refuse_request(session,
                       "request: unknown kind, expected one of result" SHUF__OTHER_KINDS(WORD));
    else if (!session->greeted && !hello)
        refuse_request(session, "first request: expected hello");
    else if (session->greeted && hello)
        refuse_request(session, "hello: expected once");
    else
        handle(session, request);
}
