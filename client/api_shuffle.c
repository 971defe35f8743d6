/* SPDX-License-Identifier: MIT
 *
 * The public calls that shuffle records of the caller's memory, through a buffer.
 */
#include "arguments.h"
#include "call.h"
#include "check_names.h"
#include "fetch.h"
#include "handle.h"
#include "held_lease.h"
#include "overlap.h"
#include "request.h"
#include "shuffle_local.h"

#include <inttypes.h>
#include <stdbool.h>

/* The request for the shuffle of a lease. */
static shuf_request shuffle_of(const shuf_records *records, const shuf_lease *input)
{
    shuf_request request = {.kind = SHUF_RECORDS, .records = *records};
    request.records.input = input;
    return request;
}

/* The arguments of shuf_shuffle(). */
struct shuffle_call {
    const shuf_records *records;
    const void *in;
    void *out;
    uint64_t bytes;
    shuf_result *result;
};

static shuf_status read_by_mapping(shuf *handle, const struct shuffle_call *c,
                                   const shuf_lease *input)
{
    static const shuf_lease_options memfd = {.transports = SHUF_MEMFD};
    shuf_lease *output = NULL;
    const shuf_request request = shuffle_of(c->records, input);
    if (shuf_lease_take(handle, &request, &memfd, &output))
        return handle->error.status;
    shuf_status status = shuf_lease_read(handle, output, 0, c->bytes, c->out);
    *c->result = output->result;
    shuf__release_quietly(handle, output);
    return status;
}

static shuf_status read_by_copy(shuf *handle, const struct shuffle_call *c, const shuf_lease *input)
{
    const shuf_request request = shuffle_of(c->records, input);
    return shuf__fetch(handle, &request, c->out, c->bytes, c->result);
}

/* Sends and receives the records by mapped memory or, with `mapped` false, over the socket. */
static shuf_status shuffle_once(shuf *handle, const struct shuffle_call *c, bool mapped)
{
    const shuf_lease_options options = {.transports = mapped ? SHUF_MEMFD : SHUF_INLINE};
    shuf_lease *input = NULL;
    const shuf_request buffer = {.kind = SHUF_BUFFER, .bytes = c->bytes};
    if (shuf_lease_take(handle, &buffer, &options, &input))
        return handle->error.status;
    shuf_status status = shuf_lease_write(handle, input, 0, c->bytes, c->in);
    if (status == SHUF_OK)
        status = (mapped ? read_by_mapping : read_by_copy)(handle, c, input);
    shuf__release_quietly(handle, input);
    return status;
}

/* If the daemon is lost, its buffer is lost too, so each attempt fills a new buffer. The caller
 * does not know this buffer. So the message says that the daemon was lost, and does not mention the
 * buffer. */
static shuf_status shuffle_with_retry(shuf *handle, const struct shuffle_call *c, bool mapped)
{
    for (int losses = 0; losses < SHUF__LOSSES_MAX; losses++) {
        shuf_status status = shuffle_once(handle, c, mapped);
        if (status != SHUF_NO_DAEMON)
            return status;
        if (handle->reconnect_ms == 0 || shuf__call_gave_up(handle))
            return handle->lost_daemon ? shuf__call_fail_lost(handle) : status;
    }
    return shuf__call_fail_losses(handle);
}

static shuf_status refuse_bytes(const struct shuffle_call *c, size_t bytes,
                                struct shuf__error *error)
{
    return shuf__fail(error, SHUF_INVALID,
                      "bytes %zu: expected at least %" PRIu64 " for %" PRIu64
                      " record%s of %" PRIu64 " byte%s",
                      bytes, c->bytes, c->records->n, shuf__plural(c->records->n),
                      c->records->record, shuf__plural(c->records->record));
}

static shuf_status refuse_each(const struct shuffle_call *c, size_t bytes,
                               struct shuf__error *error)
{
    if (bytes < c->bytes)
        return refuse_bytes(c, bytes, error);
    if (c->records->inverse)
        return shuf__fail(
            error, SHUF_INVALID,
            "inverse 1: expected 0, because the first record of the result may come last");
    return shuf__fail(error, SHUF_INVALID, "%s NULL: expected %s", c->in ? "sink" : "in",
                      c->in ? "a function" : "the records");
}

