/* SPDX-License-Identifier: MIT
 *
 * Stream: random numbers.
 */
#include "handlers.h"
#include "parse.h"
#include "result.h"

void shuf__handle_stream(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__error error;
    struct shuf__parsed_request what = {.input = NULL};
    const Shuf__Stream *stream = request->stream;
    const struct shuf__reply_options terms = {
        .accepted = {stream->accept, stream->n_accept},
        .fingerprint = stream->fingerprint,
        .sums = stream->sums,
        .prefetch = stream->prefetch,
        .event = stream->event,
    };
    if ((stream->give_back && shuf__lease_give_back(session, stream->give_back, &error)) ||
        shuf__parse_stream(stream, &what.request, &error))
        shuf__session_fail(session, &error);
    else
        shuf__ask(session, &what, &terms);
}
