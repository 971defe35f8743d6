/* SPDX-License-Identifier: MIT
 *
 * See round_trip.h.
 */
#include "round_trip.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)
#define DISCARD_WAIT_NS (1000 * NS_PER_MS)

/* bytes */
enum {
    DISCARD_MAX = 64 << 20, /* to receive more takes longer than to connect again */
    ASK_STEP = 1 << 20,     /* at most, before the interrupt function is asked again */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Receives and ignores some bytes of the payload. */
static shuf_status skip_some(struct shuf__connection *connection, uint64_t bytes, size_t *received,
                             struct shuf__error *error)
{
    const size_t most = least(bytes, sizeof connection->buffer);
    return shuf__connection_receive(connection, connection->buffer, most, received, error);
}

/* Skips the bytes that earlier connections have delivered. */
static shuf_status skip_delivered(struct shuf__connection *connection, uint64_t bytes,
                                  struct shuf__error *error)
{
    size_t received;
    for (; bytes > 0; bytes -= received)
        if (shuf__connection_end_if_interrupted(connection, error) ||
            skip_some(connection, bytes, &received, error))
            return error->status;
    return SHUF_OK;
}

static void report(struct shuf__round_trip *trip, uint64_t bytes)
{
    if (trip->report)
        trip->report(trip, bytes);
}

/* Receives into the caller's memory without a copy in between. */
static shuf_status fill_memory(struct shuf__connection *connection, struct shuf__round_trip *trip,
                               struct shuf__error *error)
{
    while (trip->delivered < trip->payload_bytes) {
        size_t received, most = least(trip->payload_bytes - trip->delivered, ASK_STEP);
        if (shuf__connection_end_if_interrupted(connection, error) ||
            shuf__connection_receive(connection, trip->memory + trip->delivered, most, &received,
                                     error))
            return error->status;
        trip->delivered += received;
        report(trip, received);
    }
    return SHUF_OK;
}

/* Receives and discards the rest of the payload, so that the connection and its leases stay. Each
 * wait for the daemon takes at most DISCARD_WAIT_NS. Does not ask the interrupt function between
 * the reads: the sink may have stopped for the same reason. */
static void discard(struct shuf__connection *connection, uint64_t bytes)
{
    struct shuf__error ignored = {0};
    const uint64_t timeout = connection->timeout_ns;
    size_t received;
    connection->timeout_ns = timeout > 0 ? least(timeout, DISCARD_WAIT_NS) : DISCARD_WAIT_NS;
    for (; bytes > 0; bytes -= received)
        if (skip_some(connection, bytes, &received, &ignored))
            break;
    if (ignored.status == SHUF_TIMEOUT)
        connection->closed_by = SHUF__CLOSED_BY_SINK;
    connection->timeout_ns = timeout;
}

/* `unread`: bytes of the payload that are not received yet. */
static shuf_status stop(struct shuf__connection *connection, struct shuf__round_trip *trip,
                        uint64_t unread, struct shuf__error *error)
{
    trip->is_stopped = true;
    if (unread > DISCARD_MAX)
        shuf__connection_close(connection, SHUF__CLOSED_BY_SINK);
    else
        discard(connection, unread);
    return shuf__fail(error, SHUF_CANCELLED,
                      "stopped by its sink after %" PRIu64 " of %" PRIu64 " byte%s",
                      trip->delivered, trip->payload_bytes, shuf__plural(trip->payload_bytes));
}

/* The first bytes of an incomplete value stay at the front of the buffer. */
static shuf_status feed_sink(struct shuf__connection *connection, struct shuf__round_trip *trip,
                             struct shuf__error *error)
{
    uint8_t *buffer = connection->buffer;
    size_t held = 0;
    while (trip->delivered < trip->payload_bytes) {
        const size_t most = least(trip->payload_bytes - trip->delivered, sizeof connection->buffer);
        size_t received;
        if (shuf__connection_end_if_interrupted(connection, error) ||
            shuf__connection_receive(connection, buffer + held, most - held, &received, error))
            return error->status;
        held += received;
        const size_t whole = held - held % trip->width;
        trip->delivered += whole;
        if (whole > 0 && !trip->sink(trip->sink_context, buffer, whole))
            return stop(connection, trip, trip->payload_bytes - trip->delivered - (held - whole),
                        error);
        report(trip, whole);
        held -= whole;
        memmove(buffer, buffer + whole, held);
    }
    return SHUF_OK;
}

static shuf_status receive_payload(struct shuf__connection *connection,
                                   struct shuf__round_trip *trip, struct shuf__error *error)
{
    if (skip_delivered(connection, trip->delivered, error))
        return error->status;
    return trip->memory ? fill_memory(connection, trip, error) : feed_sink(connection, trip, error);
}

static shuf_status check_payload_bytes(const struct shuf__round_trip *trip,
                                       const Shuf__Reply *reply, struct shuf__error *error)
{
    if (reply->payload_bytes == trip->payload_bytes)
        return SHUF_OK;
    return shuf__fail(error, SHUF_PROTOCOL, "reply payload_bytes %" PRIu64 ": expected %" PRIu64,
                      reply->payload_bytes, trip->payload_bytes);
}

shuf_status shuf__round_trip_run(struct shuf__connection *connection, struct shuf__round_trip *trip,
                                 struct shuf__error *error)
{
    const Shuf__Reply *reply;
    assert(connection->fd >= 0);
    if (shuf__connection_send(connection, trip->request, error) ||
        shuf__connection_reply(connection, &reply, error))
        return error->status;
    if (reply->status != SHUF_OK) {
        if (reply->id == 0) /* the error concerns the connection, and the daemon closes it */
            shuf__connection_close(connection, SHUF__CLOSED_BY_DAEMON);
        return shuf__reply_fail(reply, error);
    }
    if (trip->read_reply(trip, reply, error) || check_payload_bytes(trip, reply, error)) {
        shuf__connection_close(connection, SHUF__CLOSED_BY_ERROR);
        return error->status;
    }
    return receive_payload(connection, trip, error);
}

void shuf__round_trip_prepare_retry(struct shuf__round_trip *trip)
{
    if (trip->prepare_retry)
        trip->prepare_retry(trip);
}
