/* SPDX-License-Identifier: MIT
 *
 * The public calls that copy a permutation, or have it only computed.
 */
#include "call.h"
#include "question.h"

#include <inttypes.h>

static shuf_status accept_permute(struct shuf__call *call, const Shuf__Reply *reply,
                                  struct shuf__error *error)
{
    shuf_result *result = call->answer; /* its shape is set */
    if (shuf__result_read(reply, result, error))
        return error->status;
    const Shuf__PermuteReply *p = reply->permute;
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
    call->request = &q->request;
    call->accept = accept_permute;
    call->answer = result ? result : &unwanted;
    *(shuf_result *)call->answer = (shuf_result){.shape = shuf__question_shape(q)};
    if (call->memory || call->sink) {
        call->bulk = q->plan.bytes;
        if (shuf__question_accept(q, SHUF_INLINE, &handle->error))
            return handle->error.status;
    }
    return shuf__call_run(handle, call);
}

shuf_status shuf_permute(shuf *handle, const shuf_permutation *what, void *out, size_t bytes,
                         shuf_result *result)
{
    struct shuf__question q;
    struct shuf__call call = {.memory = out};
    if (shuf__question_make(&q, what, &handle->error))
        return handle->error.status;
    if (bytes < q.plan.bytes)
        return shuf__fail(&handle->error, SHUF_INVALID,
                          "bytes %zu: expected at least %" PRIu64 " for %" PRIu64
                          " rows of %" PRIu64 " values of %u bytes",
                          bytes, q.plan.bytes, q.plan.rows, q.plan.count, q.plan.width);
    if (!out && q.plan.bytes > 0)
        return shuf__fail(&handle->error, SHUF_INVALID, "out NULL: expected %" PRIu64 " bytes",
                          q.plan.bytes);
    return run(handle, &q, &call, result);
}

shuf_status shuf_permute_stream(shuf *handle, const shuf_permutation *what, shuf_sink sink,
                                void *context, shuf_result *result)
{
    struct shuf__question q;
    struct shuf__call call = {.sink = sink, .context = context};
    if (shuf__question_make(&q, what, &handle->error))
        return handle->error.status;
    return run(handle, &q, &call, result);
}

shuf_status shuf_summarize(shuf *handle, const shuf_permutation *what, shuf_result *result)
{
    struct shuf__question q;
    struct shuf__call call = {0};
    if (shuf__question_make(&q, what, &handle->error))
        return handle->error.status;
    q.permute.fingerprint = true;
    return run(handle, &q, &call, result);
}
