/* SPDX-License-Identifier: MIT
 *
 * See call.h.
 */
#include "call.h"

#include "interrupt.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define NS_PER_MS UINT64_C(1000000)
#define DISCARD_WAIT_NS (1000 * NS_PER_MS)

/* bytes */
enum {
    DISCARD_MAX = 64 << 20, /* to receive more takes longer than to connect again */
    ASK_STEP = 1 << 20,     /* at most, before the interrupt function is asked again */
    REPORT_STEP = 64 << 20, /* the most that one report adds */
};

enum {
    /* The most connections in a row that end before an answer, if none ever had one. In the time of
     * so many attempts, a service manager does not start so many daemons. */
    SILENT_ENDS_MAX = 16,
    BACKOFF_FIRST_MS = 2,
    BACKOFF_MAX_MS = 100,
};

/* ---- Events ---- */

/* The delivered bytes of the whole result. The payload may be a part of it. */
static uint64_t done_bytes(const shuf *h, const struct shuf__round_trip *trip)
{
    return h->copied + trip->delivered;
}

static uint64_t all_bytes(const shuf *h, const struct shuf__round_trip *trip)
{
    return h->copying > 0 ? h->copying : trip->payload_bytes;
}

static void report_event(shuf *h, const struct shuf__round_trip *trip, shuf_event event)
{
    shuf__handle_observe(h, event, done_bytes(h, trip), all_bytes(h, trip));
}

/* Reports each step; the end of a part is reported when its reply is complete. */
static void report_bytes(shuf *h, const struct shuf__round_trip *trip, uint64_t bytes)
{
    const uint64_t done = done_bytes(h, trip);
    if (done / REPORT_STEP != (done - bytes) / REPORT_STEP && trip->delivered < trip->payload_bytes)
        report_event(h, trip, SHUF_EVENT_PART);
}

/* ---- One round trip ---- */

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

