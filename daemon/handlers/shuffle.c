/* SPDX-License-Identifier: MIT
 *
 * Shuffle: records of what its client has leased, in the order of a permutation. What
 * the input holds is its client's affair, so its result is nobody else's.
 */
#include "handlers.h"
#include "parse.h"
#include "result.h"

/* Takes a reference to the input. */
static shuf_status find_input(struct shuf__session *session, uint64_t id,
                              struct shuf__parsed_request *what, struct shuf__error *error)
{
    const struct shuf__lease *lease = shuf__lease_find(session, id, error);
    if (!lease || shuf__shuffle_check_input(&what->request, id, lease->result->bytes, error))
        return error->status;
    what->input = shuf__cache_entry_ref(lease->result);
    return SHUF_OK;
}

static shuf_status parse(struct shuf__session *session, const Shuf__Shuffle *message,
                         struct shuf__parsed_request *what, struct shuf__error *error)
{
    if (shuf__parse_shuffle(message, &what->request, error))
        return error->status;
    return find_input(session, message->lease, what, error);
}

/* The input is found before leases are given back, of which it may be one. */
void shuf__handle_shuffle(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__error wrong = {0}, error;
    struct shuf__parsed_request what = {.input = NULL};
    const Shuf__Shuffle *shuffle = request->shuffle;
    const struct shuf__reply_options terms = {
        .accepted = {shuffle->accept, shuffle->n_accept},
        .event = shuffle->event,
    };
    shuf_status status = parse(session, shuffle, &what, &wrong);
    if (shuffle->give_back && shuf__lease_give_back(session, shuffle->give_back, &error)) {
        if (what.input)
            shuf__cache_entry_unref(what.input);
        shuf__session_fail(session, &error);
    } else if (status) {
        shuf__session_fail(session, &wrong);
    } else {
        shuf__ask(session, &what, &terms);
    }
}
