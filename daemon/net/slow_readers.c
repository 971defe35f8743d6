/* SPDX-License-Identifier: MIT
 *
 * See slow_readers.h.
 */
#include "slow_readers.h"

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
