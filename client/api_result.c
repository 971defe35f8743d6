/* SPDX-License-Identifier: MIT
 *
 * The public calls for results of any kind: shape, copy, sink and summary. A result that is large,
 * or that does not fit the daemon's memory, is fetched in parts. The daemon computes the next part
 * while it sends the current one.
 */
#include "api_lease.h"
#include "arguments.h"
#include "call.h"
#include "dtype.h"
#include "request_message.h"
#include "slice.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- The whole ---- */

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

/* ---- Parts ---- */

enum {
    PART_LEAST = 2 << 20, /* bytes: the smallest block of device memory */
    PART_MOST = 64 << 20, /* larger parts are not faster, except if is_capped() is false */
    PARTS_IN_BUDGET = 6,  /* one is sent, one computed, some idle; rank indexes take room too */
};

/* A part that the daemon computes ahead. */
struct ahead {
    uint64_t lease;      /* 0: none */
    uint64_t generation; /* of the connection that holds it */
    bool shared;         /* the daemon had the part before */
};

struct fetch_parts {
    shuf *handle;
    const shuf_request *request; /* of the whole result, like the next three fields */
    const struct shuf__request_message *whole;
    const struct shuf__round_trip *trip;
    shuf_result *result;
    uint64_t values;        /* values in the complete parts */
    uint64_t skipped;       /* bytes of the next part that are delivered already */
    uint64_t most;          /* values of a part */
    bool stores_nothing;    /* the daemon has no use for values that it prefetched */
    struct ahead ahead;     /* the next part */
    uint64_t key_check;     /* of the last reply with values */
    bool is_stopped;        /* by the sink */
    bool alone;             /* the daemon has room for one part only, so it computes none ahead */
    struct shuf__wait wait; /* for room, since the last part */
    Shuf__Sums sums;        /* of the complete parts */
    shuf_result part;       /* of the last reply, like part_sums */
    Shuf__Sums part_sums;
};

static bool divides(const struct shuf__request *request)
{
    return request->kind == SHUF__PERMUTATION || request->kind == SHUF__STREAM;
}

/* True if a request for less may succeed when the whole result does not fit. */
static bool parts_are_possible(const struct shuf__request_message *whole)
{
    return divides(&whole->request) && whole->shape.bytes > PART_LEAST;
}

/* True if a call for the whole result failed with this status, but may succeed in parts. */
static bool parts_help(const struct shuf__request_message *whole, shuf_status status)
{
    return parts_are_possible(whole) && (status == SHUF_NO_MEMORY || status == SHUF_BUSY);
}

/* ---- The size of a part ---- */

/* False for algorithms that leave values out: there the daemon may have to count the values before
 * each part, so few large parts are faster. */
static bool is_capped(const struct shuf__request *request)
{
    const struct shuf__permutation *p = shuf__request_permutation(request);
    return !p || shuf_algorithm_has_random_access(p->algorithm);
}

/* Sets *in_parts to whether parts are better for values and summaries: the result is large, and the
 * daemon would not keep the whole for later requests. May ask the daemon, and then fails as other
 * calls do. */
static shuf_status choose_parts(shuf *handle, const struct shuf__request_message *whole,
                                bool *in_parts)
{
    shuf_daemon daemon;
    *in_parts = false;
    if (!divides(&whole->request) || !is_capped(&whole->request) ||
        whole->shape.bytes <= 2 * (uint64_t)PART_MOST)
        return SHUF_OK;
    if (shuf_daemon_status(handle, &daemon))
        return handle->error.status;
    *in_parts =
        whole->shape.bytes >
        (strcmp(daemon.backend, "cpu") == 0 ? daemon.host_idle_limit : daemon.device_idle_limit);
    return SHUF_OK;
}

/* Bytes of a part of a summary, for which libshuf prefetches nothing. A GPU takes some milliseconds
 * for it, and two processors take about 50. */
#define SUMMARY_BY_GPU (UINT64_C(16) << 30)
#define SUMMARY_BY_CPU (UINT64_C(256) << 20)

