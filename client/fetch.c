/* SPDX-License-Identifier: MIT
 *
 * See fetch.h.
 */
#include "fetch.h"

#include "call.h"

#include <inttypes.h>
#include <stdio.h>

struct fetching {
    const struct shuf__question *question;
    shuf_result *result;
};

static shuf_status accept_result(struct shuf__call *call, const Shuf__Reply *reply,
                                 struct shuf__error *error)
{
    const struct fetching *f = call->answer;
    if (shuf__result_read(f->question, reply, f->result, error))
        return error->status;
    const Shuf__ResultReply *p = reply->result;
    if (p->lease == 0 && !p->descriptor)
        return SHUF_OK;
    return shuf__fail(error, SHUF_PROTOCOL, "reply with lease %" PRIu64 ": expected none",
                      p->lease);
}

/* `call` says where the bytes go; without memory and sink they stay where they are. */
static shuf_status run(shuf *handle, struct shuf__question *q, struct shuf__call *call,
                       shuf_result *result)
{
    shuf_result unwanted;
    struct fetching f = {q, result ? result : &unwanted};
    call->request = &q->request;
    call->accept = accept_result;
    call->answer = &f;
    call->connection = q->connection;
    *f.result = (shuf_result){.shape = q->shape};
    if (call->memory || call->sink) {
        call->bulk = q->shape.bytes;
        if (shuf__question_accept(q, SHUF_INLINE, &handle->error))
            return handle->error.status;
    }
    return shuf__call_run(handle, call);
}

static shuf_status refuse_size(const shuf_shape *shape, size_t bytes, struct shuf__error *error)
{
    char rows[40] = "";
    if (shape->rows != 1)
        snprintf(rows, sizeof rows, "%" PRIu64 " rows of ", shape->rows);
    return shuf__fail(
        error, SHUF_INVALID,
        "bytes %zu: expected at least %" PRIu64 " for %s%" PRIu64 " value%s of %u bytes", bytes,
        shape->bytes, rows, shape->count, shape->count == 1 ? "" : "s", shape->width);
}

shuf_status shuf__fetch(shuf *handle, struct shuf__wanted wanted, void *out, size_t bytes,
                        shuf_result *result)
{
    struct shuf__question q;
    struct shuf__call call = {.memory = out};
    if (shuf__question_make(&q, wanted, &handle->error))
        return handle->error.status;
    if (bytes < q.shape.bytes)
        return refuse_size(&q.shape, bytes, &handle->error);
    if (!out && q.shape.bytes > 0)
        return shuf__fail(&handle->error, SHUF_INVALID, "out NULL: expected %" PRIu64 " bytes",
                          q.shape.bytes);
    return run(handle, &q, &call, result);
}

shuf_status shuf__fetch_stream(shuf *handle, struct shuf__wanted wanted, shuf_sink sink,
                               void *context, shuf_result *result)
{
    struct shuf__question q;
    struct shuf__call call = {.sink = sink, .context = context};
    if (shuf__question_make(&q, wanted, &handle->error))
        return handle->error.status;
    return run(handle, &q, &call, result);
}

shuf_status shuf__fetch_summary(shuf *handle, struct shuf__wanted wanted, shuf_result *result)
{
    struct shuf__question q;
    struct shuf__call call = {0};
    if (shuf__question_make(&q, wanted, &handle->error))
        return handle->error.status;
    shuf__question_fingerprint(&q);
    return run(handle, &q, &call, result);
}