/* Receives into the caller's memory without a copy in between. */
static shuf_status fill_memory(shuf *h, struct shuf__round_trip *trip, struct shuf__error *error)
{
    struct shuf__connection *connection = &h->connection;
    while (trip->delivered < trip->payload_bytes) {
        size_t received, most = least(trip->payload_bytes - trip->delivered, ASK_STEP);
        if (shuf__connection_end_if_interrupted(connection, error) ||
            shuf__connection_receive(connection, trip->memory + trip->delivered, most, &received,
                                     error))
            return error->status;
        trip->delivered += received;
        report_bytes(h, trip, received);
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
static shuf_status feed_sink(shuf *h, struct shuf__round_trip *trip, struct shuf__error *error)
{
    struct shuf__connection *connection = &h->connection;
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
        report_bytes(h, trip, whole);
        held -= whole;
        memmove(buffer, buffer + whole, held);
    }
    return SHUF_OK;
}

static shuf_status receive_payload(shuf *h, struct shuf__round_trip *trip,
                                   struct shuf__error *error)
{
    if (skip_delivered(&h->connection, trip->delivered, error))
        return error->status;
    return trip->memory ? fill_memory(h, trip, error) : feed_sink(h, trip, error);
}

static shuf_status check_payload_bytes(const struct shuf__round_trip *trip,
                                       const Shuf__Reply *reply, struct shuf__error *error)
{
    if (reply->payload_bytes == trip->payload_bytes)
        return SHUF_OK;
    return shuf__fail(error, SHUF_PROTOCOL, "reply payload_bytes %" PRIu64 ": expected %" PRIu64,
                      reply->payload_bytes, trip->payload_bytes);
}

/* Requires an open connection. Fails with SHUF_NO_DAEMON when the connection is lost. */
static shuf_status run_round_trip(shuf *h, struct shuf__round_trip *trip, struct shuf__error *error)
{
    struct shuf__connection *connection = &h->connection;
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
    return receive_payload(h, trip, error);
}

/* ---- Releases ---- */

void shuf__release_message_init(struct shuf__release_message *release, uint64_t lease)
{
    release->lease = lease;
    release->message = (Shuf__Release)SHUF__RELEASE__INIT;
    release->message.n_lease = 1;
    release->message.lease = &release->lease;
    release->message.unmapped = release->blocks;
}

static shuf_status read_release_reply(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                                      struct shuf__error *error)
{
    (void)trip;
    return shuf__reply_check(reply, SHUF__REPLY__BODY_RELEASE, "a ReleaseReply", error);
}

shuf_status shuf__release_send(shuf *h, Shuf__Release *message, struct shuf__error *error)
{
    Shuf__Request request = SHUF__REQUEST__INIT;
    *error = (struct shuf__error){0};
    request.body_case = SHUF__REQUEST__BODY_RELEASE;
    request.release = message;
    struct shuf__round_trip trip = {.request = &request, .read_reply = read_release_reply};
    shuf_status status = run_round_trip(h, &trip, error);
    if (status == SHUF_NO_DAEMON)
        *error = (struct shuf__error){0};
    return error->status;
}

/* False if there is nothing to report, or no daemon. The message of a failure is in the handle. */
static bool report_unmapped(shuf *handle, uint64_t *blocks, size_t count)
{
    Shuf__Release message = SHUF__RELEASE__INIT;
    message.n_unmapped = count;
    message.unmapped = blocks;
    if (count == 0 || handle->connection.fd < 0)
        return false;
    shuf__release_send(handle, &message, &handle->error);
    return true;
}

bool shuf__release_idle_mappings(shuf *handle)
{
    uint64_t blocks[SHUF__UNMAPPED_MAX];
    return report_unmapped(handle, blocks, shuf__mappings_trim(&handle->mappings, blocks));
}

shuf_status shuf__release_above_limit(shuf *handle, uint64_t bytes)
{
    uint64_t blocks[SHUF__UNMAPPED_MAX];
    report_unmapped(handle, blocks, shuf__mappings_set_limit(&handle->mappings, bytes, blocks));
    return handle->error.status;
}

void shuf__release_everything(shuf *handle)
{
    Shuf__Release message = SHUF__RELEASE__INIT;
    struct shuf__error ignored;
    message.everything = true;
    if (handle->connection.fd >= 0)
        shuf__release_send(handle, &message, &ignored);
}

/* ---- Waits ---- */

/* A signal may cut the pause short, which does no harm. Returns EINTR then, else 0. */
static int pause_ns(uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / (1000 * NS_PER_MS)),
                                  .tv_nsec = (long)(ns % (1000 * NS_PER_MS))};
    return nanosleep(&time, NULL) == 0 ? 0 : EINTR;
}

static uint64_t reconnect_ns(const shuf *h)
{
    const uint64_t most = h->reconnect_ms * NS_PER_MS, timeout = h->connection.timeout_ns;
    return timeout > 0 && timeout < most ? timeout : most;
}

bool shuf__wait_again(shuf *h, struct shuf__wait *wait)
{
    const uint64_t now = shuf__now_ns();
    if (wait->give_up_ns == 0)
        *wait = (struct shuf__wait){now + reconnect_ns(h), BACKOFF_FIRST_MS};
    if (now >= wait->give_up_ns)
        return false;
    const uint64_t left = wait->give_up_ns - now, pause = wait->pause_ms * NS_PER_MS;
    const int cause = pause_ns(pause < left ? pause : left);
    if (shuf__is_interrupted(cause)) { /* also by a signal just before the pause */
        shuf__fail_interrupted(h->connection.address.sun_path, &h->error);
        return false;
    }
    wait->pause_ms = wait->pause_ms * 2 < BACKOFF_MAX_MS ? wait->pause_ms * 2 : BACKOFF_MAX_MS;
    return true;
}

/* ---- Messages ---- */

shuf_status shuf__call_fail_lost(shuf *h)
{
    const uint64_t ms = reconnect_ns(h) / NS_PER_MS;
    return shuf__fail(&h->error, SHUF_NO_DAEMON,
                      "socket %s: the daemon was lost, and no other came within %" PRIu64
                      ".%03" PRIu64 " s",
                      h->connection.address.sun_path, ms / 1000, ms % 1000);
}

