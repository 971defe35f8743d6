/* SPDX-License-Identifier: MIT
 *
 * See permute.h.
 */
#include "host/permute.h"

#include "host/cancelled.h"
#include "host/tile.h"
#include "shuf/windowed.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    CHUNK = 512,         /* places between two checks for cancellation */
    CHUNK_WINDOWED = 16, /* the same; in a windowed order each place needs a prime */
    ALONE = 2,           /* chunks that take less time than waking other threads */
};

/* One place of a look-up, with the number that decides its tile. */
struct query {
    uint64_t key; /* a position, or for a value the x with f(x) = value */
    uint64_t *place;
};

struct lookup {
    const struct shuf__simd_ops *simd;
    const struct shuf__computation *computation;
    const struct shuf__permutation *p; /* of the computation */
    bool inverse;
    union shuf__bijection f;
    struct query *queries; /* sorted by key */
    size_t count;
    atomic_bool cancelled;
};

static uint64_t forward(const struct lookup *l, uint64_t x)
{
    switch (l->p->algorithm) {
    case SHUF_ALGORITHM_PHILOX24:
        return shuf_philox24_forward(&l->f.philox24, x);
    case SHUF_ALGORITHM_LCG:
        return shuf_lcg_forward(&l->f.lcg, x);
    case SHUF_ALGORITHM_PRIMEFOLD:
    case SHUF_ALGORITHM_COUNT:
        break;
    }
    abort(); /* not an algorithm with compaction */
}

static uint64_t inverse(const struct lookup *l, uint64_t y)
{
    switch (l->p->algorithm) {
    case SHUF_ALGORITHM_PHILOX24:
        return shuf_philox24_inverse(&l->f.philox24, y);
    case SHUF_ALGORITHM_LCG:
        return shuf_lcg_inverse(&l->f.lcg, y);
    case SHUF_ALGORITHM_PRIMEFOLD:
    case SHUF_ALGORITHM_COUNT:
        break;
    }
    abort(); /* not an algorithm with compaction */
}

/* A domain of one tile has no index. */
static uint64_t tile_of(const struct lookup *l, uint64_t key)
{
    if (!l->computation->rank_index)
        return 0;
    return l->inverse ? key / SHUF__TILE : shuf__rank_index_find(l->computation->rank_index, key);
}

static uint64_t value_at(const struct lookup *l, const struct shuf__tile *tile, uint64_t index)
{
    return shuf__tile_is_narrow(l->p) ? tile->narrow[index] : tile->wide[index];
}

/* Answers queries `first` to `end` - 1, which are all in one tile. The values of the tile and the
 * queries are both sorted by their inputs x, so one pass over the tile finds all values. */
static void find_in_tile(const struct lookup *l, size_t first, size_t end)
{
    struct shuf__tile tile;
    const uint64_t index = tile_of(l, l->queries[first].key);
    const uint64_t base = index ? l->computation->rank_index->before[index] : 0;
    shuf__tile_fill(l->simd, l->p, &l->f, index, &tile);
    for (size_t i = first, at = 0; i < end; i++) {
        uint64_t *place = l->queries[i].place;
        if (!l->inverse) {
            *place = value_at(l, &tile, l->queries[i].key - base);
            continue;
        }
        while (value_at(l, &tile, at) != *place)
            at++;
        *place = base + at;
    }
}

/* If query `first` is the first one of its tile, answers all queries of this tile. */
static void find_from(struct lookup *l, size_t first)
{
    size_t end = first + 1;
    const uint64_t tile = tile_of(l, l->queries[first].key);
    if ((first > 0 && tile_of(l, l->queries[first - 1].key) == tile) ||
        shuf__is_cancelled(l->computation, &l->cancelled))
        return;
    while (end < l->count && tile_of(l, l->queries[end].key) == tile)
        end++;
    find_in_tile(l, first, end);
}

static void find_all(struct lookup *l, int threads)
{
    if (l->count < (size_t)threads)
        threads = (int)l->count;
    if (threads == 1) {
        for (size_t i = 0; i < l->count; i++)
            find_from(l, i);
        return;
    }
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (size_t i = 0; i < l->count; i++)
        find_from(l, i);
}

/* For n = 2^B. No value is left out, so the position of f(x) is x. */
static void find_directly(struct lookup *l)
{
    for (size_t i = 0; i < l->count; i++) {
        uint64_t *place = l->queries[i].place;
        *place = l->inverse ? inverse(l, *place) : forward(l, *place);
    }
}

/* Completes the index up to the last queried position. A queried value may be in any tile, so a
 * look-up of values completes the whole index. */
static bool count_tiles(const struct lookup *l, int threads)
{
    uint64_t unused;
    struct shuf__computation slice = *l->computation;
    struct shuf__permutation *p = &slice.request.permutation;
    const struct shuf__rank_index *ranks = slice.rank_index;
    const uint64_t last = l->queries[l->count - 1].key;
    if (!ranks || (l->inverse ? last / SHUF__TILE <= ranks->known
                              : ranks->known > 0 && last < ranks->before[ranks->known]))
        return true;
    slice.request =
        (struct shuf__request){.kind = SHUF__PERMUTATION, .dtype = SHUF_U64, .permutation = *l->p};
    p->offset = l->inverse ? p->n - 1 : last;
    p->count = p->stride = 1;
    return shuf__host_permute(l->simd, threads, &slice, &unused);
}

