/* SPDX-License-Identifier: MIT
 *
 * Metrics: sends the metrics of the daemon as text, which is the payload of the reply.
 */
#include "handlers.h"
#include "metrics_text.h"

void shuf__handle_metrics(struct shuf__session *session, const Shuf__Request *request)
{
    size_t size;
    struct shuf__error error;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__MetricsReply body = SHUF__METRICS_REPLY__INIT;
    char *text = shuf__metrics_text(
        shuf__service_of(session), shuf__metrics_reader_of(session->client.uid),
        request->metrics->openmetrics ? SHUF__EXPOSITION_OPENMETRICS : SHUF__EXPOSITION_PROMETHEUS,
        &size);
    if (!text) {
        shuf__fail(&error, SHUF_NO_MEMORY, "metrics: out of memory");
        shuf__session_fail(session, &error);
        return;
    }
    reply.body_case = SHUF__REPLY__BODY_METRICS;
    reply.metrics = &body;
    shuf__session_reply_text(session, &reply, text, size);
}
