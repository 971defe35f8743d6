/* SPDX-License-Identifier: MIT
 *
 * Allocate: memory that its client fills, leased as a result is.
 */
#include "ask.h"
#include "handlers.h"
#include "shuffle.h"

#include <inttypes.h>
#include <stdio.h>

static void tell(const struct shuf__key *key, bool whole, char text[SHUF__ASKED_TEXT])
{
    (void)whole;
    snprintf(text, SHUF__ASKED_TEXT, "buffer of %" PRIu64, key->count);
}

void shuf__handle_allocate(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__error error;
    const Shuf__Allocate *allocate = request->allocate;
    const struct shuf__asked what = {
        .key = {.rows = 1, .count = allocate->bytes, .width = 1, .role = SHUF__BUFFER},
        .bytes = allocate->bytes,
        .tell = tell,
    };
    const struct shuf__terms terms = {.accepted = {allocate->accept, allocate->n_accept}};
    if ((allocate->give_back && shuf__lease_give_back(session, allocate->give_back, &error)) ||
        shuf__allocate_check(allocate->bytes, &error))
        shuf__session_fail(session, &error);
    else
        shuf__ask(session, &what, &terms);
}
