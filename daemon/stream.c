/* SPDX-License-Identifier: MIT
 *
 * Stream: what it asks for. A stream is a result like any other, of one row whose
 * epoch is the stream's number.
 */
#include "ask.h"
#include "handlers.h"
#include "stream_plan.h"

#include <inttypes.h>
#include <stdio.h>

static void tell(const struct shuf__key *key, bool whole, char text[SHUF__ASKED_TEXT])
{
    int used =
        snprintf(text, SHUF__ASKED_TEXT, "%s, %s, stream %" PRIu64,
                 shuf__distribution_name(key->distribution),
                 shuf__dtype_name(shuf__dtype_of((enum shuf_number)key->number)), key->epoch);
    if (!whole)
        return;
    used += snprintf(text + used, SHUF__ASKED_TEXT - (size_t)used,
                     ", seed %" PRIu64 ", %" PRIu64 " values from %" PRIu64, key->seed, key->count,
                     key->offset);
    if (shuf__distribution_is_normal(key->distribution))
        snprintf(text + used, SHUF__ASKED_TEXT - (size_t)used, ", mean %.17g, std %.17g", key->mean,
                 key->std);
}

static shuf_status understand(const Shuf__Stream *request, struct shuf__asked *what,
                              struct shuf__error *error)
{
    struct shuf__stream_plan plan;
    if (shuf__stream_plan_make(request, &plan, error))
        return error->status;
    *what = (struct shuf__asked){
        .key =
            {
                .seed = plan.seed,
                .epoch = plan.stream,
                .rows = 1,
                .offset = plan.offset,
                .count = plan.count,
                .stride = 1, /* 0 is a table's (table.c) */
                .mean = plan.mean,
                .std = plan.std,
                .width = plan.width,
                .distribution = (uint32_t)plan.distribution,
                .number = (uint32_t)plan.number,
            },
        .dtype = plan.dtype,
        .bytes = plan.bytes,
        .tell = tell,
    };
    return SHUF_OK;
}

void shuf__handle_stream(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__error error;
    struct shuf__asked what;
    const Shuf__Stream *stream = request->stream;
    const struct shuf__terms terms = {
        .accepted = {stream->accept, stream->n_accept},
        .fingerprint = stream->fingerprint,
        .sums = stream->sums,
        .prefetch = stream->prefetch,
        .event = stream->event,
    };
    if ((stream->give_back && shuf__lease_give_back(session, stream->give_back, &error)) ||
        understand(stream, &what, &error))
        shuf__session_fail(session, &error);
    else
        shuf__ask(session, &what, &terms);
}