static int compare(const void *a, const void *b)
{
    const struct query *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void sort_by_key(struct lookup *l, uint64_t *place)
{
    for (size_t i = 0; i < l->count; i++)
        l->queries[i] = (struct query){l->inverse ? inverse(l, place[i]) : place[i], &place[i]};
    qsort(l->queries, l->count, sizeof *l->queries, compare);
}

static void answer(struct lookup *l, int threads)
{
    if (l->p->n == UINT64_C(1) << shuf_domain_bits(l->p->n))
        find_directly(l);
    else if (count_tiles(l, threads))
        find_all(l, threads);
    else
        atomic_store(&l->cancelled, true);
}

static shuf_status look_up_counted(const struct shuf__simd_ops *simd, int threads,
                                   const struct shuf__computation *computation, uint64_t *place,
                                   size_t count, struct shuf__error *error)
{
    const struct shuf__look_up *request = &computation->request.look_up;
    const struct shuf__permutation *p = &request->permutation;
    struct lookup l = {.simd = simd,
                       .computation = computation,
                       .p = p,
                       .inverse = request->inverse,
                       .count = count};
    assert(computation->rank_index || shuf__rank_index_bytes(p->algorithm, p->n) == 0);
    if (count == 0)
        return SHUF_OK;
    if (!(l.queries = calloc(count, sizeof *l.queries)))
        return shuf__fail(error, SHUF_NO_MEMORY, "index: no memory for %zu places", count);
    atomic_init(&l.cancelled, false);
    shuf__bijection_make(p, 0, NULL, &l.f);
    sort_by_key(&l, place);
    answer(&l, threads);
    free(l.queries);
    return atomic_load(&l.cancelled) ? shuf__fail(error, SHUF_CANCELLED, "index: cancelled")
                                     : SHUF_OK;
}

/* ---- Random access ---- */

static void evaluate_windowed(const shuf_windowed *w, bool inverse, uint64_t *place, size_t count)
{
    for (size_t i = 0; i < count; i++)
        place[i] =
            inverse ? shuf_windowed_inverse(w, place[i]) : shuf_windowed_forward(w, place[i]);
}

static void evaluate(const shuf_primefold *f, bool inverse, uint64_t *place, size_t count)
{
    for (size_t i = 0; i < count; i++)
        place[i] =
            inverse ? shuf_primefold_inverse(f, place[i]) : shuf_primefold_forward(f, place[i]);
}

/* An order with random access. */
union direct {
    shuf_primefold uniform;
    shuf_windowed windowed;
};

static void make_direct(const struct shuf__look_up *request, union direct *order)
{
    const struct shuf__permutation *p = &request->permutation;
    const shuf_key key = shuf__permutation_key(p);
    if (p->window) {
        const shuf_windows sizes = shuf_windows_of(p->n, p->chunk, p->window);
        order->windowed = shuf_windowed_make(&sizes, key, p->epoch);
        return;
    }
    order->uniform = shuf_primefold_make_keyed(p->n, key, p->epoch);
    if (request->inverse)
        shuf_primefold_make_inverse(&order->uniform);
}

static void evaluate_chunk(const struct shuf__look_up *request, const union direct *order,
                           uint64_t *place, size_t count)
{
    if (request->permutation.window)
        evaluate_windowed(&order->windowed, request->inverse, place, count);
    else
        evaluate(&order->uniform, request->inverse, place, count);
}

static shuf_status look_up_direct(int threads, const struct shuf__computation *computation,
                                  uint64_t *place, size_t count, struct shuf__error *error)
{
    const struct shuf__look_up *request = &computation->request.look_up;
    const size_t chunk = request->permutation.window ? CHUNK_WINDOWED : CHUNK;
    const size_t chunks = count / chunk + (count % chunk > 0);
    union direct order;
    atomic_bool cancelled;
    atomic_init(&cancelled, false);
    make_direct(request, &order);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && chunks > ALONE)
    for (size_t k = 0; k < chunks; k++)
        if (!shuf__is_cancelled(computation, &cancelled))
            evaluate_chunk(request, &order, place + k * chunk,
                           k + 1 < chunks ? chunk : count - k * chunk);
    return atomic_load(&cancelled) ? shuf__fail(error, SHUF_CANCELLED, "index: cancelled")
                                   : SHUF_OK;
}

shuf_status shuf__host_look_up(const struct shuf__simd_ops *simd, int threads,
                               const struct shuf__computation *computation, uint64_t *place,
                               size_t count, struct shuf__error *error)
{
    const struct shuf__permutation *p = &computation->request.look_up.permutation;
    assert(computation->request.kind == SHUF__LOOK_UP && p->rows == 1);
    return shuf_algorithm_has_random_access(p->algorithm)
               ? look_up_direct(threads, computation, place, count, error)
               : look_up_counted(simd, threads, computation, place, count, error);
}
