/* SPDX-License-Identifier: MIT
 *
 * See fetch.h.
 */
#include "fetch.h"

#include "call.h"
#include "dtype.h"
#include "fetch_parts.h"
#include "held_lease.h"

#include <inttypes.h>
#include <stdio.h>

struct fetch_context {
    const struct shuf__request_message *request;
    shuf_result *result;
};

static shuf_status read_result(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                               struct shuf__error *error)
{
    const struct fetch_context *fetch = trip->context;
    if (shuf__request_message_read_reply(fetch->request, reply, fetch->result, error))
        return error->status;
    const Shuf__ResultReply *p = reply->result;
    if (shuf__check_key(p, trip->delivered > 0, &trip->key_check, error))
        return error->status;
    if (p->lease == 0 && !p->descriptor)
        return SHUF_OK;
    return shuf__fail(error, SHUF_PROTOCOL, "reply with lease %" PRIu64 ": expected none",
                      p->lease);
}

/* A buffer has no values yet. */
static shuf_status make_message(shuf *handle, const shuf_request *request,
                                struct shuf__request_message *m)
{
    if (request->kind == SHUF_BUFFER)
        return shuf__fail(&handle->error, SHUF_INVALID,
                          "kind BUFFER: expected another kind, a buffer can only be leased");
    if (shuf__input_check(handle, request, NULL))
        return handle->error.status;
    if (shuf__request_message_make(m, request, &handle->error))
        return handle->error.status;
    return shuf__set_input(m, request, &handle->error);
}

/* True if the daemon sends the values, to `memory` or `sink` of the trip. */
static bool expect_values(const struct shuf__request_message *m, struct shuf__round_trip *trip)
{
    if (!trip->memory && !trip->sink)
        return false;
    trip->payload_bytes = m->shape.bytes;
    trip->width = m->shape.width;
    return true;
}

static shuf_status fetch_result(shuf *handle, struct shuf__request_message *m,
                                struct shuf__round_trip *trip, shuf_result *result)
{
    shuf_result ignored;
    struct fetch_context fetch = {m, result ? result : &ignored};
    trip->request = &m->message;
    trip->read_reply = read_result;
    trip->context = &fetch;
    trip->generation = m->generation;
    trip->needs_buffer = m->needs_buffer;
    *fetch.result = (shuf_result){.shape = m->shape};
    if (expect_values(m, trip) && shuf__request_message_accept(m, SHUF_INLINE, &handle->error))
        return handle->error.status;
    return shuf__call_run(handle, trip);
}

/* Fetches the values of a result, or its summary. Requests the result in parts if this is faster,
 * or if the daemon has no room for the whole. */
static shuf_status fetch_dividing(shuf *handle, const shuf_request *request,
                                  struct shuf__request_message *m, struct shuf__round_trip *trip,
                                  shuf_result *result)
{
    shuf_result ignored;
    if (!result)
        result = &ignored;
    bool in_parts = false;
    expect_values(m, trip);
    if (shuf__choose_parts(handle, m, &in_parts))
        return handle->error.status;
    if (in_parts)
        return shuf__fetch_parts(handle, request, m, trip, result);
    if (shuf__parts_are_possible(m))
        shuf__request_message_set_divisible(m);
    shuf_status status = fetch_result(handle, m, trip, result);
    return shuf__parts_help(m, status) ? shuf__fetch_parts(handle, request, m, trip, result)
                                       : status;
}

/* The default of the type explains a size that the caller did not expect. */
static const char *origin_of_type(const shuf_request *request)
{
    if (request->kind == SHUF_PERMUTATION && request->permutation.dtype == SHUF_AUTO)
        return ", dtype auto";
    if (request->kind == SHUF_NUMBERS && request->numbers.dtype == SHUF_AUTO)
        return ", dtype auto; SHUF_F32 has 4 bytes";
    return "";
}

static shuf_status refuse_size(const shuf_request *request, const shuf_shape *shape, size_t bytes,
                               struct shuf__error *error)
{
    char rows[40] = "", type[SHUF__DTYPE_TEXT];
    if (shape->rows != 1)
        snprintf(rows, sizeof rows, "%" PRIu64 " rows of ", shape->rows);
    return shuf__fail(error, SHUF_INVALID,
                      "bytes %zu: expected at least %" PRIu64 " for %s%" PRIu64
                      " value%s of %" PRIu64 " bytes (%s%s)",
                      bytes, shape->bytes, rows, shape->count, shape->count == 1 ? "" : "s",
                      shape->width, shuf__dtype_label((int)shape->dtype, type),
                      origin_of_type(request));
}

shuf_status shuf__fetch(shuf *handle, const shuf_request *request, void *out, size_t bytes,
                        shuf_result *result)
{
    struct shuf__request_message m;
    struct shuf__round_trip trip = {.memory = out};
    if (make_message(handle, request, &m))
        return handle->error.status;
    if (bytes < m.shape.bytes)
        return refuse_size(request, &m.shape, bytes, &handle->error);
    if (!out && m.shape.bytes > 0)
        return shuf__fail(&handle->error, SHUF_INVALID, "out NULL: expected %" PRIu64 " bytes",
                          m.shape.bytes);
    return fetch_dividing(handle, request, &m, &trip, result);
}

/* A sink of the caller. */
struct guarded_sink {
    shuf *handle;
    shuf_sink sink;
    void *context;
};

static bool feed_guarded(void *context, const void *bytes, size_t size)
{
    const struct guarded_sink *g = context;
    const struct shuf__error before = shuf__handle_begin_callback(g->handle);
    const bool continues = g->sink(g->context, bytes, size);
    shuf__handle_end_callback(g->handle, &before);
    return continues;
}

shuf_status shuf__fetch_each(shuf *handle, const shuf_request *request, shuf_sink sink,
                             void *context, shuf_result *result)
{
    struct shuf__request_message m;
    struct guarded_sink guarded = {handle, sink, context};
    struct shuf__round_trip trip = {.sink = sink ? feed_guarded : NULL, .sink_context = &guarded};
    if (make_message(handle, request, &m))
        return handle->error.status;
    return sink ? fetch_dividing(handle, request, &m, &trip, result)
                : fetch_result(handle, &m, &trip, result); /* for the cache, whole */
}

shuf_status shuf__fetch_summary(shuf *handle, const shuf_request *request, shuf_result *result)
{
    struct shuf__request_message m;
    struct shuf__round_trip trip = {0};
    if (make_message(handle, request, &m))
        return handle->error.status;
    shuf__request_message_set_fingerprint(&m, 0);
    return fetch_dividing(handle, request, &m, &trip, result);
}
