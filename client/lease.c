/* SPDX-License-Identifier: MIT
 *
 * The public calls for leases. A lease that ends is told to the daemon along
 * with the next request where there is one, so that going from one result to the
 * next is one round trip.
 */
#include "lease.h"

#include "call.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The end of a lease ------------------------------------------------------ */

/* What the daemon is told: one lease at most, and one block that is no longer mapped. */
struct farewell {
    Shuf__Release release; /* which points at these: */
    uint64_t lease, block;
};

static void give_back(struct farewell *farewell, uint64_t lease)
{
    farewell->lease = lease;
    farewell->release = (Shuf__Release)SHUF__RELEASE__INIT;
    farewell->release.n_lease = 1;
    farewell->release.lease = &farewell->lease;
    farewell->release.unmapped = &farewell->block;
}

/* Ends the view; the object itself stays. False where there is nobody to tell: the daemon that gave
 * it is gone, or it is the parent of this process that holds the lease. */
static bool end(struct shuf__lease *lease, struct farewell *farewell)
{
    shuf *h = lease->handle;
    bool leased = lease->open.id != 0;
    bool ours = shuf__handle_is_ours(h);
    bool owed =
        leased && ours && h->connection.fd >= 0 && lease->connection == h->connection.generation;
    if (!ours)
        shuf__gpus_forget(h->mappings.gpus);
    give_back(farewell, lease->open.id);
    if (lease->open.event)
        shuf__gpu_event_close(&lease->mapping->view, lease->open.event);
    if (lease->mapping && shuf__mapping_drop(&h->mappings, lease->mapping, owed, &farewell->block))
        farewell->release.n_unmapped = 1;
    lease->mapping = NULL;
    LIST_REMOVE(lease, out);
    return owed;
}

static void discard(struct shuf__lease *lease)
{
    if (lease)
        free(lease->copy);
    free(lease);
}

static shuf_status accept_release(struct shuf__call *call, const Shuf__Reply *reply,
                                  struct shuf__error *error)
{
    (void)call;
    if (reply->body_case == SHUF__REPLY__BODY_RELEASE)
        return SHUF_OK;
    return shuf__fail(error, SHUF_PROTOCOL, "reply body %d: expected a ReleaseReply",
                      (int)reply->body_case);
}

/* A daemon that has gone away has its leases back. */
static shuf_status tell(shuf *h, struct farewell *farewell, struct shuf__error *error)
{
    Shuf__Request request = SHUF__REQUEST__INIT;
    *error = (struct shuf__error){0};
    request.body_case = SHUF__REQUEST__BODY_RELEASE;
    request.release = &farewell->release;
    struct shuf__call call = {.request = &request, .accept = accept_release};
    shuf_status status = shuf__call_once(h, &call, error);
    if (status == SHUF_NO_DAEMON)
        *error = (struct shuf__error){0};
    return error->status;
}

static struct shuf__lease *check_lease(shuf *handle, shuf_lease *lease)
{
    struct shuf__lease *l = (struct shuf__lease *)lease;
    assert(!l || l->handle == handle);
    (void)handle;
    return l;
}

shuf_status shuf_lease_release(shuf *handle, shuf_lease *lease)
{
    struct farewell farewell;
    struct shuf__lease *l = check_lease(handle, lease);
    bool owed = l && end(l, &farewell);
    discard(l);
    handle->error = (struct shuf__error){0};
    return owed ? tell(handle, &farewell, &handle->error) : SHUF_OK;
}

void shuf__lease_abandon(shuf *handle, shuf_lease *lease)
{
    struct shuf__error kept = handle->error;
    shuf_lease_release(handle, lease);
    handle->error = kept;
}

void shuf__leases_end(shuf *handle)
{
    struct farewell unwanted;
    struct shuf__lease *lease;
    while ((lease = LIST_FIRST(&handle->leases))) {
        end(lease, &unwanted);
        discard(lease);
    }
}

bool shuf__leases_make_room(shuf *handle)
{
    struct farewell unmapped;
    struct shuf__error unwanted;
    uint64_t blocks[SHUF__MAPPINGS_IDLE];
    unmapped.release = (Shuf__Release)SHUF__RELEASE__INIT;
    unmapped.release.n_unmapped = shuf__mappings_trim(&handle->mappings, blocks);
    unmapped.release.unmapped = blocks;
    if (unmapped.release.n_unmapped == 0 || handle->connection.fd < 0)
        return false;
    return tell(handle, &unmapped, &unwanted) == SHUF_OK;
}

