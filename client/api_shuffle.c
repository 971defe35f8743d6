/* SPDX-License-Identifier: MIT
 *
 * The public calls that shuffle records of the caller's memory: in the daemon, through a buffer, or
 * in this process.
 */
#include "api_lease.h"
#include "arguments.h"
#include "call.h"
#include "handle.h"
#include "request.h"
#include "request_message.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The arguments of shuf_shuffle(). */
struct shuffle_call {
    const shuf_records *records;
    const void *in;
    void *out;
    uint64_t bytes;
    shuf_result *result;
};

/* ---- In the daemon ---- */

/* The request for the shuffle of a lease. */
static shuf_request shuffle_of(const shuf_records *records, const shuf_lease *input)
{
    shuf_request request = {.kind = SHUF_RECORDS, .records = *records};
    request.records.input = input;
    return request;
}

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
    return shuf_copy(handle, &request, c->out, c->bytes, c->result);
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
        if (handle->reconnect_ms == 0 || handle->gave_up)
            return handle->lost_daemon ? shuf__call_fail_lost(handle) : status;
    }
    return shuf__call_fail_losses(handle);
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

/* ---- In this process ---- */

/* The daemon computes only the permutation, and needs no memory for the records. The values of the
 * permutation arrive in chunks of any size. A list collects them before records move. */

enum {
    LIST = 16384,        /* values */
    CHUNK = 1 << 20,     /* bytes of records for a sink; a larger record is a chunk of its own */
    AHEAD = 16,          /* records */
    AHEAD_BYTES = 4 * 64 /* of a record; the processor prefetches the rest itself */
};

struct local_shuffle {
    shuf *handle;
    const shuf_records *records;
    const char *in;
    char *out;      /* all records or, with a sink, a chunk */
    shuf_sink sink; /* or NULL */
    void *context;
    uint64_t done;   /* records */
    uint64_t beyond; /* a received value that is not below n, or 0 */
    unsigned width;  /* bytes of a value */
    size_t held;     /* bytes of the list */
    uint64_t list[LIST];
};

static inline __attribute__((always_inline)) uint64_t value_at(const struct local_shuffle *s,
                                                               size_t i)
{
    return s->width == sizeof(uint32_t) ? ((const uint32_t *)(const void *)s->list)[i] : s->list[i];
}

static inline __attribute__((always_inline)) void expect(const char *record, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes && i < AHEAD_BYTES; i += 64)
        __builtin_prefetch(record + i);
}

/* Inlined with a constant `record` for the usual sizes, which makes the copies fast. */
static inline __attribute__((always_inline)) void
gather(const struct local_shuffle *s, size_t first, size_t count, char *out, uint64_t record)
{
    for (size_t i = first; i < first + count; i++) {
        if (i + AHEAD < first + count)
            expect(s->in + value_at(s, i + AHEAD) * record, record);
        memcpy(out + (i - first) * record, s->in + value_at(s, i) * record, record);
    }
}

static inline __attribute__((always_inline)) void scatter(const struct local_shuffle *s,
                                                          size_t count, uint64_t record)
{
    const char *from = s->in + s->done * record;
    for (size_t i = 0; i < count; i++)
        memcpy(s->out + value_at(s, i) * record, from + i * record, record);
}

static inline __attribute__((always_inline)) void move(const struct local_shuffle *s, size_t first,
                                                       size_t count, char *out, uint64_t record)
{
    if (s->records->inverse)
        scatter(s, count, record);
    else
        gather(s, first, count, out, record);
}

static void move_records(const struct local_shuffle *s, size_t first, size_t count, char *out)
{
    switch (s->records->record) {
    case 1:
        move(s, first, count, out, 1);
        return;
    case 4:
        move(s, first, count, out, 4);
        return;
    case 8:
        move(s, first, count, out, 8);
        return;
    default:
        move(s, first, count, out, s->records->record);
    }
}

static bool feed(const struct local_shuffle *s, size_t count)
{
    const uint64_t record = s->records->record;
    const size_t most = record < CHUNK ? CHUNK / record : 1;
    for (size_t first = 0; first < count; first += most) {
        const size_t some = count - first < most ? count - first : most;
        move_records(s, first, some, s->out);
        const struct shuf__error before = shuf__handle_begin_callback(s->handle);
        const bool continues = s->sink(s->context, s->out, some * record);
        shuf__handle_end_callback(s->handle, &before);
        if (!continues)
            return false;
    }
    return true;
}