shuf_status shuf__call_fail_losses(shuf *h)
{
    return shuf__fail(&h->error, SHUF_NO_DAEMON,
                      "socket %s: %d daemons ended one after another during this request; the "
                      "daemon's log says why",
                      h->connection.address.sun_path, SHUF__LOSSES_MAX);
}

static bool is_other_program(const shuf *h)
{
    return h->connection.silent_ends >= SILENT_ENDS_MAX;
}

/* Not SHUF_NO_DAEMON: a user who starts a daemon there would take the socket from the program. */
static shuf_status fail_other_program(shuf *h)
{
    const struct shuf__error last = h->error;
    return shuf__fail(&h->error, SHUF_PROTOCOL, "%s; the same happened %u times in a row",
                      last.text, h->connection.silent_ends);
}

/* Adds the duration of all attempts to the message of the last one. */
static shuf_status fail_unreachable(shuf *h, bool tried_once)
{
    const struct shuf__error last = h->error;
    const uint64_t ms = reconnect_ns(h) / NS_PER_MS;
    if (ms == 0)
        return last.status;
    if (tried_once)
        return shuf__fail(&h->error, last.status,
                          "%s; the call tried once, because an earlier one waited in vain",
                          last.text);
    return shuf__fail(&h->error, last.status, "%s; the call tried for %" PRIu64 ".%03" PRIu64 " s",
                      last.text, ms / 1000, ms % 1000);
}

/* True if the request needs a lease, and the connection of this lease is lost. */
static bool lease_is_lost(const shuf *h, const struct shuf__round_trip *trip)
{
    return trip->generation != 0 &&
           (h->connection.fd < 0 || h->connection.generation != trip->generation);
}

/* What ended the lease, as the words before and after its noun. */
struct lease_end {
    const char *before, *after;
};

static struct lease_end end_of_lease(const struct shuf__connection *connection, uint64_t generation)
{
    static const struct lease_end ends[] = {
        [SHUF__CLOSED_BY_ERROR] = {"an error closed the connection that held", ""},
        [SHUF__CLOSED_BY_DAEMON] = {"the daemon that held",
                                    " is gone, or it closed the connection"},
        [SHUF__CLOSED_BY_TIMEOUT] = {"a timeout closed the connection that held", ""},
        [SHUF__CLOSED_BY_SINK] = {"a sink that stopped a transfer closed the connection that held",
                                  ""},
        [SHUF__CLOSED_BY_SIGNAL] = {"a signal that ended a call closed the connection that held",
                                    ""},
    };
    if (connection->closed_generation == generation)
        return ends[connection->closed_by];
    return (struct lease_end){"the connection that held", " was closed, or its daemon is gone"};
}

static shuf_status fail_lost_lease(shuf *h, const struct shuf__round_trip *trip)
{
    const struct lease_end end = end_of_lease(&h->connection, trip->generation);
    const char *noun = trip->needs_buffer ? "buffer" : "lease";
    return shuf__fail(&h->error, SHUF_NO_DAEMON,
                      "socket %s: %s the %s%s, and the %s ended; expected a new %s",
                      h->connection.address.sun_path, end.before, noun, end.after, noun, noun);
}

/* ---- Another daemon ---- */

static bool is_cancelled(const shuf *h)
{
    return h->connection.cancel.is_cancelled;
}

static shuf_status fail_cancelled(shuf *h)
{
    return shuf__fail(&h->error, SHUF_CANCELLED, "handle: another thread cancelled its calls");
}

/* True if another attempt may reach a daemon. After a loss this includes DENIED: a service manager
 * makes a socket, and gives it to its group only a moment later. */
static bool may_come(const shuf *h, shuf_status status)
{
    return status == SHUF_NO_DAEMON || (status == SHUF_DENIED && h->lost_daemon);
}

/* If no daemon comes after a loss, replaces the message of the last attempt, because that message
 * does not mention the loss. */
