/* SPDX-License-Identifier: MIT
 *
 * See drain.h.
 */
#include "drain.h"

#include <inttypes.h>

/* ---- Readers that hold memory ---- */

enum { GRACE_MS = 1000 };

/* The bytes that the client should have read already at SHUF__READ_BYTES_PER_MS, but has not. */
static uint64_t lag_of(const struct shuf__session *session, enum shuf__side side, uint64_t now_ns)
{
    const struct shuf__payload *payload = &session->outbox.payload;
    if (!shuf__session_waits_for_client(session) || !payload->entry || payload->fetching ||
        shuf__side_of(payload->entry->allocation->kind) != side)
        return 0;
    const uint64_t ms = (now_ns - payload->since_ns) / 1000000, due = ms * SHUF__READ_BYTES_PER_MS;
    return ms >= GRACE_MS && due > payload->sent ? due - payload->sent : 0;
}

static struct shuf__session *find_slowest(const struct shuf__sessions *sessions,
                                          enum shuf__side side)
{
    uint64_t lag, most = 0;
    const uint64_t now_ns = uv_hrtime();
    struct shuf__session *session, *slowest = NULL;
    LIST_FOREACH (session, &sessions->list, link)
        if ((lag = lag_of(session, side, now_ns)) > most) {
            most = lag;
            slowest = session;
        }
    return slowest;
}

uint64_t shuf__slow_readers_bytes(void *context, enum shuf__side side, const uint32_t *only)
{
    uint64_t bytes = 0;
    const struct shuf__sessions *sessions = context;
    const uint64_t now_ns = uv_hrtime();
    const struct shuf__session *session;
    LIST_FOREACH (session, &sessions->list, link)
        if ((!only || *only == session->client.uid) && lag_of(session, side, now_ns) > 0)
            bytes += session->outbox.payload.entry->allocation->bytes;
    return bytes;
}

/* Gives the result back now. The session is closed in its next turn, because the caller is in the
 * middle of a request. */
bool shuf__slow_readers_cut_off(void *context, enum shuf__side side)
{
    struct shuf__sessions *sessions = context;
    struct shuf__session *slowest = find_slowest(sessions, side);
    if (!slowest)
        return false;
    shuf__payload_abandon(&slowest->outbox.payload,
                          "it read less than 1 MiB/s, and other requests need the memory");
    shuf__ready_add(&slowest->ready);
    return true;
}

/* ---- The end of all sessions ---- */

enum { TICKS = 4 }; /* in the time of a read */

/* Calls `end` for each session. A call may remove its session from the list. */
static void for_each_session(struct shuf__drain *drain,
                             void (*end)(struct shuf__drain *, struct shuf__session *))
{
    struct shuf__session *session = LIST_FIRST(&drain->sessions->list);
    while (session) {
        struct shuf__session *next = LIST_NEXT(session, link);
        end(drain, session);
        session = next;
    }
}

static void cut_off(struct shuf__drain *drain, struct shuf__session *session, uint64_t bytes,
                    uint64_t ms)
{
    shuf__log_client(drain->sessions->log, SHUF__LOG_WARNING,
                     "client pid %ld, uid %ld: cut off: it read %" PRIu64 " bytes in %" PRIu64
                     " ms, expected 1 MiB/s",
                     (long)session->client.pid, (long)session->client.uid, bytes, ms);
    drain->unread++;
    shuf__session_close(session);
}

static uint64_t sent_of(const struct shuf__session *session)
{
    return session->outbox.sent + session->outbox.payload.sent;
}

static void count_from_now(struct shuf__session *session, uint64_t now_ns)
{
    session->counted_since_ns = now_ns;
    session->sent_before = sent_of(session);
}

/* The kernel reports room in a socket only when most of its buffer is free. So the bytes of a
 * client that reads evenly come in steps, which are smaller than a chunk. */
static bool is_slow(uint64_t bytes, uint64_t ms)
{
    return bytes == 0 || bytes + SHUF__PAYLOAD_CHUNK < ms * SHUF__READ_BYTES_PER_MS;
}

static void judge(struct shuf__drain *drain, struct shuf__session *session, uint64_t now_ns)
{
    const uint64_t ms = (now_ns - session->counted_since_ns) / 1000000,
                   bytes = sent_of(session) - session->sent_before;
    count_from_now(session, now_ns);
    if (shuf__session_waits_for_client(session) && is_slow(bytes, ms))
        cut_off(drain, session, bytes, ms);
}

static void check_progress(struct shuf__drain *drain, struct shuf__session *session)
{
    const uint64_t now_ns = uv_hrtime();
    if (session->state != SHUF__SESSION_SENDING)
        session->counted_since_ns = 0;
    else if (session->counted_since_ns == 0)
        count_from_now(session, now_ns);
    else if (now_ns - session->counted_since_ns >= drain->read_timeout_ms * 1000000)
        judge(drain, session, now_ns);
}

static void on_tick(uv_timer_t *tick)
{
    for_each_session(tick->data, check_progress);
}

static void drain_session(struct shuf__drain *drain, struct shuf__session *session)
{
    (void)drain;
    shuf__session_drain(session);
}

void shuf__drain_init(struct shuf__drain *drain, struct shuf__sessions *sessions)
{
    *drain = (struct shuf__drain){.sessions = sessions};
    uv_timer_init(sessions->loop, &drain->tick);
    drain->tick.data = drain;
}

void shuf__drain_start(struct shuf__drain *drain, uint64_t read_timeout_ms)
{
    const uint64_t tick_ms = read_timeout_ms / TICKS;
    drain->sessions->draining = true;
    drain->read_timeout_ms = read_timeout_ms;
    for_each_session(drain, drain_session);
    uv_timer_start(&drain->tick, on_tick, 0, tick_ms > 0 ? tick_ms : 1);
}

static void close_session(struct shuf__drain *drain, struct shuf__session *session)
{
    drain->unread += shuf__session_waits_for_client(session);
    shuf__session_close(session);
}

uint64_t shuf__drain_force(struct shuf__drain *drain)
{
    const uint64_t clients = drain->sessions->count, before = drain->unread;
    uv_timer_stop(&drain->tick);
    for_each_session(drain, close_session);
    return clients - (drain->unread - before);
}