/* Checks the values: a broken daemon must not make this process write outside its memory. */
static bool check_list(struct local_shuffle *s, size_t count)
{
    uint64_t largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = value_at(s, i) > largest ? value_at(s, i) : largest;
    s->beyond = largest < s->records->n ? 0 : largest;
    return s->beyond == 0;
}

static bool move_list(struct local_shuffle *s)
{
    const size_t count = s->held / s->width;
    bool continues = true;
    if (!check_list(s, count))
        return false;
    if (s->sink)
        continues = feed(s, count);
    else
        move_records(s, 0, count, s->out + s->done * s->records->record);
    s->done += count;
    s->held = 0;
    return continues;
}

static bool take_values(void *context, const void *bytes, size_t size)
{
    struct local_shuffle *s = context;
    const char *from = bytes;
    while (size > 0) {
        const size_t room = LIST * s->width - s->held, some = size < room ? size : room;
        memcpy((char *)s->list + s->held, from, some);
        s->held += some;
        from += some;
        size -= some;
        if (s->held == LIST * s->width && !move_list(s))
            return false;
    }
    return true;
}

static shuf_status fail_stopped(shuf *handle, const struct local_shuffle *s)
{
    if (s->beyond)
        return shuf__fail(&handle->error, SHUF_PROTOCOL,
                          "reply value %" PRIu64 ": expected less than n = %" PRIu64, s->beyond,
                          s->records->n);
    return shuf__fail(&handle->error, SHUF_CANCELLED,
                      "stopped by its sink after at most %" PRIu64 " of %" PRIu64 " record%s",
                      s->done, s->records->n, shuf__plural(s->records->n));
}

static void set_result(const shuf_records *records, shuf_result *result)
{
    result->shape = (shuf_shape){.rows = 1, .count = records->n, .bytes = records->n};
    result->shape.width = (__typeof__(result->shape.width))records->record;
    result->shape.bytes *= records->record;
    result->n_first = result->n_last = 0;
    memset(result->first, 0, sizeof result->first);
    memset(result->last, 0, sizeof result->last);
}

static shuf_status run(shuf *handle, struct local_shuffle *s, shuf_result *result)
{
    const shuf_records *records = s->records;
    const bool narrow = records->n <= UINT64_C(1) << 32;
    const shuf_request order = {.permutation = {.algorithm = records->algorithm,
                                                .n = records->n,
                                                .seed = records->seed,
                                                .key = records->key,
                                                .epoch = records->epoch,
                                                .dtype = narrow ? SHUF_U32 : SHUF_U64}};
    s->width = narrow ? sizeof(uint32_t) : sizeof(uint64_t);
    shuf_status status = shuf_each(handle, &order, take_values, s, result);
    if (s->beyond || (status == SHUF_OK && !move_list(s)))
        status = fail_stopped(handle, s);
    if (status == SHUF_OK)
        set_result(records, result);
    return status;
}

static struct local_shuffle *make(shuf *handle, const shuf_records *records, const void *in)
{
    struct local_shuffle *s = calloc(1, sizeof *s);
    if (!s) {
        shuf__fail(&handle->error, SHUF_NO_MEMORY, "shuffle: out of memory");
        return NULL;
    }
    s->handle = handle;
    s->records = records;
    s->in = in;
    return s;
}

/* Moves all records from `in` to `out`. *result as of a shuffle by the daemon. */
static shuf_status shuffle_local(shuf *handle, const shuf_records *records, const void *in,
                                 void *out, shuf_result *result)
{
    struct local_shuffle *s = make(handle, records, in);
    if (!s)
        return SHUF_NO_MEMORY;
    s->out = out;
    shuf_status status = run(handle, s, result);
    free(s);
    return status;
}

/* The same, but passes the records to `sink` in order. Not with records->inverse. */
static shuf_status shuffle_local_each(shuf *handle, const shuf_records *records, const void *in,
                                      shuf_sink sink, void *context, shuf_result *result)
{
    struct local_shuffle *s = make(handle, records, in);
    if (!s)
        return SHUF_NO_MEMORY;
    s->sink = sink;
    s->context = context;
    s->out = malloc(records->record > CHUNK ? records->record : CHUNK);
    shuf_status status = s->out
                             ? run(handle, s, result)
                             : shuf__fail(&handle->error, SHUF_NO_MEMORY, "shuffle: out of memory");
    free(s->out);
    free(s);
    return status;
}

/* ---- The calls ---- */

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
               ? shuffle_local(handle, records, in, out, c.result)
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
    return shuffle_local_each(handle, records, in, sink, context, c.result);
}