void shuf__leases_farewell(shuf *handle)
{
    struct farewell all;
    struct shuf__error unwanted;
    all.release = (Shuf__Release)SHUF__RELEASE__INIT;
    all.release.everything = true;
    if (handle->connection.fd >= 0)
        tell(handle, &all, &unwanted);
}

/* ---- Its beginning ----------------------------------------------------------- */

struct taking {
    struct shuf__question question;
    struct farewell farewell; /* of the lease before */
    struct shuf__offer offer;
    struct shuf__lease *lease;
};

static shuf_status make_room(struct shuf__lease *lease, uint64_t bytes, struct shuf__error *error)
{
    if (bytes <= lease->room)
        return SHUF_OK;
    free(lease->copy);
    lease->copy = bytes > SIZE_MAX ? NULL : malloc(bytes);
    lease->room = lease->copy ? bytes : 0;
    if (lease->copy)
        return SHUF_OK;
    return shuf__fail(error, SHUF_NO_MEMORY, "bytes %" PRIu64 ": no memory for a copy of them here",
                      bytes);
}

static shuf_status accept_lease(struct shuf__call *call, const Shuf__Reply *reply,
                                struct shuf__error *error)
{
    struct taking *t = call->answer;
    shuf_result *result = &t->lease->open.result;
    if (shuf__result_read(&t->question, reply, result, error) ||
        shuf__offer_read(reply->result, t->question.transports, &result->shape,
                         shuf__question_is_buffer(&t->question), &t->offer, error))
        return error->status;
    if (t->offer.lease != 0) {
        call->bulk = call->delivered = 0;
        return SHUF_OK;
    }
    if (make_room(t->lease, result->shape.bytes, error))
        return error->status;
    call->bulk = result->shape.bytes;
    call->memory = t->lease->copy;
    return SHUF_OK;
}

/* The old lease was of the connection that was lost, or is given back. */
static void forget_old(struct shuf__call *call)
{
    struct taking *t = call->answer;
    shuf__question_give_back(&t->question, NULL);
}

static shuf_status open_event(struct taking *t, struct shuf__error *error)
{
    if (!t->offer.has_event)
        return SHUF_OK;
    return shuf__gpu_event_open(&t->lease->mapping->view, t->offer.event, &t->lease->open.event,
                                error);
}

/* What the daemon leased is of no use to this process: it goes back, or with the connection. */
static shuf_status refuse(shuf *h, struct taking *t)
{
    struct shuf__error unwanted;
    if (h->error.status == SHUF_PROTOCOL) {
        shuf__connection_close(&h->connection);
        return h->error.status;
    }
    give_back(&t->farewell, t->offer.lease);
    t->farewell.block = t->offer.block;
    t->farewell.release.n_unmapped = !shuf__mapping_known(&h->mappings, t->offer.block);
    tell(h, &t->farewell, &unwanted);
    return h->error.status;
}

static shuf_status map(shuf *h, struct taking *t)
{
    int fd = shuf__connection_descriptor(&h->connection);
    struct shuf__lease *lease = t->lease;
    shuf__mappings_renew(&h->mappings, h->connection.generation);
    shuf_status status =
        shuf__mapping_take(&h->mappings, &t->offer, fd, &lease->mapping, &h->error);
    if (fd >= 0)
        close(fd);
    if (status != SHUF_OK)
        return refuse(h, t);
    if (open_event(t, &h->error)) {
        uint64_t block;
        shuf__mapping_drop(&h->mappings, lease->mapping, false, &block);
        return refuse(h, t);
    }
    return SHUF_OK;
}

static void fill(struct taking *t)
{
    const struct shuf__offer *offer = &t->offer;
    shuf_lease *open = &t->lease->open;
    const void *values = t->lease->mapping ? shuf__mapping_at(t->lease->mapping, offer->offset)
                         : offer->writable ? NULL
                                           : t->lease->copy;
    t->lease->buffer = offer->writable;
    open->data = open->result.shape.bytes > 0 ? values : NULL;
    open->buffer = offer->writable ? (void *)(uintptr_t)open->data : NULL;
    open->transport = offer->transport;
    memcpy(open->device_id, offer->device_id, sizeof open->device_id);
    open->shared = offer->shared;
    open->id = offer->lease;
    open->block = offer->block;
    open->block_bytes = offer->block_bytes;
}

