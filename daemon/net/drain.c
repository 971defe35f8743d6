/* SPDX-License-Identifier: MIT
 *
 * See drain.h.
 */
#include "drain.h"

#include "slow_readers.h"

#include <inttypes.h>

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

static void cut_off(struct shuf__drain *drain, struct shuf__session *session)
{
    shuf__log_client(
        drain->sessions->log, SHUF__LOG_WARNING,
        "client pid %ld, uid %ld: cut off: it read less than 1 MiB/s for %" PRIu64 " ms",
        (long)session->client.pid, (long)session->client.uid, uv_timer_get_repeat(&drain->tick));
    drain->unread++;
    shuf__session_close(session);
}

static void check_progress(struct shuf__drain *drain, struct shuf__session *session)
{
    const bool waits = shuf__session_waits_for_client(session);
    const uint64_t sent = 1 + session->outbox.sent + session->outbox.payload.sent;
    const uint64_t due = uv_timer_get_repeat(&drain->tick) * SHUF__READ_BYTES_PER_MS;
    const bool is_slow = waits && session->sent_before > 0 && sent - session->sent_before < due;
    session->sent_before = waits ? sent : 0;
    if (is_slow)
        cut_off(drain, session);
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

void shuf__drain_start(struct shuf__drain *drain, uint64_t tick_ms)
{
    drain->sessions->draining = true;
    for_each_session(drain, drain_session);
    uv_timer_start(&drain->tick, on_tick, 0, tick_ms);
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
