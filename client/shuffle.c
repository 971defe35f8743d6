/* SPDX-License-Identifier: MIT
 *
 * The public calls that shuffle records: what another lease has, and the caller's own
 * memory, by way of a buffer.
 */
#include "fetch.h"
#include "handle.h"
#include "lease.h"
#include "request.h"

#include <inttypes.h>
#include <stdbool.h>

enum { LOSSES_MAX = 16 }; /* daemons that one call may outlive */

shuf_status shuf_shuffle_lease(shuf *handle, const shuf_records *what, const shuf_lease *input,
                               const shuf_lease_options *options, shuf_lease **lease)
{
    const struct shuf__wanted wanted = {.records = what,
                                        .input = (const struct shuf__lease *)input};
    if (!input)
        return shuf__fail(&handle->error, SHUF_INVALID, "input NULL: expected a lease");
    if (*lease == input)
        return shuf__fail(&handle->error, SHUF_INVALID,
                          "lease %" PRIu64 ": the input, expected another, or NULL", input->id);
    return shuf__lease_take(handle, wanted, options, lease);
}

/* One try: the records go there and come back by one transport. */
struct trip {
    const shuf_records *what;
    const void *in;
    void *out;
    uint64_t bytes;
    shuf_result *result;
};

static shuf_status fetch_mapped(shuf *handle, const struct trip *t, const shuf_lease *input)
{
    static const shuf_lease_options mapped = {.transports = SHUF_MEMFD};
    shuf_lease *output = NULL;
    if (shuf_shuffle_lease(handle, t->what, input, &mapped, &output))
        return handle->error.status;
    shuf_status status = shuf_lease_read(handle, output, 0, t->bytes, t->out);
    *t->result = output->result;
    shuf__lease_abandon(handle, output);
    return status;
}

static shuf_status go(shuf *handle, const struct trip *t, bool mapped)
{
    const shuf_lease_options options = {.transports = mapped ? SHUF_MEMFD : SHUF_INLINE};
    shuf_lease *input = NULL;
    if (shuf_buffer_take(handle, t->bytes, &options, &input))
        return handle->error.status;
    const struct shuf__wanted wanted = {.records = t->what,
                                        .input = (const struct shuf__lease *)input};
    shuf_status status = shuf_lease_write(handle, input, 0, t->bytes, t->in);
    if (status == SHUF_OK)
        status = mapped ? fetch_mapped(handle, t, input)
                        : shuf__fetch(handle, wanted, t->out, t->bytes, t->result);
    shuf__lease_abandon(handle, input);
    return status;
}

/* A daemon that is lost takes the buffer with it, and the next is given another. None that comes in
 * time is the end of it: then there is no connection. */
static shuf_status go_on(shuf *handle, const struct trip *t, bool mapped)
{
    for (int losses = 0; losses < LOSSES_MAX; losses++) {
        const uint64_t before = handle->connection.generation;
        const bool connected = handle->connection.fd >= 0;
        shuf_status status = go(handle, t, mapped);
        const bool reached = connected || handle->connection.generation != before;
        if (status != SHUF_NO_DAEMON || handle->reconnect_ms == 0 || !reached)
            return status;
    }
    return handle->error.status;
}

static bool overlap(const char *a, const char *b, uint64_t bytes)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return x < y ? y - x < bytes : x - y < bytes;
}

static shuf_status check(const struct trip *t, size_t bytes, struct shuf__error *error)
{
    if (bytes < t->bytes)
        return shuf__fail(error, SHUF_INVALID,
                          "bytes %zu: expected at least %" PRIu64 " for %" PRIu64
                          " records of %" PRIu64 " bytes",
                          bytes, t->bytes, t->what->n, t->what->record);
    if (!t->in || !t->out)
        return shuf__fail(error, SHUF_INVALID, "%s NULL: expected %" PRIu64 " bytes",
                          t->in ? "out" : "in", t->bytes);
    if (overlap(t->in, t->out, t->bytes))
        return shuf__fail(error, SHUF_INVALID,
                          "in and out overlap: expected %" PRIu64 " bytes each", t->bytes);
    return SHUF_OK;
}

static shuf_status understand(struct trip *t, struct shuf__error *error)
{
    struct shuf__request request = {
        .shuffle = {.permutation = {.n = t->what->n}, .record = t->what->record}};
    if (shuf__shuffle_make(&request, error))
        return error->status;
    t->bytes = shuf__request_shape(&request).bytes;
    return SHUF_OK;
}

/* Where a descriptor cannot be had or mapped, the bytes can still be sent. */
shuf_status shuf_shuffle(shuf *handle, const shuf_records *what, const void *in, void *out,
                         size_t bytes, shuf_result *result)
{
    shuf_result unwanted;
    struct trip t = {.what = what, .in = in, .out = out, .result = result ? result : &unwanted};
    if (shuf__handle_check(handle) || understand(&t, &handle->error) ||
        check(&t, bytes, &handle->error))
        return handle->error.status;
    shuf_status status = go_on(handle, &t, true);
    return status == SHUF_IO ? go_on(handle, &t, false) : status;
}