/* t->lease is of no use after a failure. */
static shuf_status take(shuf *h, struct taking *t, bool owed)
{
    struct shuf__call call = {
        .request = &t->question.request,
        .renew = forget_old,
        .accept = accept_lease,
        .answer = t,
        .connection = t->question.connection,
    };
    if (owed)
        shuf__question_give_back(&t->question, &t->farewell.release);
    t->lease->handle = h;
    t->lease->open.event = NULL;
    t->lease->open.result = (shuf_result){.shape = t->question.shape};
    if (shuf__call_run(h, &call))
        return h->error.status;
    if (t->offer.transport != SHUF_INLINE && map(h, t))
        return h->error.status;
    fill(t);
    t->lease->connection = h->connection.generation;
    LIST_INSERT_HEAD(&h->leases, t->lease, out);
    return SHUF_OK;
}

static shuf_status ask_for(struct shuf__question *q, struct shuf__wanted wanted,
                           const shuf_lease_options *options, struct shuf__error *error)
{
    unsigned transports = options ? options->transports : 0;
    if (transports == 0)
        transports = SHUF_MEMFD | SHUF_INLINE;
    if (shuf__question_make(q, wanted, error))
        return error->status;
    if (options && options->event && (transports & SHUF_CUDA_IPC))
        shuf__question_event(q);
    return shuf__question_accept(q, transports, error);
}

/* Whatever fails before the daemon is asked, the old lease goes back to it. */
static shuf_status prepare(struct taking *t, struct shuf__wanted wanted,
                           const shuf_lease_options *options, struct shuf__error *error)
{
    if (ask_for(&t->question, wanted, options, error))
        return error->status;
    if (!t->lease)
        t->lease = calloc(1, sizeof *t->lease);
    return t->lease ? SHUF_OK : shuf__fail(error, SHUF_NO_MEMORY, "lease: no memory to note it");
}

shuf_status shuf__lease_take(shuf *handle, struct shuf__wanted wanted,
                             const shuf_lease_options *options, shuf_lease **lease)
{
    struct taking t;
    struct shuf__error unwanted;
    t.lease = check_lease(handle, *lease);
    bool owed = t.lease && end(t.lease, &t.farewell);
    *lease = NULL;
    shuf_status status = prepare(&t, wanted, options, &handle->error);
    if (status == SHUF_OK)
        status = take(handle, &t, owed);
    else if (owed)
        tell(handle, &t.farewell, &unwanted);
    if (status == SHUF_OK)
        *lease = &t.lease->open;
    else
        discard(t.lease);
    return status;
}

shuf_status shuf_lease_take(shuf *handle, const shuf_permutation *what,
                            const shuf_lease_options *options, shuf_lease **lease)
{
    return shuf__lease_take(handle, (struct shuf__wanted){.permutation = what}, options, lease);
}

/* ---- In between -------------------------------------------------------------- */

shuf_status shuf_lease_read(shuf *handle, const shuf_lease *lease, uint64_t offset, size_t bytes,
                            void *out)
{
    const struct shuf__lease *l = (const struct shuf__lease *)lease;
    uint64_t all = lease->result.shape.bytes;
    if (shuf__handle_check(handle))
        return handle->error.status;
    handle->error = (struct shuf__error){0};
    if (offset > all || bytes > all - offset)
        return shuf__fail(&handle->error, SHUF_INVALID,
                          "offset %" PRIu64 ", bytes %zu: expected to end within the %" PRIu64
                          " bytes of the values",
                          offset, bytes, all);
    if (bytes == 0)
        return SHUF_OK;
    if (!lease->data)
        return shuf__fail(&handle->error, SHUF_INVALID,
                          "lease %" PRIu64 ": a buffer by inline, expected one that is mapped here",
                          lease->id);
    if (l->mapping && !l->mapping->host)
        return shuf__gpu_read(&l->mapping->view, lease->event,
                              (uintptr_t)lease->data - l->mapping->view.address + offset, bytes,
                              out, &handle->error);
    memcpy(out, (const char *)lease->data + offset, bytes);
    return SHUF_OK;
}

static shuf_status accept_prefetch(struct shuf__call *call, const Shuf__Reply *reply,
                                   struct shuf__error *error)
{
    shuf_result unwanted;
    return shuf__result_read(call->answer, reply, &unwanted, error);
}

shuf_status shuf__prefetch(shuf *handle, struct shuf__wanted wanted,
                           const shuf_lease_options *options)
{
    struct shuf__question q;
    if (ask_for(&q, wanted, options, &handle->error))
        return handle->error.status;
    shuf__question_prefetch(&q);
    struct shuf__call call = {.request = &q.request, .accept = accept_prefetch, .answer = &q};
    return shuf__call_run(handle, &call);
}

shuf_status shuf_prefetch(shuf *handle, const shuf_permutation *what,
                          const shuf_lease_options *options)
{
    return shuf__prefetch(handle, (struct shuf__wanted){.permutation = what}, options);
}