static shuf_status choose_part_size(struct fetch_parts *f)
{
    shuf_daemon daemon;
    if (shuf_daemon_status(f->handle, &daemon))
        return f->handle->error.status;
    uint64_t bytes = daemon.memory_limit / PARTS_IN_BUDGET;
    f->stores_nothing = f->trip->payload_bytes == 0 && is_capped(&f->whole->request);
    if (f->stores_nothing)
        bytes = strcmp(daemon.backend, "cpu") == 0 ? SUMMARY_BY_CPU : SUMMARY_BY_GPU;
    else if (bytes > PART_MOST && is_capped(&f->whole->request))
        bytes = PART_MOST;
    if (bytes < PART_LEAST)
        bytes = PART_LEAST;
    f->most = bytes / f->whole->shape.width;
    return SHUF_OK;
}

static uint64_t least_values(const struct fetch_parts *f)
{
    return PART_LEAST / f->whole->shape.width;
}

/* Call it if a part did not fit: other results use the memory, or the next daemon has a lower
 * limit. False if the part already has the least size. */
static bool halve_part_size(struct fetch_parts *f)
{
    const uint64_t least = least_values(f);
    const bool halved = f->most > least;
    f->most = f->most / 2 > least ? f->most / 2 : least;
    return halved;
}

/* ---- The result ---- */

/* Keeps the first values of the first part. Appends the last values of each part, and keeps only
 * the newest of these. */
static void add_samples(shuf_result *to, const shuf_result *part)
{
    uint64_t all[3 * SHUF_SAMPLES];
    unsigned n = to->n_last;
    memcpy(all, to->last, n * sizeof *all);
    memcpy(all + n, part->first, part->n_first * sizeof *all);
    n += part->n_first;
    memcpy(all + n, part->last, part->n_last * sizeof *all);
    n += part->n_last;
    to->n_last = n < SHUF_SAMPLES ? n : SHUF_SAMPLES;
    memcpy(to->last, all + n - to->n_last, to->n_last * sizeof *all);
}

static void add_sums(Shuf__Sums *to, const Shuf__Sums *part)
{
    to->z1 += part->z1;
    to->z2 += part->z2;
    to->z3 += part->z3;
    to->z4 += part->z4;
    to->least = fmin(to->least, part->least);
    to->largest = fmax(to->largest, part->largest);
}

static void add_part(struct fetch_parts *f)
{
    shuf_result *to = f->result;
    if (f->values == 0) {
        *to = f->part;
        to->shape = f->whole->shape;
        to->n_last = 0;
        f->sums = f->part_sums;
    } else {
        to->device_ns += f->part.device_ns;
        to->fingerprint += f->part.fingerprint;
        to->shared = to->shared && f->part.shared;
        add_sums(&f->sums, &f->part_sums);
    }
    add_samples(to, &f->part);
}

static void finish_result(struct fetch_parts *f)
{
    if (f->request->kind == SHUF_NUMBERS && f->request->numbers.moments)
        f->result->moments = shuf__moments_from_sums(&f->sums, f->whole->shape.count);
}

/* ---- One part ---- */

/* A part of a result: a request for some of its consecutive values. Any part can be requested,
 * because a value is a function of its position. */
struct part {
    shuf_request request;
    uint64_t values;
};

/* If the last value of a padded shard comes from the front of the permutation, it is a part of its
 * own. */
static uint64_t take_permutation(shuf_permutation *own, const struct shuf__permutation *whole,
                                 uint64_t first, uint64_t most)
{
    struct shuf__permutation part;
    uint64_t values = shuf__slice_take(whole, first, most, &part);
    const struct shuf__slice slice = shuf__slice_make(&part);
    const bool has_rows = first % whole->count == 0 && values >= whole->count;
    own->epoch = part.epoch;
    own->epochs = has_rows ? part.rows : 0;
    own->fingerprint = false;
    if (has_rows)
        return values;
    if (values > 1 && shuf__slice_wraps(&slice))
        values--;
    own->view = SHUF_VIEW_SLICE;
    own->offset = part.offset;
    own->count = values;
    own->stride = part.stride;
    own->rank = own->world = own->step = 0;
    own->drop_last = false;
    return values;
}

