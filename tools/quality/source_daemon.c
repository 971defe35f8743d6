/* SPDX-License-Identifier: MIT
 *
 * Rows from a running shufd, by libshuf. Each request is for a batch of epochs.
 */
#include "source.h"

struct service {
    shuf *daemon;
    const struct shuf__origin *origin;
    uint32_t n;
};

static shuf_status open_daemon(void *state, const struct shuf__origin *origin, uint32_t n,
                               struct shuf__error *error)
{
    struct service *s = state;
    s->origin = origin;
    s->n = n;
    shuf_status status = shuf_connect(&s->daemon, origin->socket);
    return status == SHUF_OK ? SHUF_OK : shuf__fail(error, status, "%s", shuf_message(s->daemon));
}

static shuf_status read_daemon(void *state, const struct shuf__row_request *request, uint32_t *rows,
                               size_t *count, struct shuf__error *error)
{
    struct service *s = state;
    const size_t batch = s->origin->vary_seed ? 1 : request->count;
    for (size_t r = 0; r < request->count; r += batch) {
        const struct shuf__place place =
            shuf__place_of(s->origin, request->relation, request->bit, request->first + r);
        const shuf_request what = {.permutation = {
                                       .algorithm = s->origin->algorithm,
                                       .n = s->n,
                                       .seed = place.seed,
                                       .epoch = place.epoch,
                                       .epochs = batch,
                                       .dtype = SHUF_U32,
                                   }};
        shuf_status status =
            shuf_copy(s->daemon, &what, rows + r * s->n, batch * s->n * sizeof *rows, NULL);
        if (status != SHUF_OK)
            return shuf__fail(error, status, "%s", shuf_message(s->daemon));
    }
    *count = request->count;
    return SHUF_OK;
}

static void close_daemon(void *state)
{
    shuf_close(((struct service *)state)->daemon);
}

const struct shuf__source_type shuf__source_daemon = {
    .name = "daemon",
    .relatives = true,
    .state = sizeof(struct service),
    .open = open_daemon,
    .read = read_daemon,
    .close = close_daemon,
};