shuf_status shuf__call_await_daemon(shuf *h)
{
    const bool once = h->gave_up;
    shuf_status status;
    do
        status = shuf__connection_open(&h->connection, &h->error);
    while (may_come(h, status) && !once && !is_other_program(h) && !is_cancelled(h) &&
           shuf__wait_again(h, &h->next_daemon));
    if (status != SHUF_OK)
        status = h->error.status; /* of the wait, if a signal has ended it */
    h->gave_up = status == SHUF_NO_DAEMON;
    if (status == SHUF_NO_DAEMON && is_other_program(h))
        return fail_other_program(h);
    if (status == SHUF_NO_DAEMON && h->lost_daemon && h->connection.silent_ends == 0)
        return shuf__call_fail_lost(h);
    if (status == SHUF_NO_DAEMON)
        return fail_unreachable(h, once);
    if (status != SHUF_OK)
        return status;
    h->lost_daemon = false;
    h->next_daemon = (struct shuf__wait){0};
    return SHUF_OK;
}

/* ---- The call ---- */

static void prepare_retry(struct shuf__round_trip *trip)
{
    if (trip->prepare_retry)
        trip->prepare_retry(trip);
}

/* The daemon may have ended between two calls, or while a request was sent ahead. */
static bool daemon_closed_connection(const shuf *h)
{
    const struct shuf__connection *c = &h->connection;
    return c->generation > 0 && c->closed_by == SHUF__CLOSED_BY_DAEMON &&
           c->closed_generation == c->generation && !c->is_refused;
}

/* A handle may have no connection although it lost no daemon: it never had one, or a timeout or a
 * sink closed it. Then no event reports a loss. */
static shuf_status reconnect(shuf *h, const struct shuf__round_trip *trip)
{
    h->lost_daemon |= daemon_closed_connection(h);
    if (h->lost_daemon && !h->reported_loss) {
        h->reported_loss = true;
        report_event(h, trip, SHUF_EVENT_LOST);
    }
    if (shuf__call_await_daemon(h))
        return h->error.status;
    if (h->reported_loss) {
        h->reported_loss = false;
        report_event(h, trip, SHUF_EVENT_FOUND);
    }
    return SHUF_OK;
}

/* The end of a part is reported by the call that fetches the parts. */
static void finish(shuf *h, const struct shuf__round_trip *trip)
{
    h->error = (struct shuf__error){0};
    if (trip->payload_bytes > 0 && h->copying == 0)
        report_event(h, trip, SHUF_EVENT_PART);
}

static shuf_status run_until_answered(shuf *h, struct shuf__round_trip *trip)
{
    bool released_idle = false;
    for (unsigned losses = 0; losses < SHUF__LOSSES_MAX; losses++) {
        uint64_t before = trip->delivered;
        if (is_cancelled(h))
            return fail_cancelled(h);
        if (shuf__is_interrupted(0))
            return shuf__fail_interrupted(h->connection.address.sun_path, &h->error);
        if (lease_is_lost(h, trip))
            return fail_lost_lease(h, trip);
        if (h->connection.fd < 0) {
            if (reconnect(h, trip))
                return h->error.status;
            prepare_retry(trip);
        }
        shuf_status status = run_round_trip(h, trip, &h->error);
        if (status == SHUF_BUSY && !released_idle &&
            (released_idle = shuf__release_idle_mappings(h))) {
            if (h->error.status != SHUF_OK)
                return h->error.status;
            prepare_retry(trip);
            continue;
        }
        if (status == SHUF_OK)
            finish(h, trip);
        h->lost_daemon |= status == SHUF_NO_DAEMON;
        if (status != SHUF_NO_DAEMON || (h->reconnect_ms == 0 && trip->generation == 0))
            return status;
        if (trip->delivered > before)
            losses = 0;
    }
    h->reported_loss = true;
    report_event(h, trip, SHUF_EVENT_LOST);
    return shuf__call_fail_losses(h);
}

shuf_status shuf__call_run(shuf *h, struct shuf__round_trip *trip)
{
    if (shuf__handle_check(h))
        return h->error.status;
    const shuf_status status = run_until_answered(h, trip);
    return status != SHUF_OK && is_cancelled(h) ? fail_cancelled(h) : status;
}
