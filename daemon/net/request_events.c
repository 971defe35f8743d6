/* SPDX-License-Identifier: MIT
 *
 * The events of a request: see session_state.h.
 */
#include "session.h"

#include "message.h"
#include "trace/trace.h"

#include <inttypes.h>
#include <stdio.h>

static struct shuf__log_request log_fields(const struct shuf__session *session)
{
    const struct shuf__request_record *record = &session->record;
    struct shuf__log_request fields = {
        .pid = session->client.pid,
        .uid = session->client.uid,
        .kind = shuf__request_kind_name(record->kind),
        .n = record->n,
        .duration_us = record->sent_ns ? shuf__request_duration(record) / 1000 : 0,
    };
    snprintf(fields.id, sizeof fields.id, "%" PRIu64 ".%" PRIu64, record->request.connection,
             record->request.id);
    return fields;
}

void shuf__request_received(struct shuf__session *session, const Shuf__Request *request)
{
    session->id = request ? request->id : 0;
    session->record = (struct shuf__request_record){
        .request = {session->number, session->id},
        .kind = request ? shuf__request_kind(request) : 0,
        .received_ns = uv_hrtime(),
    };
    SHUF__PROBE(request_received, session->number, session->id, session->record.kind,
                session->client.pid);
}

void shuf__request_replied(struct shuf__session *session, const Shuf__Reply *reply)
{
    struct shuf__request_record *record = &session->record;
    record->status = (shuf_status)reply->status;
    record->replied_ns = record->computed_ns ? record->computed_ns : uv_hrtime();
    if (reply->status != SHUF_OK)
        record->values = 0;
}

/* A limit of the configuration, or the end of the session. */
static bool is_notable(const struct shuf__session *session, shuf_status status)
{
    return session->closes_after_reply || ((status == SHUF_BUSY || status == SHUF_NO_MEMORY) &&
                                           !shuf__request_is_divided(&session->record, status));
}

void shuf__request_failed(const struct shuf__session *session, shuf_status status, const char *text)
{
    const enum shuf__log_level level =
        is_notable(session, status) ? SHUF__LOG_INFO : SHUF__LOG_DEBUG;
    if (session->all->log->level < level)
        return;
    const struct shuf__log_request fields = log_fields(session);
    shuf__log_request(session->all->log, level, &fields, "client pid %ld, uid %ld: %s: %s",
                      (long)session->client.pid, (long)session->client.uid,
                      shuf_status_name(status), text);
}

/* ---- The line of a request that is over ---- */

enum { STAGES_TEXT = 128, SIZE_TEXT = 64 };

/* ", n 1000, 5 values" */
static void describe_size(const struct shuf__request_record *record, char text[SIZE_TEXT])
{
    text[0] = '\0';
    if (record->n)
        snprintf(text, SIZE_TEXT, ", n %" PRIu64 ", %" PRIu64 " value%s", record->n, record->values,
                 record->values == 1 ? "" : "s");
}

/* "queue 1.250 ms, device 0.300 ms, reply 0.010 ms" */
static void describe_stages(const struct shuf__request_record *record, char text[STAGES_TEXT])
{
    uint64_t ns;
    int used = 0;
    text[0] = '\0';
    for (int stage = 0; stage < SHUF__STAGES; stage++)
        if (shuf__request_stage(record, (enum shuf__stage)stage, &ns))
            used +=
                snprintf(text + used, STAGES_TEXT - (size_t)used, "%s%s %.3f ms", used ? ", " : "",
                         shuf__stage_name((enum shuf__stage)stage), (double)ns / 1e6);
}

static void log_sent(const struct shuf__session *session, bool slow)
{
    char stages[STAGES_TEXT], size[SIZE_TEXT];
    const struct shuf__request_record *record = &session->record;
    const enum shuf__log_level level = slow ? SHUF__LOG_WARNING : SHUF__LOG_DEBUG;
    if (session->all->log->level < level)
        return;
    const struct shuf__log_request fields = log_fields(session);
    describe_stages(record, stages);
    describe_size(record, size);
    shuf__log_request(session->all->log, level, &fields,
                      "client pid %ld, uid %ld: %srequest %s: %s%s, %s, %.3f ms: %s",
                      (long)session->client.pid, (long)session->client.uid, slow ? "slow " : "",
                      fields.id, fields.kind, size, shuf_status_name(record->status),
                      (double)shuf__request_duration(record) / 1e6, stages);
}

void shuf__request_sent(struct shuf__session *session)
{
    struct shuf__request_record *record = &session->record;
    const uint64_t slow_ns = session->all->slow_ns;
    record->sent_ns = uv_hrtime();
    shuf__stats_sent(session->all->stats, record, session->user);
    if (record->received_ns) {
        const bool slow = slow_ns > 0 && shuf__request_duration(record) >= slow_ns;
        session->all->stats->slow += slow;
        log_sent(session, slow);
        SHUF__PROBE(reply_sent, session->number, session->id, (unsigned)record->status,
                    shuf__request_duration(record));
    }
    shuf__spin_replied(&session->all->spin, record->sent_ns);
    *record = (struct shuf__request_record){0};
}

void shuf__request_cancelled(struct shuf__session *session)
{
    shuf__stats_cancelled(session->all->stats, &session->record, session->user);
    SHUF__PROBE(request_cancelled, session->number, session->id, session->record.kind,
                session->client.pid);
}
