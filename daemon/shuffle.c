/* SPDX-License-Identifier: MIT
 *
 * Shuffle: records of what its client has leased, in the order of a permutation. What
 * the input holds is its client's affair, so its result is nobody else's.
 */
#include "shuffle.h"

#include "ask.h"
#include "handlers.h"

#include <inttypes.h>
#include <stdio.h>

static void tell(const struct shuf__key *key, bool whole, char text[SHUF__ASKED_TEXT])
{
    int used = snprintf(text, SHUF__ASKED_TEXT, "%s n %" PRIu64 ", records of %" PRIu64 " bytes",
                        key->inverse ? "shuffle back" : "shuffle", key->n, key->record);
    if (whole)
        snprintf(text + used, SHUF__ASKED_TEXT - (size_t)used,
                 ", %s, seed %" PRIu64 ", epoch %" PRIu64,
                 shuf__permute_algorithm_name(key->algorithm), key->seed, key->epoch);
}

/* The input; a reference where that is right. */
static shuf_status find_input(struct shuf__session *session, const Shuf__Shuffle *request,
                              uint64_t bytes, struct shuf__result **input,
                              struct shuf__error *error)
{
    const struct shuf__lease *lease = shuf__lease_find(session, request->lease, error);
    if (!lease || shuf__shuffle_check_input(request, bytes, lease->result->bytes, error))
        return error->status;
    *input = shuf__result_ref(lease->result);
    return SHUF_OK;
}

static shuf_status understand(struct shuf__session *session, const Shuf__Shuffle *request,
                              struct shuf__asked *what, struct shuf__error *error)
{
    uint64_t bytes;
    enum shuf_algorithm algorithm;
    struct shuf__result *input = NULL;
    if (shuf__permute_algorithm(request->algorithm, &algorithm, error) ||
        shuf__shuffle_check(request, &bytes, error) ||
        find_input(session, request, bytes, &input, error))
        return error->status;
    *what = (struct shuf__asked){
        .key =
            {
                .n = request->n,
                .seed = request->seed,
                .epoch = request->epoch,
                .rows = 1,
                .count = request->n,
                .stride = 1,
                .record = request->record,
                .algorithm = (uint32_t)algorithm,
                .inverse = request->inverse,
            },
        .bytes = bytes,
        .input = input,
        .tell = tell,
    };
    return SHUF_OK;
}

/* The input is found before leases are given back, of which it may be one. */
void shuf__handle_shuffle(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__error wrong = {0}, error;
    struct shuf__asked what = {.input = NULL};
    const Shuf__Shuffle *shuffle = request->shuffle;
    const struct shuf__terms terms = {
        .accepted = {shuffle->accept, shuffle->n_accept},
        .event = shuffle->event,
    };
    shuf_status status = understand(session, shuffle, &what, &wrong);
    if (shuffle->give_back && shuf__lease_give_back(session, shuffle->give_back, &error)) {
        if (what.input)
            shuf__result_unref(what.input);
        shuf__session_fail(session, &error);
    } else if (status) {
        shuf__session_fail(session, &wrong);
    } else {
        shuf__ask(session, &what, &terms);
    }
}
