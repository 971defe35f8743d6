/* SPDX-License-Identifier: MIT
 *
 * Stream: values of a stream of random numbers.
 */
#include "handlers.h"
#include "parse.h"
#include "result.h"

static shuf_status parse_stream(struct shuf__result_request *r, const Shuf__Request *message,
                                struct shuf__error *error)
{
    const Shuf__Stream *stream = message->stream;
    r->give_back = stream->give_back;
    r->options = (struct shuf__reply_options){
        .accepted = {stream->accept, stream->n_accept},
        .fingerprint = stream->fingerprint,
        .fingerprint_index = stream->fingerprint_index,
        .sums = stream->sums,
        .prefetch = stream->prefetch,
        .event = stream->event,
        .divisible = stream->divisible,
    };
    return shuf__parse_stream(stream, &r->key.request, error);
}

void shuf__handle_stream(struct shuf__session *session, const Shuf__Request *message)
{
    shuf__serve_result(session, message, parse_stream);
}