static uint64_t take_numbers(shuf_numbers *own, const struct shuf__stream *whole, uint64_t first,
                             uint64_t most)
{
    own->offset += first;
    own->count = shuf__smaller(most, whole->count - first);
    own->fingerprint = false;
    return own->count;
}

/* Makes a request for at most `most` values of `whole`, a PERMUTATION or NUMBERS, from number
 * `first` on, counted row by row. `meaning` is the meaning of `whole`. */
static void take_part(struct part *part, const shuf_request *whole,
                      const struct shuf__request *meaning, uint64_t first, uint64_t most)
{
    part->request = *whole;
    part->values =
        whole->kind == SHUF_PERMUTATION
            ? take_permutation(&part->request.permutation, &meaning->permutation, first, most)
            : take_numbers(&part->request.numbers, &meaning->stream, first, most);
}

/* Another daemon may have another default algorithm. */
static void make_part(const struct fetch_parts *f, uint64_t first, struct part *part)
{
    take_part(part, f->request, &f->whole->request, first, f->most);
    if (f->values > 0 && part->request.kind == SHUF_PERMUTATION && *f->result->algorithm)
        part->request.permutation.algorithm = f->result->algorithm;
}

struct part_call {
    struct shuf__request_message request;
    struct fetch_parts *fetch;
};

static shuf_status read_part(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                             struct shuf__error *error)
{
    struct part_call *call = trip->context;
    struct fetch_parts *f = call->fetch;
    if (shuf__request_message_read_reply(&call->request, reply, &f->part, error))
        return error->status;
    if (shuf__check_key(reply->result, f->values > 0 || trip->delivered > 0, &f->key_check, error))
        return error->status;
    if (reply->result->sums)
        f->part_sums = *reply->result->sums;
    return SHUF_OK;
}

static shuf_status read_prefetched(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                                   struct shuf__error *error)
{
    shuf_result result;
    struct part_call *call = trip->context;
    struct fetch_parts *f = call->fetch;
    if (shuf__request_message_read_reply(&call->request, reply, &result, error))
        return error->status;
    f->ahead =
        (struct ahead){reply->result->lease, f->handle->connection.generation, result.shared};
    return SHUF_OK;
}

/* Prefetches the next part. If the daemon has no room for it now, a later call fetches it. */
static shuf_status prefetch_part(struct fetch_parts *f, uint64_t first)
{
    struct part part;
    struct part_call call = {.fetch = f};
    struct shuf__round_trip trip = {
        .request = &call.request.message, .read_reply = read_prefetched, .context = &call};
    f->ahead = (struct ahead){0};
    if (f->alone || f->stores_nothing || first >= f->whole->shape.rows * f->whole->shape.count)
        return SHUF_OK;
    make_part(f, first, &part);
    if (shuf__request_message_make(&call.request, &part.request, &f->handle->error))
        return f->handle->error.status;
    shuf__request_message_set_prefetch(&call.request);
    shuf__request_message_set_divisible(&call.request);
    const shuf_status status = shuf__call_run(f->handle, &trip);
    return parts_help(f->whole, status) ? SHUF_OK : status;
}

static shuf_status drop_part(shuf *handle, struct ahead *ahead)
{
    struct shuf__release_message release;
    const uint64_t lease = ahead->lease;
    const bool held = lease != 0 && handle->connection.fd >= 0 &&
                      ahead->generation == handle->connection.generation;
    *ahead = (struct ahead){0};
    shuf__release_message_init(&release, lease);
    return held ? shuf__release_send(handle, &release.message, &handle->error) : SHUF_OK;
}

