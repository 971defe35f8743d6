/* SPDX-License-Identifier: MIT
 *
 * The public call that reads the metrics of the daemon.
 */
#include "arguments.h"
#include "call.h"

#include <inttypes.h>
#include <stdlib.h>

enum { METRICS_MAX = 64 << 20 }; /* bytes: no daemon has a longer text */

/* The text is the payload of the reply. */
static shuf_status read_metrics_reply(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                                      struct shuf__error *error)
{
    if (reply->body_case != SHUF__REPLY__BODY_METRICS)
        return shuf__fail(error, SHUF_PROTOCOL, "reply body %d: expected a MetricsReply",
                          (int)reply->body_case);
    if (reply->payload_bytes > METRICS_MAX)
        return shuf__fail(error, SHUF_PROTOCOL, "metrics of %" PRIu64 " bytes: expected at most %d",
                          reply->payload_bytes, METRICS_MAX);
    trip->payload_bytes = reply->payload_bytes;
    trip->memory = malloc(reply->payload_bytes + 1);
    if (!trip->memory)
        return shuf__fail(error, SHUF_NO_MEMORY, "metrics: out of memory");
    trip->memory[reply->payload_bytes] = '\0';
    return SHUF_OK;
}

/* Another daemon, or the same one later, has another text. */
static void forget_text(struct shuf__round_trip *trip)
{
    free(trip->memory);
    trip->memory = NULL;
    trip->delivered = 0;
}

shuf_status shuf_daemon_metrics(shuf *handle, shuf_metrics_format format, char **text)
{
    Shuf__Metrics metrics = SHUF__METRICS__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(text));
    if (!call)
        return SHUF_INVALID;
    *text = NULL;
    if (format != SHUF_PROMETHEUS && format != SHUF_OPENMETRICS)
        return shuf__fail(&handle->error, SHUF_INVALID,
                          "format %d: expected SHUF_PROMETHEUS or SHUF_OPENMETRICS", (int)format);
    metrics.openmetrics = format == SHUF_OPENMETRICS;
    request.body_case = SHUF__REQUEST__BODY_METRICS;
    request.metrics = &metrics;
    struct shuf__round_trip trip = {
        .request = &request, .read_reply = read_metrics_reply, .prepare_retry = forget_text};
    shuf_status status = shuf__call_run(handle, &trip);
    if (status != SHUF_OK)
        forget_text(&trip);
    *text = (char *)trip.memory;
    return status;
}
