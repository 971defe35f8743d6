/* SPDX-License-Identifier: MIT
 *
 * See shuffle.h. Each thread takes a part of the positions, evaluates the permutation there in its
 * own cache, and moves the records.
 *
 * This needs an algorithm that evaluates any position: primefold, or the others if n = 2^B. The
 * others with n < 2^B have two ways. If n is small, the whole permutation is first computed into a
 * list in the workspace. Otherwise permute.c moves the records of each tile when it knows the
 * tile's first position.
 */
#include "host/shuffle.h"

#include "host/cancelled.h"
#include "host/exchange.h"
#include "host/permute.h"
#include "host/tile.h"
#include "simd/primefold.h"

#include <assert.h>
#include <stdatomic.h>

enum {
    PART_BYTES = 1 << 20,  /* a thread takes at most so many bytes of records at a time */
    LISTED_MOST = 1 << 20, /* up to this n, tiles are too few for all threads: use a list */
};

/* ---- The threads ---- */

/* The state of one computation, which its threads share. */
struct run {
    const struct shuf__simd_ops *simd;
    const struct shuf__computation *computation;
    const struct shuf__shuffle *shuffle; /* of the computation */
    union shuf__bijection f;
    bool narrow;      /* whether values have 32 bits */
    const void *list; /* all values, or NULL if run_thread() evaluates them */
    uint64_t part;    /* positions that a thread takes at a time */
    uint64_t pieces;  /* pieces of a record; more than 1 only if `part` is 1 */
    uint64_t items;   /* parts of the positions, times pieces */
    char *out;
    atomic_uint_fast64_t next;
    atomic_bool cancelled;
};

static const void *values_at(const struct run *run, uint64_t first, size_t count,
                             struct shuf__tile *tile)
{
    const enum shuf_algorithm algorithm = run->shuffle->permutation.algorithm;
    if (run->list)
        return (const char *)run->list + first * (run->narrow ? 4 : 8);
    if (run->narrow)
        run->simd->narrow[algorithm](&run->f, (uint32_t)first, 1, tile->narrow, count);
    else
        run->simd->wide[algorithm](&run->f, first, 1, tile->wide, count);
    return tile;
}

/* Moves one piece of a record. Threads share a record that is larger than PART_BYTES. */
static void move_piece(const struct run *run, const void *in,
                       const struct shuf__tile_places *places, uint64_t piece)
{
    const uint64_t offset = piece * PART_BYTES, left = run->shuffle->record - offset;
    shuf__move_piece(run->shuffle, in, places, offset, left < PART_BYTES ? left : PART_BYTES,
                     run->out);
}

static void run_thread(struct run *run)
{
    struct shuf__tile tile;
    const uint64_t n = run->shuffle->permutation.n;
    const void *in = run->computation->input->memory;
    for (;;) {
        const uint64_t item = atomic_fetch_add(&run->next, 1);
        if (item >= run->items || shuf__is_cancelled(run->computation, &run->cancelled))
            return;
        const uint64_t first = item / run->pieces * run->part;
        const size_t count = n - first < run->part ? n - first : run->part;
        const struct shuf__tile_places places = {run->narrow, values_at(run, first, count, &tile),
                                                 first, count};
        if (run->pieces == 1)
            shuf__move(run->shuffle, in, &places, run->out);
        else
            move_piece(run, in, &places, item % run->pieces);
    }
}

static bool move_all(struct run *run, int threads)
{
    const uint64_t n = run->shuffle->permutation.n, record = run->shuffle->record;
    const uint64_t most = record < PART_BYTES ? PART_BYTES / record : 1;
    run->part = most < SHUF__TILE ? most : SHUF__TILE;
    run->pieces = (record - 1) / PART_BYTES + 1;
    run->items = ((n - 1) / run->part + 1) * run->pieces;
    if (threads == 1 || run->items == 1) {
        run_thread(run);
    } else {
#pragma omp parallel num_threads(threads)
        run_thread(run);
    }
    return !atomic_load(&run->cancelled);
}

/* ---- The ways ---- */

