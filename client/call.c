/* SPDX-License-Identifier: MIT
 *
 * See call.h.
 */
#include "call.h"

#include "lease.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <time.h>

enum {
    /* Daemons that one call may outlive without a new byte: a request that kills
     * every daemon it meets must not do so for ever. */
    LOSSES_MAX = 16,
    BACKOFF_FIRST_MS = 2,
    BACKOFF_MAX_MS = 100,
};

static const uint64_t ns_per_ms = 1000000;

static void pause_ms(uint64_t ms)
{
    struct timespec time = {.tv_sec = (time_t)(ms / 1000),
                            .tv_nsec = (long)(ms % 1000 * ns_per_ms)};
    nanosleep(&time, NULL); /* one that a signal cuts short only tries sooner */
}

/* Says what the last try, which found nobody, cannot know. */
static shuf_status lost(shuf *h)
{
    return shuf__fail(&h->error, SHUF_NO_DAEMON,
                      "socket %s: the daemon was lost, and no other came within %u.%03u s",
                      h->connection.address.sun_path, h->reconnect_ms / 1000,
                      h->reconnect_ms % 1000);
}

/* Another daemon does not have what this one held. */
static bool is_gone(const shuf *h, const struct shuf__call *call)
{
    return call->connection != 0 &&
           (h->connection.fd < 0 || h->connection.generation != call->connection);
}

static shuf_status gone(shuf *h)
{
    return shuf__fail(&h->error, SHUF_NO_DAEMON,
                      "socket %s: the daemon that held the lease is gone, and the lease with it; "
                      "expected a new one",
                      h->connection.address.sun_path);
}

/* Tries until a daemon answers or the handle's time is up, but once at least. */
static shuf_status reach(shuf *h)
{
    uint64_t give_up = shuf__now_ns() + h->reconnect_ms * ns_per_ms;
    uint64_t backoff = BACKOFF_FIRST_MS;
    for (;;) {
        shuf_status status = shuf__connection_open(&h->connection, &h->error);
        uint64_t now = shuf__now_ns();
        if (status != SHUF_NO_DAEMON || now >= give_up)
            return status;
        uint64_t left = (give_up - now) / ns_per_ms;
        pause_ms(backoff < left ? backoff : left);
        backoff = backoff * 2 < BACKOFF_MAX_MS ? backoff * 2 : BACKOFF_MAX_MS;
    }
}

/* Passes over what an earlier daemon delivered. */
static shuf_status skip(struct shuf__connection *connection, uint64_t bytes,
                        struct shuf__error *error)
{
    size_t got;
    for (; bytes > 0; bytes -= got) {
        size_t most = bytes < sizeof connection->buffer ? bytes : sizeof connection->buffer;
        if (shuf__connection_receive(connection, connection->buffer, most, &got, error))
            return error->status;
    }
    return SHUF_OK;
}

/* Straight into the caller's memory: no copy stands between it and the socket. */
static shuf_status fill_memory(struct shuf__connection *connection, struct shuf__call *call,
                               struct shuf__error *error)
{
    while (call->delivered < call->bulk) {
        size_t got, most = call->bulk - call->delivered;
        if (shuf__connection_receive(connection, call->memory + call->delivered, most, &got, error))
            return error->status;
        call->delivered += got;
    }
    return SHUF_OK;
}

static shuf_status feed_sink(struct shuf__connection *connection, struct shuf__call *call,
                             struct shuf__error *error)
{
    while (call->delivered < call->bulk) {
        uint64_t left = call->bulk - call->delivered;
        size_t got, most = left < sizeof connection->buffer ? left : sizeof connection->buffer;
        if (shuf__connection_receive(connection, connection->buffer, most, &got, error))
            return error->status;
        call->delivered += got;
        if (call->sink(call->context, connection->buffer, got))
            continue;
        shuf__connection_close(connection); /* the rest is of no use to anyone */
        return shuf__fail(error, SHUF_CANCELLED,
                          "stopped by its sink after %" PRIu64 " of %" PRIu64 " bytes",
                          call->delivered, call->bulk);
    }
    return SHUF_OK;
}

static shuf_status receive_bulk(struct shuf__connection *connection, struct shuf__call *call,
                                struct shuf__error *error)
{
    if (skip(connection, call->delivered, error))
        return error->status;
    return call->memory ? fill_memory(connection, call, error) : feed_sink(connection, call, error);
}

static shuf_status check_bulk(const struct shuf__call *call, const Shuf__Reply *reply,
                              struct shuf__error *error)
{
    if (reply->payload_bytes == call->bulk)
        return SHUF_OK;
    return shuf__fail(error, SHUF_PROTOCOL, "reply payload_bytes %" PRIu64 ": expected %" PRIu64,
                      reply->payload_bytes, call->bulk);
}

/* Asks once on the open connection. */
static shuf_status ask(struct shuf__connection *connection, struct shuf__call *call,
                       struct shuf__error *error)
{
    const Shuf__Reply *reply;
    if (shuf__connection_send(connection, call->request, error) ||
        shuf__connection_reply(connection, &reply, error))
        return error->status;
    if (reply->status != SHUF_OK) {
        if (reply->id == 0) /* said of the connection, which ends with it */
            shuf__connection_close(connection);
        return shuf__reply_fail(reply, error);
    }
    if (call->accept(call, reply, error) || check_bulk(call, reply, error)) {
        shuf__connection_close(connection);
        return error->status;
    }
    return receive_bulk(connection, call, error);
}

shuf_status shuf__call_once(shuf *h, struct shuf__call *call, struct shuf__error *error)
{
    assert(h->connection.fd >= 0);
    return ask(&h->connection, call, error);
}

/* What the request gave back is given back: a refusal, too, comes after that. */
static void ask_again(struct shuf__call *call)
{
    if (call->renew)
        call->renew(call);
}

shuf_status shuf__call_run(shuf *h, struct shuf__call *call)
{
    bool had_one = h->connection.fd >= 0, made_room = false;
    if (shuf__handle_check(h))
        return h->error.status;
    for (unsigned losses = 0; losses < LOSSES_MAX; losses++) {
        uint64_t before = call->delivered;
        if (is_gone(h, call))
            return gone(h);
        if (h->connection.fd < 0) {
            if (reach(h))
                return had_one && h->error.status == SHUF_NO_DAEMON ? lost(h) : h->error.status;
            ask_again(call);
        }
        had_one = true;
        shuf_status status = ask(&h->connection, call, &h->error);
        if (status == SHUF_BUSY && !made_room && (made_room = shuf__leases_make_room(h))) {
            ask_again(call);
            continue;
        }
        if (status == SHUF_OK)
            h->error = (struct shuf__error){0};
        if (status != SHUF_NO_DAEMON || (h->reconnect_ms == 0 && call->connection == 0))
            return status;
        if (call->delivered > before)
            losses = 0;
    }
    return h->error.status;
}
