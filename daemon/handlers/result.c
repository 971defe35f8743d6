/* SPDX-License-Identifier: MIT
 *
 * Result: a permutation, stream, shuffle, plan or buffer. serve() has the steps in the order of
 * this file: parse, release leases and admit the named key; choose the memory, the outputs and the
 * engine; find or add the entry; compute at once, or submit a job and wait. The replies are in
 * result_reply.c.
 */
#include "result.h"
#include "handlers.h"
#include "memory/acquire.h"
#include "result_message.h"
#include "service.h"

#include <stdlib.h>
#include <string.h>

/* ---- 1. Parse, release leases, and admit the named key ---- */

/* A client can write to the input, so requests never share the result of a shuffle. */
static shuf_status find_input(struct shuf__result_request *r, uint64_t id,
                              struct shuf__error *error)
{
    const struct shuf__lease *lease = shuf__lease_find(&r->session->leases, id, error);
    if (!lease || shuf__shuffle_check_input(&r->key.request, id, lease->entry->bytes, error))
        return error->status;
    r->input = shuf__cache_entry_ref(lease->entry);
    return SHUF_OK;
}

static shuf_status parse(struct shuf__result_request *r, const Shuf__Result *message,
                         const Shuf__Delivery **delivery, struct shuf__error *error)
{
    *delivery = shuf__parse_delivery(message, error);
    if (!*delivery || shuf__parse_result(message, &r->key.request, error))
        return error->status;
    return r->key.request.kind == SHUF__SHUFFLE ? find_input(r, message->shuffle->lease, error)
                                                : SHUF_OK;
}

/* Parses the message before it releases leases, because one of them may be the input of this
 * shuffle. If both fail, the client gets the error of the release. */
static shuf_status parse_and_release(struct shuf__result_request *r, const Shuf__Result *message,
                                     const Shuf__Delivery **delivery, struct shuf__error *error)
{
    struct shuf__error invalid;
    const Shuf__Release *give_back = message->delivery ? message->delivery->give_back : NULL;
    const shuf_status status = parse(r, message, delivery, &invalid);
    if (give_back && shuf__leases_release(&r->session->leases, give_back, error))
        return error->status;
    if (status)
        *error = invalid;
    return status;
}

static shuf_status admit_key(struct shuf__result_request *r, struct shuf__error *error)
{
    const struct shuf__session *session = r->session;
    return shuf__keyring_admit(&shuf__service_of(session)->keyring, session->client.uid,
                               session->fd, &r->key.request.key, error);
}

/* ---- 2. Choose the memory, the outputs and the engine ---- */

/* The result of a shuffle must be on the side of its input, host or device. */
static bool find_beside(const struct shuf__result_request *r, struct shuf__beside *beside)
{
    const struct shuf__allocation *input = r->input ? r->input->allocation : NULL;
    if (input)
        *beside = (struct shuf__beside){input->kind, "the input is"};
    return input != NULL;
}

static shuf_status choose_transport(struct shuf__result_request *r, const Shuf__Delivery *delivery,
                                    struct shuf__error *error)
{
    const struct shuf__accepted accepted = {delivery->accept, delivery->n_accept};
    const struct shuf__backend *backend = shuf__engine_backend(r->session->all->engine);
    struct shuf__beside beside;
    if (shuf__transport_pick(&r->session->client, backend, &accepted,
                             find_beside(r, &beside) ? &beside : NULL, &r->transport,
                             &r->key.memory, error))
        return error->status;
    if (shuf__cache_key_is_buffer(&r->key) && r->transport == SHUF__TRANSPORT__TRANSPORT_NONE)
        return shuf__fail(error, SHUF_INVALID,
                          "accept: no transport, expected the one by which the client fills the "
                          "buffer");
    return SHUF_OK;
}

/* A fingerprint and sums need the computed values. So a reply with them has no event. */
static void choose_outputs(struct shuf__result_request *r, const Shuf__Delivery *delivery)
{
    const bool summary = delivery->fingerprint || delivery->sums;
    r->prefetch = delivery->prefetch;
    r->key.uid = r->session->client.uid;
    r->waiter.options = (struct shuf__compute_options){
        .fingerprint = delivery->fingerprint,
        .fingerprint_index = delivery->fingerprint_index,
        .sums = delivery->sums,
        .samples =
            shuf__cache_key_is_shared(&r->key) && (summary || !shuf__result_request_leases(r)),
        .event = delivery->event && !summary,
    };
}

/* Whether the client gets a copy or a summary of values that may be in any memory. */
static bool may_be_anywhere(const struct shuf__result_request *r)
{
    const enum shuf__request_kind kind = r->key.request.kind;
    const struct shuf__budget *host =
        &shuf__service_of(r->session)->allocations.budgets[SHUF__SIDE_HOST];
    return !shuf__result_request_leases(r) && r->shape.bytes <= host->limit &&
           (kind == SHUF__PERMUTATION || kind == SHUF__STREAM);
}

/* The least device memory that r->engine, a GPU, needs: for the result and its workspace. A summary
 * in parts needs one block. */
