/* SPDX-License-Identifier: MIT
 *
 * Allocate: memory that its client fills, leased as a result is.
 */
#include "handlers.h"
#include "parse.h"
#include "result.h"

void shuf__handle_allocate(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__error error;
    struct shuf__parsed_request what = {.input = NULL};
    const Shuf__Allocate *allocate = request->allocate;
    const struct shuf__reply_options terms = {.accepted = {allocate->accept, allocate->n_accept}};
    if ((allocate->give_back && shuf__lease_give_back(session, allocate->give_back, &error)) ||
        shuf__parse_allocate(allocate, &what.request, &error))
        shuf__session_fail(session, &error);
    else
        shuf__ask(session, &what, &terms);
}
