/* SPDX-License-Identifier: MIT
 *
 * Exchange: the plan by which a rank exchanges its records with others.
 */
#include "handlers.h"
#include "parse.h"
#include "result.h"

static shuf_status parse_exchange(struct shuf__result_request *r, const Shuf__Request *message,
                                  struct shuf__error *error)
{
    const Shuf__Exchange *exchange = message->exchange;
    r->give_back = exchange->give_back;
    r->options = (struct shuf__reply_options){
        .accepted = {exchange->accept, exchange->n_accept},
        .prefetch = exchange->prefetch,
    };
    return shuf__parse_exchange(exchange, &r->key.request, error);
}

void shuf__handle_exchange(struct shuf__session *session, const Shuf__Request *message)
{
    shuf__serve_result(session, message, parse_exchange);
}
