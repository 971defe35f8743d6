/* SPDX-License-Identifier: MIT
 *
 * Permute: values of a permutation.
 */
#include "handlers.h"
#include "parse.h"
#include "result.h"

void shuf__handle_permute(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__error error;
    struct shuf__parsed_request what = {.input = NULL};
    const Shuf__Permute *permute = request->permute;
    const struct shuf__reply_options terms = {
        .accepted = {permute->accept, permute->n_accept},
        .fingerprint = permute->fingerprint,
        .prefetch = permute->prefetch,
        .event = permute->event,
    };
    if ((permute->give_back && shuf__lease_give_back(session, permute->give_back, &error)) ||
        shuf__parse_permute(permute, &what.request, &error))
        shuf__session_fail(session, &error);
    else
        shuf__ask(session, &what, &terms);
}