/* The message of a failure stays, unless this fails too. */
static shuf_status drop_both(struct fetch_parts *f, struct ahead *own)
{
    const struct shuf__error kept = f->handle->error;
    if (drop_part(f->handle, own) || drop_part(f->handle, &f->ahead))
        return f->handle->error.status;
    f->handle->error = kept;
    return SHUF_OK;
}

static void set_summary(const struct fetch_parts *f, struct shuf__request_message *part)
{
    if (f->whole->result.delivery.fingerprint)
        shuf__request_message_set_fingerprint(part, f->values);
}

static shuf_status fail_stopped(const struct fetch_parts *f, uint64_t delivered)
{
    return shuf__fail(&f->handle->error, SHUF_CANCELLED,
                      "stopped by its sink after %" PRIu64 " of %" PRIu64 " byte%s",
                      f->values * f->whole->shape.width + delivered, f->whole->shape.bytes,
                      shuf__plural(f->whole->shape.bytes));
}

/* Delivers the bytes of the part that an earlier call has not delivered. */
static shuf_status fetch_part(struct fetch_parts *f, const struct part *part)
{
    struct part_call call = {.fetch = f};
    struct shuf__round_trip trip = *f->trip;
    const uint64_t width = f->whole->shape.width;
    const uint64_t bytes = part->values * width;
    f->handle->copied = f->values * width;
    if (shuf__request_message_make(&call.request, &part->request, &f->handle->error))
        return f->handle->error.status;
    set_summary(f, &call.request);
    if (!f->alone || f->most > least_values(f))
        shuf__request_message_set_divisible(&call.request);
    trip.request = &call.request.message;
    trip.read_reply = read_part;
    trip.context = &call;
    if (trip.payload_bytes > 0) {
        const uint64_t before = trip.delivered = f->skipped < bytes ? f->skipped : bytes;
        trip.payload_bytes = bytes;
        if (trip.memory)
            trip.memory += f->values * width;
        shuf__request_message_accept(&call.request, SHUF_INLINE, &f->handle->error);
        shuf_status status = shuf__call_run(f->handle, &trip);
        f->skipped += trip.delivered - before;
        f->is_stopped = trip.is_stopped;
        return status == SHUF_CANCELLED && f->is_stopped ? fail_stopped(f, trip.delivered) : status;
    }
    return shuf__call_run(f->handle, &trip);
}

/* ---- All parts ---- */

static void finish_part(struct fetch_parts *f, const struct part *part)
{
    const uint64_t bytes = part->values * f->whole->shape.width;
    add_part(f);
    f->wait = (struct shuf__wait){0};
    f->values += part->values;
    shuf__handle_observe(f->handle, SHUF_EVENT_PART, f->values * f->whole->shape.width,
                         f->whole->shape.bytes);
    f->skipped -= f->skipped < bytes ? f->skipped : bytes;
}

/* True if another attempt may succeed: with a smaller part or, at the least size, after a wait for
 * other results to end. */
static bool can_retry(struct fetch_parts *f, shuf_status status)
{
    if (!parts_help(f->whole, status))
        return false;
    return !f->alone || halve_part_size(f) ||
           (status == SHUF_BUSY && shuf__wait_again(f->handle, &f->wait));
}

/* If the daemon has no room for the part, releases the prefetched part and tries again. */
static shuf_status retry_alone(struct fetch_parts *f, struct ahead *own, shuf_status status)
{
    if (drop_both(f, own))
        return f->handle->error.status;
    if (!can_retry(f, status))
        return f->handle->error.status; /* of the wait, if a signal has ended it */
    f->alone = true;
    return SHUF_OK;
}

/* Fetches the next part, while the daemon computes the one after it. */
static shuf_status fetch_next(struct fetch_parts *f)
{
    struct part part;
    struct ahead own = f->ahead;
    make_part(f, f->values, &part);
    if (prefetch_part(f, f->values + part.values)) {
        drop_both(f, &own);
        return f->handle->error.status;
    }
    const shuf_status status = fetch_part(f, &part);
    if (f->is_stopped)
        own = (struct ahead){0}; /* the request has ended the prefetch of this part */
    if (status != SHUF_OK)
        return retry_alone(f, &own, status);
    f->part.shared = own.shared;
    finish_part(f, &part);
    /* a summary leaves the part prefetched */
    return f->trip->payload_bytes == 0 ? drop_part(f->handle, &own) : SHUF_OK;
}

