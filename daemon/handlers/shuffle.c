/* SPDX-License-Identifier: MIT
 *
 * Shuffle: moves the records of a leased result by a permutation. A client can write to the input,
 * so requests never share the result of a shuffle.
 */
#include "handlers.h"
#include "parse.h"
#include "result.h"

static shuf_status find_input(struct shuf__result_request *r, uint64_t id,
                              struct shuf__error *error)
{
    const struct shuf__lease *lease = shuf__lease_find(&r->session->leases, id, error);
    if (!lease || shuf__shuffle_check_input(&r->key.request, id, lease->entry->bytes, error))
        return error->status;
    r->input = shuf__cache_entry_ref(lease->entry);
    return SHUF_OK;
}

static shuf_status parse_shuffle(struct shuf__result_request *r, const Shuf__Request *message,
                                 struct shuf__error *error)
{
    const Shuf__Shuffle *shuffle = message->shuffle;
    r->give_back = shuffle->give_back;
    r->options = (struct shuf__reply_options){
        .accepted = {shuffle->accept, shuffle->n_accept},
        .event = shuffle->event,
    };
    if (shuf__parse_shuffle(shuffle, &r->key.request, error))
        return error->status;
    return find_input(r, shuffle->lease, error);
}

void shuf__handle_shuffle(struct shuf__session *session, const Shuf__Request *message)
{
    shuf__serve_result(session, message, parse_shuffle);
}