static uint64_t device_bytes(const struct shuf__result_request *r)
{
    const struct shuf__backend *gpu = shuf__engine_backend(r->engine);
    if (shuf__summary_job_applies(r))
        return SHUF__BLOCK_UNIT;
    const struct shuf__workspace space = gpu->ops->workspace(gpu, &r->key.request, r->key.memory);
    return (shuf__memory_is_host(space.kind) ? 0 : space.least) +
           (shuf__memory_is_host(r->key.memory) ? 0 : r->shape.bytes);
}

/* Whether r->engine, a GPU, may have this memory now. */
static bool device_may_have_room(const struct shuf__result_request *r)
{
    const struct shuf__memory_request needs = {
        .uid = r->session->client.uid, .kind = SHUF__MEMORY_CUDA_PRIVATE, .bytes = device_bytes(r)};
    return needs.bytes == 0 ||
           shuf__pool_may_have_room(&shuf__service_of(r->session)->pool, &needs);
}

/* The host computes only in its own memory. It also computes what has no room in the memory of a
 * GPU. A shuffle comes after the job of its input. */
static void choose_engine(struct shuf__result_request *r)
{
    struct shuf__placement *placement = &shuf__service_of(r->session)->placement;
    const bool copied = r->transport != SHUF__TRANSPORT__TRANSPORT_NONE;
    struct shuf__engine *engine = r->session->all->engine, *host = shuf__engines_host(engine);
    const bool chosen = shuf__memory_is_host(r->key.memory) || may_be_anywhere(r);
    if (chosen)
        r->engine = shuf__placement_choose(placement, r->key.uid, &r->key.request,
                                           copied ? r->shape.bytes : 0);
    else
        r->engine = r->input && !r->input->ready
                        ? r->input->engine
                        : shuf__placement_device(placement, &r->key.request);
    if (chosen && host != engine && r->engine != host && !device_may_have_room(r))
        r->engine = host;
    if (shuf__engine_backend(r->engine) != shuf__engine_backend(engine))
        r->key.memory = SHUF__MEMORY_MEMFD;
}

/* ---- 3. Find or add the entry ---- */

/* Call it before the computation, because a request above the limit fails. */
static shuf_status check_lease_limit(const struct shuf__result_request *r,
                                     struct shuf__error *error)
{
    if (!shuf__result_request_leases(r) || r->prefetch)
        return SHUF_OK;
    return shuf__lease_check_limit(&r->session->leases, error);
}

/* Finds the entry. If the reply copies the values or has only a summary, the result may be in any
 * kind of memory. */
static struct shuf__cache_entry *find_in_memory(const struct shuf__result_request *r,
                                                struct shuf__cache *cache)
{
    static const enum shuf__memory exported[] = {SHUF__MEMORY_MEMFD, SHUF__MEMORY_CUDA_FD,
                                                 SHUF__MEMORY_CUDA_IPC};
    const struct shuf__backend_ops *ops = shuf__engine_backend(cache->engine)->ops;
    struct shuf__cache_entry *entry = shuf__cache_find(cache, &r->key);
    struct shuf__cache_key key = r->key;
    if (shuf__result_request_leases(r))
        return entry;
    for (size_t i = 0; !entry && i < sizeof exported / sizeof *exported; i++)
        if (exported[i] != r->key.memory && ops->makes[exported[i]]) {
            key.memory = exported[i];
            entry = shuf__cache_find(cache, &key);
        }
    return entry;
}

static bool find_entry(struct shuf__result_request *r, struct shuf__cache *cache)
{
    struct shuf__cache_entry *entry =
        shuf__cache_key_is_shared(&r->key) ? find_in_memory(r, cache) : NULL;
    if (!entry)
        return false;
    r->shared = true;
    if (entry->ready)
        cache->hits++;
    else
        cache->joined++;
    r->waiter.entry = shuf__cache_entry_ref(entry);
    r->engine = entry->engine;
    return true;
}

/* The lists of an exchange belong to the message, which is freed before a job ends. So the request
 * takes the lists of its entry, which are copies. */
static void use_request_of_entry(struct shuf__result_request *r)
{
    if (r->key.request.kind == SHUF__EXCHANGE)
        r->key.request = r->waiter.entry->key.request;
}

/* Adds no entry for the summary of a large result. */
static shuf_status find_or_add_entry(struct shuf__result_request *r, struct shuf__error *error)
{
    struct shuf__cache *cache = &shuf__service_of(r->session)->cache;
    if (find_entry(r, cache)) {
        use_request_of_entry(r);
        return SHUF_OK;
    }
    if (shuf__summary_job_applies(r))
        return SHUF_OK;
    r->waiter.entry = shuf__cache_add(cache, &r->key, r->shape.bytes);
    if (!r->waiter.entry)
        return shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
    r->waiter.entry->engine = r->engine;
    if (r->input)
        r->waiter.entry->input = shuf__cache_entry_ref(r->input);
    use_request_of_entry(r);
    return SHUF_OK;
}

/* ---- 4. Compute at once, or submit a job and wait ---- */