static shuf_status check_caller_memory(const struct shuffle_call *c, size_t bytes,
                                       struct shuf__error *error)
{
    if (bytes < c->bytes)
        return refuse_bytes(c, bytes, error);
    if (!c->in || !c->out)
        return shuf__fail(error, SHUF_INVALID, "%s NULL: expected %" PRIu64 " byte%s",
                          c->in ? "out" : "in", c->bytes, shuf__plural(c->bytes));
    if (shuf__overlap(c->in, c->out, c->bytes))
        return shuf__fail(error, SHUF_INVALID,
                          "in and out overlap: expected %" PRIu64 " byte%s each", c->bytes,
                          shuf__plural(c->bytes));
    return SHUF_OK;
}

static shuf_status compute_bytes(struct shuffle_call *c, struct shuf__error *error)
{
    const shuf_records *records = c->records;
    struct shuf__request request = {
        .kind = SHUF__SHUFFLE,
        .shuffle = {.permutation = {.n = records->n, .seed = records->seed},
                    .record = records->record}};
    if (shuf__check_names(records->algorithm, records->key, error) ||
        shuf__request_name_key(&request, records->key, error) ||
        shuf__shuffle_make(&request, error))
        return error->status;
    c->bytes = shuf__request_shape(&request).bytes;
    return SHUF_OK;
}

/* Bytes. Up to this size, the call does not first ask for the daemon's memory limit. */
enum { SMALL = 64 << 20 };

/* The daemon needs memory for the input and the output. */
static shuf_status check_room(shuf *handle, uint64_t bytes)
{
    shuf_daemon daemon;
    if (bytes <= SMALL)
        return SHUF_OK;
    if (shuf_daemon_status(handle, &daemon))
        return handle->error.status;
    return bytes <= daemon.host_limit / 2 ? SHUF_OK : SHUF_NO_MEMORY;
}

/* Tries mapped memory first, then the socket. After SHUF_IO (the descriptor cannot be received or
 * mapped) and SHUF_DENIED (the daemon lends no host memory), the socket still works. */
static shuf_status shuffle_by_daemon(shuf *handle, const struct shuffle_call *c)
{
    shuf_status status = check_room(handle, c->bytes);
    if (status != SHUF_OK)
        return status;
    status = shuffle_with_retry(handle, c, true);
    return status == SHUF_IO || status == SHUF_DENIED ? shuffle_with_retry(handle, c, false)
                                                      : status;
}

shuf_status shuf_shuffle(shuf *handle, const shuf_records *records, const void *in, void *out,
                         size_t bytes, shuf_result *result)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(records));
    if (!call)
        return SHUF_INVALID;
    shuf_result ignored;
    struct shuffle_call c = {records, in, out, 0, result ? result : &ignored};
    if (shuf__handle_check(handle) || compute_bytes(&c, &handle->error) ||
        check_caller_memory(&c, bytes, &handle->error))
        return handle->error.status;
    shuf_status status = shuffle_by_daemon(handle, &c);
    return status == SHUF_NO_MEMORY || status == SHUF_BUSY
               ? shuf__shuffle_local(handle, records, in, out, c.result)
               : status;
}

shuf_status shuf_shuffle_each(shuf *handle, const shuf_records *records, const void *in,
                              size_t bytes, shuf_sink sink, void *context, shuf_result *result)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(records));
    if (!call)
        return SHUF_INVALID;
    shuf_result ignored;
    struct shuffle_call c = {records, in, NULL, 0, result ? result : &ignored};
    if (shuf__handle_check(handle) || compute_bytes(&c, &handle->error))
        return handle->error.status;
    if (bytes < c.bytes || !in || !sink || records->inverse)
        return refuse_each(&c, bytes, &handle->error);
    return shuf__shuffle_local_each(handle, records, in, sink, context, c.result);
}
