/* SPDX-License-Identifier: MIT
 *
 * Rows that a generator makes in this process.
 */
#include "source.h"

#include "generator.h"

struct generated {
    const struct shuf__origin *origin;
    uint32_t n;
};

static shuf_status open_generator(void *state, const struct shuf__origin *origin, uint32_t n,
                                  struct shuf__error *error)
{
    (void)error;
    *(struct generated *)state = (struct generated){origin, n};
    return SHUF_OK;
}

static shuf_status read_generator(void *state, const struct shuf__row_request *request,
                                  uint32_t *rows, size_t *count, struct shuf__error *error)
{
    const struct generated *g = state;
    const struct shuf__origin *o = g->origin;
    _Alignas(64) unsigned char made[SHUF__GENERATOR_STATE] = {0};
    (void)error;
    for (size_t r = 0; r < request->count; r++) {
        const struct shuf__place place =
            shuf__place_of(o, request->relation, request->bit, request->first + r);
        o->generator->make(made, g->n, place.seed, place.epoch, o->rounds);
        o->generator->fill(made, g->n, rows + r * g->n);
    }
    *count = request->count;
    return SHUF_OK;
}

static void close_generator(void *state)
{
    (void)state;
}

const struct shuf__source_type shuf__source_generator = {
    .name = "generator",
    .parallel = true,
    .relatives = true,
    .state = sizeof(struct generated),
    .open = open_generator,
    .read = read_generator,
    .close = close_generator,
};