/* A request that waits for its entry, and then for the turn of its session. */
struct waiting {
    struct shuf__pending pending;
    struct shuf__result_request request;
    /* Set when the entry is finished. */
    struct shuf__error error;
    bool has_event;
    uint8_t event[SHUF__IPC_HANDLE];
};

static struct waiting *waiting_of(struct shuf__waiter *waiter)
{
    return (struct waiting *)((char *)waiter - offsetof(struct waiting, request.waiter));
}

static void on_finished(struct shuf__waiter *waiter, const struct shuf__error *error,
                        const uint8_t *event)
{
    struct waiting *w = waiting_of(waiter);
    if (error)
        w->error = *error;
    w->has_event = event != NULL;
    if (event)
        memcpy(w->event, event, sizeof w->event);
    shuf__session_reply_in_turn(w->request.session);
}

static void reply_waiting(struct shuf__pending *pending)
{
    struct waiting *w = (struct waiting *)pending;
    struct shuf__session *session = w->request.session;
    shuf__session_end_pending(session, w->request.waiter.started_ns);
    if (w->error.status) {
        shuf__compute_unref(w->request.waiter.entry);
        shuf__session_fail(session, &w->error);
    } else {
        shuf__result_reply(&w->request, w->has_event ? w->event : NULL);
    }
    free(w);
}

static void cancel_waiting(struct shuf__pending *pending)
{
    struct waiting *w = (struct waiting *)pending;
    if (!pending->is_over)
        shuf__compute_leave(&w->request.waiter);
    shuf__compute_unref(w->request.waiter.entry);
    free(w);
}

static shuf_status submit_and_wait(const struct shuf__result_request *r, struct shuf__error *error)
{
    struct waiting *w = malloc(sizeof *w);
    if (!w)
        return shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
    w->pending =
        (struct shuf__pending){.cancel = cancel_waiting, .reply = reply_waiting, .is_over = false};
    w->request = *r;
    w->request.waiter.finished = on_finished;
    w->error.status = SHUF_OK;
    if (shuf__compute_for(&w->request.waiter, error)) {
        free(w);
        return error->status;
    }
    shuf__session_wait(r->session, &w->pending);
    return SHUF_OK;
}

static shuf_status prefetch(struct shuf__result_request *r, struct shuf__error *error)
{
    if (shuf__compute_ahead(r->waiter.entry, error))
        return error->status;
    return shuf__result_reply_prefetch(r, error);
}

static void note_computed(const struct shuf__result_request *r)
{
    struct shuf__request_record *record = &r->session->record;
    record->computed_ns = uv_hrtime();
    record->started_ns = record->computed_ns - r->waiter.entry->summary.device_ns;
}

static shuf_status compute_and_reply(struct shuf__result_request *r, struct shuf__error *error)
{
    bool has_all;
    const bool was_ready = r->waiter.entry->ready;
    if (shuf__compute_now(r->waiter.entry, &r->waiter.options, &has_all, error))
        return error->status;
    if (!has_all)
        return submit_and_wait(r, error);
    if (!was_ready)
        note_computed(r);
    shuf__result_reply(r, NULL);
    return SHUF_OK;
}

/* ---- The whole way ---- */

/* Counts the values. A prefetch sends no values, and a buffer has none. */
static void note_values(const struct shuf__result_request *r)
{
    struct shuf__request_record *record = &r->session->record;
    const struct shuf__request *request = &r->key.request;
    const struct shuf__permutation *p = shuf__request_permutation(request);
    record->n = p ? p->n : r->shape.count;
    if (!shuf__cache_key_is_buffer(&r->key) && !r->prefetch)
        record->values = r->shape.rows * r->shape.count;
}

static shuf_status serve(struct shuf__result_request *r, const Shuf__Result *message,
                         struct shuf__error *error)
{
    const Shuf__Delivery *delivery;
    if (parse_and_release(r, message, &delivery, error))
        return error->status;
    r->shape = shuf__request_shape(&r->key.request);
    r->session->record.divisible = delivery->divisible;
    if (admit_key(r, error) || choose_transport(r, delivery, error))
        return error->status;
    choose_outputs(r, delivery);
    choose_engine(r);
    note_values(r);
    shuf__result_log(r);
    if (r->shape.bytes == 0) {
        shuf__result_reply_empty(r);
        return SHUF_OK;
    }
    if (check_lease_limit(r, error) || find_or_add_entry(r, error))
        return error->status;
    if (!r->waiter.entry)
        return shuf__summary_job_submit(r, error);
    return r->prefetch ? prefetch(r, error) : compute_and_reply(r, error);
}

void shuf__handle_result(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__error error;
    struct shuf__result_request r = {.session = session};
    if (serve(&r, request->result, &error)) {
        if (r.waiter.entry)
            shuf__compute_unref(r.waiter.entry);
        shuf__session_fail(session, &error);
        shuf__engine_report(session->all->engine, &error);
    }
    if (r.input) /* an entry that needs the input has its own reference */
        shuf__cache_entry_unref(r.input);
}
