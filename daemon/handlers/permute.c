/* SPDX-License-Identifier: MIT
 *
 * Permute: values of a permutation.
 */
#include "handlers.h"
#include "parse.h"
#include "result.h"

static shuf_status parse_permute(struct shuf__result_request *r, const Shuf__Request *message,
                                 struct shuf__error *error)
{
    const Shuf__Permute *permute = message->permute;
    r->give_back = permute->give_back;
    r->options = (struct shuf__reply_options){
        .accepted = {permute->accept, permute->n_accept},
        .fingerprint = permute->fingerprint,
        .fingerprint_index = permute->fingerprint_index,
        .prefetch = permute->prefetch,
        .event = permute->event,
        .divisible = permute->divisible,
    };
    return shuf__parse_permute(permute, &r->key.request, error);
}

void shuf__handle_permute(struct shuf__session *session, const Shuf__Request *message)
{
    shuf__serve_result(session, message, parse_permute);
}
