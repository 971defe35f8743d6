/* SPDX-License-Identifier: MIT
 *
 * See source.h. This file has the code that all sources share, and the source of generators.
 */
#include "source.h"

#include "generator.h"

#include <inttypes.h>
#include <string.h>

struct shuf__place shuf__place_of(const struct shuf__origin *origin, enum shuf__relation relation,
                                  unsigned bit, uint64_t row)
{
    struct shuf__place place = {origin->seed, origin->epoch};
    *(origin->vary_seed ? &place.seed : &place.epoch) += row;
    if (relation == SHUF__NEIGHBOUR)
        ++*(origin->vary_seed ? &place.epoch : &place.seed);
    if (relation == SHUF__FLIPPED)
        place.seed ^= UINT64_C(1) << bit;
    return place;
}

uint64_t shuf__origin_modulus(const struct shuf__origin *origin, uint32_t n)
{
    const struct shuf__generator *g = origin->generator;
    if (origin->type == &shuf__source_daemon)
        g = shuf__generator_find(origin->algorithm ? origin->algorithm : "primefold");
    return origin->modulus != 0 ? origin->modulus : g && g->modulus ? g->modulus(n) : 0;
}

static shuf_status check_row(uint32_t n, const uint32_t *row, uint64_t number, uint32_t *marks,
                             struct shuf__error *error)
{
    memset(marks, 0, (n / 32 + 1) * sizeof *marks);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t value = row[i];
        if (value >= n)
            return shuf__fail(error, SHUF_INVALID,
                              "row %" PRIu64 ": value %" PRIu32 " at position %" PRIu32
                              ": expected a permutation of 0 to %" PRIu32,
                              number, value, i, n - 1);
        if (marks[value / 32] >> value % 32 & 1)
            return shuf__fail(error, SHUF_INVALID,
                              "row %" PRIu64 ": value %" PRIu32 " at position %" PRIu32
                              " stands there for the second time: expected a permutation",
                              number, value, i);
        marks[value / 32] |= UINT32_C(1) << value % 32;
    }
    return SHUF_OK;
}

shuf_status shuf__rows_check(uint32_t n, const uint32_t *rows, size_t count, uint64_t first,
                             uint32_t *marks, struct shuf__error *error)
{
    for (size_t r = 0; r < count; r++) {
        shuf_status status = check_row(n, rows + r * n, first + r, marks, error);
        if (status != SHUF_OK)
            return status;
    }
    return SHUF_OK;
}

/* ---- Rows that a generator makes in this process ---------------------------------- */

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
