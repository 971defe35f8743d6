/* SPDX-License-Identifier: MIT
 *
 * The public call that lists leases. It reads them page by page: a daemon may hold more leases than
 * fit one message.
 */
#include "arguments.h"
#include "call.h"
#include "request_message.h"
#include "transport_set.h"

#include <inttypes.h>

/* A page stays in the connection's arena until the next request. */
static shuf_status read_page(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                             struct shuf__error *error)
{
    if (reply->body_case != SHUF__REPLY__BODY_LEASES)
        return shuf__fail(error, SHUF_PROTOCOL, "reply body %d: expected a LeasesReply",
                          (int)reply->body_case);
    *(const Shuf__LeasesReply **)trip->context = reply->leases;
    return SHUF_OK;
}

static shuf_lease_entry read_entry(const Shuf__LeaseEntry *from)
{
    shuf_lease_entry entry = {
        .id = from->id,
        .pid = from->pid,
        .uid = from->uid,
        .transport = shuf__transport_of_wire(from->transport),
        .prefetch = from->prefetch,
        .ready = from->ready,
        .age_ms = from->age_ms,
        .block = from->block,
        .block_bytes = from->block_bytes,
        .rows = from->rows,
        .count = from->count,
        .request = {.kind = SHUF_OTHER_KIND},
    };
    if (from->request)
        entry.request = shuf__request_of_message(from->request);
    return entry;
}

static shuf_status visit_page(shuf *handle, const Shuf__LeasesReply *page, shuf_lease_visitor visit,
                              void *context)
{
    for (size_t i = 0; i < page->n_lease; i++) {
        shuf_lease_entry entry = read_entry(page->lease[i]);
        const struct shuf__error before = shuf__handle_begin_callback(handle);
        const bool continues = visit(context, &entry);
        shuf__handle_end_callback(handle, &before);
        if (!continues)
            return shuf__fail(&handle->error, SHUF_CANCELLED,
                              "stopped by its visitor at lease %" PRIu64, entry.id);
    }
    return SHUF_OK;
}

shuf_status shuf_leases(shuf *handle, shuf_lease_visitor visit, void *context)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(visit));
    if (!call)
        return SHUF_INVALID;
    Shuf__Leases leases = SHUF__LEASES__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    const Shuf__LeasesReply *page;
    uint64_t after = 0;
    request.body_case = SHUF__REQUEST__BODY_LEASES;
    request.leases = &leases;
    do {
        leases.after = after;
        struct shuf__round_trip trip = {
            .request = &request, .read_reply = read_page, .context = &page};
        if (shuf__call_run(handle, &trip) || visit_page(handle, page, visit, context))
            return handle->error.status;
        after = page->next;
    } while (after != 0 && after != leases.after);
    return after == 0
               ? SHUF_OK
               : shuf__fail(&handle->error, SHUF_PROTOCOL,
                            "reply next %" PRIu64 ": expected another page than before", after);
}