/* `trip` is for the whole result. Delivers the missing bytes of the result to the memory or
 * sink of `trip`. If both are NULL, only makes the summary. `whole` was made from `request`.
 * Fills *result like the reply to the whole request; only the last digits of moments may differ. */
static shuf_status fetch_in_parts(shuf *handle, const shuf_request *request,
                                  const struct shuf__request_message *whole,
                                  const struct shuf__round_trip *trip, shuf_result *result)
{
    const uint64_t all = whole->shape.rows * whole->shape.count;
    struct fetch_parts f = {.handle = handle,
                            .request = request,
                            .whole = whole,
                            .trip = trip,
                            .result = result,
                            .key_check = trip->key_check,
                            .skipped = trip->delivered};
    handle->copying = whole->shape.bytes;
    shuf_status status = choose_part_size(&f);
    if (status == SHUF_OK)
        status = prefetch_part(&f, 0);
    while (status == SHUF_OK && f.values < all)
        status = fetch_next(&f);
    if (status == SHUF_OK)
        finish_result(&f);
    handle->copied = handle->copying = 0;
    return status;
}

/* ---- The calls ---- */

shuf_status shuf_shape_of(const shuf_request *request, shuf_shape *shape, char *message,
                          size_t size)
{
    struct shuf__error *error = SHUF__BEGIN_LOCAL(SHUF__POINTER(request), SHUF__POINTER(shape));
    struct shuf__request_message m;
    if (!error->status && !shuf__request_message_make(&m, request, error))
        *shape = m.shape;
    if (message && size > 0)
        snprintf(message, size, "%s", error->text);
    return error->status;
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
    if (choose_parts(handle, m, &in_parts))
        return handle->error.status;
    if (in_parts)
        return fetch_in_parts(handle, request, m, trip, result);
    if (parts_are_possible(m))
        shuf__request_message_set_divisible(m);
    shuf_status status = fetch_result(handle, m, trip, result);
    return parts_help(m, status) ? fetch_in_parts(handle, request, m, trip, result) : status;
}

shuf_status shuf_copy(shuf *handle, const shuf_request *request, void *out, size_t bytes,
                      shuf_result *result)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(request));
    struct shuf__request_message m;
    struct shuf__round_trip trip = {.memory = out};
    if (!call)
        return SHUF_INVALID;
    if (make_message(handle, request, &m))
        return handle->error.status;
    if (bytes < m.shape.bytes)
        return shuf__refuse_bytes(request, &m.shape, bytes, &handle->error);
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

shuf_status shuf_each(shuf *handle, const shuf_request *request, shuf_sink sink, void *context,
                      shuf_result *result)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(request));
    struct shuf__request_message m;
    struct guarded_sink guarded = {handle, sink, context};
    struct shuf__round_trip trip = {.sink = sink ? feed_guarded : NULL, .sink_context = &guarded};
    if (!call)
        return SHUF_INVALID;
    if (make_message(handle, request, &m))
        return handle->error.status;
    return sink ? fetch_dividing(handle, request, &m, &trip, result)
                : fetch_result(handle, &m, &trip, result); /* for the cache, whole */
}

shuf_status shuf_summarize(shuf *handle, const shuf_request *request, shuf_result *result)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(request), SHUF__POINTER(result));
    struct shuf__request_message m;
    struct shuf__round_trip trip = {0};
    if (!call)
        return SHUF_INVALID;
    if (make_message(handle, request, &m))
        return handle->error.status;
    shuf__request_message_set_fingerprint(&m, 0);
    return fetch_dividing(handle, request, &m, &trip, result);
}
