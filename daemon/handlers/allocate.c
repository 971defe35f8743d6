/* SPDX-License-Identifier: MIT
 *
 * Allocate: leases a buffer to a client, which is memory that the client fills.
 */
#include "handlers.h"
#include "parse.h"
#include "result.h"

static shuf_status parse_allocate(struct shuf__result_request *r, const Shuf__Request *message,
                                  struct shuf__error *error)
{
    const Shuf__Allocate *allocate = message->allocate;
    r->give_back = allocate->give_back;
    r->options = (struct shuf__reply_options){
        .accepted = {allocate->accept, allocate->n_accept},
    };
    return shuf__parse_allocate(allocate, &r->key.request, error);
}

void shuf__handle_allocate(struct shuf__session *session, const Shuf__Request *message)
{
    shuf__serve_result(session, message, parse_allocate);
}