static bool has_compaction(const struct shuf__permutation *p)
{
    const uint64_t domain = UINT64_C(1) << shuf_domain_bits(p->n);
    return !shuf_algorithm_has_random_access(p->algorithm) && p->n != domain;
}

static struct shuf__request values_of(const struct shuf__permutation *p)
{
    return (struct shuf__request){.kind = SHUF__PERMUTATION,
                                  .dtype = shuf__tile_is_narrow(p) ? SHUF_U32 : SHUF_U64,
                                  .permutation = *p};
}

/* The size of a list of all values; 0 if a list is of no use. */
static uint64_t list_bytes(const struct shuf__shuffle *s)
{
    const struct shuf__request values = values_of(&s->permutation);
    if (!has_compaction(&s->permutation) || s->permutation.n > LISTED_MOST ||
        s->permutation.n * s->record <= PART_BYTES)
        return 0;
    return shuf__request_shape(&values).bytes;
}

/* Moves the records by a list of all values, in the workspace. */
static bool move_listed(const struct shuf__simd_ops *simd, int threads,
                        const struct shuf__computation *computation, void *out)
{
    struct shuf__computation values = *computation;
    struct run run = {.simd = simd,
                      .computation = computation,
                      .shuffle = &computation->request.shuffle,
                      .narrow = shuf__tile_is_narrow(&computation->request.shuffle.permutation),
                      .list = computation->workspace->memory,
                      .out = out};
    values.request = values_of(&run.shuffle->permutation);
    values.workspace = NULL;
    atomic_init(&run.next, 0);
    atomic_init(&run.cancelled, false);
    return shuf__host_permute(simd, threads, &values, computation->workspace->memory) &&
           move_all(&run, threads);
}

bool shuf__host_shuffle_directly(const struct shuf__simd_ops *simd, int threads,
                                 const struct shuf__computation *computation, void *out)
{
    const struct shuf__permutation *p = &computation->request.shuffle.permutation;
    struct run run = {.simd = simd,
                      .computation = computation,
                      .shuffle = &computation->request.shuffle,
                      .out = out};
    shuf_primefold_shape shape = {0};
    assert(p->rows == 1 && p->offset == 0 && p->count == p->n && p->stride == 1);
    atomic_init(&run.next, 0);
    atomic_init(&run.cancelled, false);
    run.narrow = shuf__tile_is_narrow(p);
    if (p->algorithm == SHUF_ALGORITHM_PRIMEFOLD) {
        shape = shuf__primefold_shape(p->n);
        run.narrow = shuf__primefold_word_bits(&shape) <= 32;
    }
    shuf__bijection_make(p, 0, &shape, &run.f);
    return has_compaction(p) ? shuf__host_permute(simd, threads, computation, out)
                             : move_all(&run, threads);
}

struct shuf__workspace shuf__host_workspace(int threads, const struct shuf__request *request)
{
    struct shuf__workspace needs = {.kind = SHUF__MEMORY_PRIVATE};
    const struct shuf__shuffle *s = &request->shuffle;
    if (request->kind == SHUF__SHUFFLE)
        needs.best = shuf__partition_pays(s)
                         ? shuf__partition_bytes(s, threads, shuf__partition_bits(s))
                         : list_bytes(s);
    if (request->kind == SHUF__EXCHANGE)
        needs.best = needs.least = shuf__exchange_bytes(threads, &request->plan);
    return needs;
}

bool shuf__host_shuffle(const struct shuf__simd_ops *simd, int threads,
                        const struct shuf__computation *computation, void *out)
{
    const struct shuf__block *workspace = computation->workspace;
    const uint64_t best = shuf__host_workspace(threads, &computation->request).best;
    if (best && workspace && workspace->bytes >= best)
        return list_bytes(&computation->request.shuffle) > 0
                   ? move_listed(simd, threads, computation, out)
                   : shuf__partition(simd, threads, computation,
                                     shuf__partition_bits(&computation->request.shuffle),
                                     workspace->memory, out);
    return shuf__host_shuffle_directly(simd, threads, computation, out);
}
