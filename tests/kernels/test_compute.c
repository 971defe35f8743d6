/* SPDX-License-Identifier: MIT
 *
 * The parts of a computation that are the same for every device, which a loop imitates in this
 * test: its workspace, whether it is small, and the tiles that it evaluates.
 */
#include "backend.h"
#include "rank_index.h"
#include "support/cmocka_all.h"
#include "support/random.h"

#include <stdlib.h>
#include <string.h>

/* ---- Workspaces, and small computations ---- */

enum { UNIT = SHUF__BLOCK_UNIT };

/* The configuration of the fake backend. */
static struct {
    struct shuf__workspace workspace;
    uint64_t available, total;
    shuf_status launch;
} behaviour;

/* The calls that the fake backend has received. */
static struct {
    unsigned allocations, frees, launches;
    uint64_t bytes; /* the size of the last allocation */
    const struct shuf__block *workspace;
} seen;

static shuf_status fake_memory(struct shuf__backend *backend, enum shuf__memory kind,
                               uint64_t *available, uint64_t *total, struct shuf__error *error)
{
    (void)backend;
    (void)kind;
    (void)error;
    *available = behaviour.available;
    *total = behaviour.total;
    return SHUF_OK;
}

static shuf_status fake_alloc(struct shuf__backend *backend, enum shuf__memory kind, uint64_t bytes,
                              struct shuf__block *block, struct shuf__error *error)
{
    static char memory;
    (void)backend;
    seen.allocations++;
    seen.bytes = bytes;
    *block = (struct shuf__block){.kind = kind, .fd = -1};
    if (behaviour.total == 0)
        return shuf__fail(error, SHUF_DEVICE, "lost");
    if (bytes > behaviour.available)
        return shuf__fail(error, SHUF_NO_MEMORY, "full");
    block->memory = bytes > 0 ? &memory : NULL;
    block->bytes = bytes;
    return SHUF_OK;
}

static void fake_free(struct shuf__backend *backend, struct shuf__block *block)
{
    (void)backend;
    (void)block;
    seen.frees++;
}

static struct shuf__workspace fake_workspace(const struct shuf__backend *backend,
                                             const struct shuf__request *request,
                                             enum shuf__memory kind)
{
    (void)backend;
    (void)request;
    assert_int_equal(kind, SHUF__MEMORY_MEMFD);
    return behaviour.workspace;
}

static shuf_status fake_launch(struct shuf__backend *backend,
                               const struct shuf__computation *computation,
                               struct shuf__block *block, struct shuf__error *error)
{
    (void)backend;
    (void)block;
    seen.launches++;
    seen.workspace = computation->workspace;
    if (computation->workspace)
        assert_int_equal(computation->workspace->bytes, seen.bytes);
    return behaviour.launch ? shuf__fail(error, behaviour.launch, "cannot") : SHUF_OK;
}

static shuf_status fake_wait(struct shuf__backend *backend, uint64_t timeout_ns, bool *done,
                             uint64_t *device_ns, struct shuf__error *error)
{
    (void)backend;
    (void)timeout_ns;
    (void)error;
    *done = true;
    *device_ns = 7;
    return SHUF_OK;
}

static const struct shuf__backend_ops ops = {
    .name = "fake",
    .quick = 1000,
    .memory = fake_memory,
    .alloc = fake_alloc,
    .free = fake_free,
    .workspace = fake_workspace,
    .launch = fake_launch,
    .wait = fake_wait,
};

static struct shuf__backend backend = {.ops = &ops};

static int reset(void **state)
{
    (void)state;
    memset(&behaviour, 0, sizeof behaviour);
    memset(&seen, 0, sizeof seen);
    behaviour.available = 8 * UNIT;
    behaviour.total = 16 * UNIT;
    behaviour.workspace.kind = SHUF__MEMORY_PRIVATE;
    return 0;
}

static shuf_status compute(const struct shuf__computation *computation)
{
    struct shuf__error error = {0};
    struct shuf__block block = {.kind = SHUF__MEMORY_MEMFD, .fd = -1};
    uint64_t ns = 0;
    const shuf_status status = shuf__backend_compute(&backend, computation, &block, &ns, &error);
    if (status)
        assert_int_equal(error.status, status);
    assert_int_equal(ns, status ? 0 : 7);
    return status;
}

static const struct shuf__computation any_computation = {
    .request = {.kind = SHUF__PERMUTATION,
                .dtype = SHUF_U32,
                .permutation = {.n = 10, .rows = 1, .count = 10, .stride = 1}}};

/* Expects this number of allocations, the size of the last one in units, and this number of
 * frees. */
static void expect_workspace(unsigned allocations, uint64_t units, unsigned frees)
{
    assert_int_equal(seen.allocations, allocations);
    assert_int_equal(seen.bytes, units * UNIT);
    assert_int_equal(seen.frees, frees);
    assert_int_equal(seen.workspace != NULL, units > 0 && seen.launches > 0);
}

/* ---- Workspaces ---- */

static void no_workspace_is_allocated_if_none_is_needed(void **state)
{
    (void)state;
    assert_int_equal(compute(&any_computation), SHUF_OK);
    expect_workspace(0, 0, 0);
}

/* The size is rounded up to whole units. */
static void best_workspace_is_allocated(void **state)
{
    (void)state;
    behaviour.workspace.best = 7 * UNIT + 1;
    behaviour.workspace.least = 1;
    assert_int_equal(compute(&any_computation), SHUF_OK);
    expect_workspace(1, 8, 1);
}

static void least_workspace_is_allocated_if_best_does_not_fit(void **state)
{
    (void)state;
    behaviour.workspace.best = 8 * UNIT + 1;
    behaviour.workspace.least = 2 * UNIT - 1;
    assert_int_equal(compute(&any_computation), SHUF_OK);
    expect_workspace(2, 2, 1);
}

/* The best workspace does not fit, but the computation can do without. It gets an empty block. */
static void optional_workspace_is_left_out_if_none_fits(void **state)
{
    (void)state;
    behaviour.workspace.best = 9 * UNIT;
    assert_int_equal(compute(&any_computation), SHUF_OK);
    expect_workspace(2, 0, 1);
    assert_int_equal(seen.launches, 1);
}

static void given_workspace_is_used(void **state)
{
    (void)state;
    struct shuf__computation computation = any_computation;
    const struct shuf__block own = {.bytes = 0};
    computation.workspace = &own;
    behaviour.workspace.best = behaviour.workspace.least = UNIT;
    assert_int_equal(compute(&computation), SHUF_OK);
    assert_ptr_equal(seen.workspace, &own);
    assert_int_equal(seen.allocations + seen.frees, 0);
}

/* The computation cannot run without a workspace, and the best size is also the least. So the
 * allocation is not repeated. It is not repeated after a failure of the device either. */
static void required_workspace_is_not_retried(void **state)
{
    (void)state;
    behaviour.workspace.best = behaviour.workspace.least = 9 * UNIT;
    assert_int_equal(compute(&any_computation), SHUF_NO_MEMORY);
    expect_workspace(1, 9, 0);
    behaviour.total = 0;
    behaviour.workspace.least = UNIT;
    assert_int_equal(compute(&any_computation), SHUF_DEVICE);
    expect_workspace(2, 9, 0);
    assert_int_equal(seen.launches, 0);
}

static void failed_computation_frees_workspace(void **state)
{
    (void)state;
    behaviour.workspace.best = UNIT;
    behaviour.launch = SHUF_CANCELLED;
    assert_int_equal(compute(&any_computation), SHUF_CANCELLED);
    expect_workspace(1, 1, 1);
}

/* A buffer may not exceed the available memory, although the backend has more in total. */
static void buffer_above_available_memory_is_refused(void **state)
{
    (void)state;
    struct shuf__block block;
    struct shuf__error error = {0};
    assert_int_equal(
        shuf__backend_alloc_writable(&backend, SHUF__MEMORY_MEMFD, 9 * UNIT, &block, &error),
        SHUF_NO_MEMORY);
    assert_string_equal(error.text,
                        "buffer of 18874368 bytes: 16777216 bytes of memory are available");
    assert_int_equal(
        shuf__backend_alloc_writable(&backend, SHUF__MEMORY_CUDA_FD, UNIT, &block, &error),
        SHUF_OK);
    assert_int_equal(seen.allocations, 1);
    assert_int_equal(block.kind, SHUF__MEMORY_CUDA_FD);
}

/* The estimate of such a request exceeds 64 bits: 2^64 - 2 times 2^10 windows, and more. */
static void large_requests_are_not_quick(void **state)
{
    (void)state;
    static const uint64_t counts[] = {456776519920426944, UINT64_C(1) << 52, UINT64_C(1) << 61};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (uint64_t window = 1; window < 200; window++)
            for (uint64_t rows = 1; rows <= 4; rows++) {
                const struct shuf__request request = {.kind = SHUF__PERMUTATION,
                                                      .dtype = SHUF_U64,
                                                      .permutation = {.n = (UINT64_C(1) << 62) - 1,
                                                                      .chunk = 1,
                                                                      .window = window,
                                                                      .count = counts[i],
                                                                      .stride = 1,
                                                                      .rows = rows}};
                assert_false(shuf__backend_is_quick(&ops, &request));
                assert_true(shuf__backend_evaluations(&request) >= (double)counts[i]);
            }
}

static bool is_small(enum shuf__request_kind kind, uint64_t n, uint64_t rows, uint64_t record)
{
    static const struct shuf__backend_ops gpu = {.quick = 4096, .small = 1 << 20},
                                          host = {.quick = 4096};
    struct shuf__request request = {.kind = kind, .dtype = SHUF_U32};
    const struct shuf__permutation whole = {
        .n = n, .rows = rows, .count = n, .stride = 1, .algorithm = SHUF_ALGORITHM_PRIMEFOLD};
    if (kind == SHUF__PERMUTATION)
        request.permutation = whole;
    else if (kind == SHUF__STREAM)
        request.stream.count = n;
    else if (kind == SHUF__SHUFFLE)
        request.shuffle = (struct shuf__shuffle){.permutation = whole, .record = record};
    assert_false(shuf__backend_is_small(&host, &request));
    return shuf__backend_is_small(&gpu, &request);
}

/* The limits are of evaluations, and of the bytes that a shuffle moves. */
static void small_computations_have_limits(void **state)
{
    enum { MOST = 1 << 20 };
    (void)state;
    assert_true(is_small(SHUF__PERMUTATION, MOST, 1, 0));
    assert_false(is_small(SHUF__PERMUTATION, MOST + 1, 1, 0));
    assert_true(is_small(SHUF__PERMUTATION, MOST / 8, 8, 0));
    assert_false(is_small(SHUF__PERMUTATION, MOST / 8, 9, 0));
    assert_true(is_small(SHUF__STREAM, MOST, 1, 0));
    assert_false(is_small(SHUF__STREAM, MOST + 1, 1, 0));
    assert_true(is_small(SHUF__SHUFFLE, MOST, 1, 8));
    assert_false(is_small(SHUF__SHUFFLE, MOST, 1, 9));
    assert_false(is_small(SHUF__BUFFER, 10, 1, 1));
}

/* ---- Spans ---- */

#define TILE ((uint64_t)SHUF__RANK_INDEX_TILE)

/* A permutation and its rank index. Only the number of values in each tile matters; `true_counts`
 * has the correct counts. */
struct fixture {
    struct shuf__computation computation;
    uint64_t tiles, *true_counts;
};

/* Makes a permutation that keeps more than half of all inputs, like a real one. The kept inputs are
 * as uneven as possible over the tiles. */
static struct fixture make_fixture(uint64_t tiles)
{
    struct fixture s = {.tiles = tiles, .true_counts = calloc(tiles + 1, sizeof(uint64_t))};
    uint64_t dropped = random_size(tiles * TILE / 2 - 1);
    const uint64_t n = tiles * TILE - dropped;
    s.computation.request.kind = SHUF__PERMUTATION;
    s.computation.request.permutation =
        (struct shuf__permutation){.algorithm = SHUF_ALGORITHM_LCG, .n = n, .rows = 1};
    for (uint64_t t = 0; t < tiles; t++)
        s.true_counts[t + 1] = TILE;
    while (dropped > 0) {
        uint64_t *kept = &s.true_counts[1 + random_below(tiles)];
        const uint64_t some = random_size(dropped), drop = some < *kept ? some : *kept;
        *kept -= drop;
        dropped -= drop;
    }
    for (uint64_t t = 0; t < tiles; t++)
        s.true_counts[t + 1] += s.true_counts[t];
    assert_int_equal(s.true_counts[tiles], n);
    s.computation.rank_index = calloc(1, shuf__rank_index_bytes(SHUF_ALGORITHM_LCG, n));
    return s;
}

static void fixture_free(struct fixture *s)
{
    free(s->true_counts);
    free(s->computation.rank_index);
}

static void check_rank_index(const struct fixture *s)
{
    assert_in_range(s->computation.rank_index->known, 0, s->tiles);
    assert_memory_equal(s->computation.rank_index->before, s->true_counts,
                        (s->computation.rank_index->known + 1) * sizeof *s->true_counts);
}

static uint64_t position_of(const struct shuf__computation *computation, uint64_t index)
{
    const struct shuf__permutation *p = &computation->request.permutation;
    return (p->offset + index * p->stride) % p->n;
}

/* ---- The fake device ---- */

/* The progress of a computation. */
struct launch_run {
    uint64_t max_tiles, min_gap;
    bool *done;      /* which values of the computation are done */
    bool *evaluated; /* which tiles were evaluated */
    uint64_t launches;
};

/* Evaluates a span as a device would: marks the requested values that these tiles keep. */
static void evaluate(const struct fixture *s, const struct shuf__span *span, struct launch_run *run)
{
    const struct shuf__permutation *p = &s->computation.request.permutation;
    const uint64_t low = s->true_counts[span->begin], high = s->true_counts[span->end];
    for (uint64_t i = 0; i < p->count; i++) {
        const uint64_t position = position_of(&s->computation, i);
        if (low <= position && position < high)
            run->done[i] = true;
    }
    for (uint64_t t = span->begin; t < span->end; t++) {
        assert_false(run->evaluated[t]); /* no tile is evaluated twice */
        run->evaluated[t] = true;
    }
}

static bool has_position_between(const struct shuf__computation *computation, uint64_t low,
                                 uint64_t high)
{
    const struct shuf__permutation *p = &computation->request.permutation;
    for (uint64_t i = 0; i < p->count; i++)
        if (low <= position_of(computation, i) && position_of(computation, i) < high)
            return true;
    return false;
}

/* A span must begin with a tile that has a requested value, or with the first tile that is not
 * counted. */
static void check_span(const struct fixture *s, const struct launch_run *run,
                       const struct shuf__span *span, uint64_t previous_end)
{
    const struct shuf__permutation *p = &s->computation.request.permutation;
    const uint64_t known = s->computation.rank_index->known, *true_counts = s->true_counts;
    assert_in_range(span->begin, previous_end, known);
    assert_in_range(span->end, span->begin + 1, s->tiles);
    assert_true(span->end - span->begin <= run->max_tiles);
    if (span->begin < known) /* the tile has a requested value */
        assert_true(has_position_between(&s->computation, true_counts[span->begin],
                                         true_counts[span->begin + 1]));
    else /* a requested value comes after the counted tiles */
        assert_true(has_position_between(&s->computation, true_counts[known], p->n));
    if (span->end <= known && span->end - span->begin < run->max_tiles)
        assert_true(has_position_between(&s->computation, true_counts[span->end - 1],
                                         true_counts[span->end]));
    const uint64_t any = span->begin + random_below(span->end - span->begin);
    if (p->stride >= run->min_gap && span->end <= known)
        assert_int_equal(span->end - span->begin, 1);
    else if (any < known) /* a counted tile is evaluated only if it is near a requested value */
        assert_true(has_position_between(&s->computation, true_counts[any],
                                         true_counts[any + 1] + run->min_gap));
}

/* Runs the launches. Launch number `fails_at` fails and adds no counts. */
static void launch_all(struct fixture *s, struct launch_run *run, uint64_t fails_at)
{
    struct shuf__span span = {0};
    for (uint64_t previous_end = 0;
         shuf__rank_index_next(s->computation.rank_index, &s->computation.request.permutation,
                               run->max_tiles, run->min_gap, &span);
         previous_end = span.end) {
        check_span(s, run, &span, previous_end);
        if (++run->launches == fails_at)
            return;
        evaluate(s, &span, run);
        if (span.end > s->computation.rank_index->known ||
            random_below(2)) /* otherwise the index already has the counts */
            shuf__rank_index_add(s->computation.rank_index, &span, s->true_counts + span.begin);
        assert_true(s->computation.rank_index->known >= span.end);
    }
}

static void check_computation(struct fixture *s, uint64_t max_tiles, uint64_t min_gap,
                              uint64_t fails_at)
{
    struct shuf__permutation *p = &s->computation.request.permutation;
    struct launch_run run = {.max_tiles = max_tiles,
                             .min_gap = min_gap,
                             .done = calloc(p->count, sizeof(bool)),
                             .evaluated = calloc(s->tiles, sizeof(bool))};
    const uint64_t known = s->computation.rank_index->known;
    launch_all(s, &run, fails_at);
    check_rank_index(s);
    assert_true(s->computation.rank_index->known >= known);
    for (uint64_t i = 0; i < p->count && run.launches != fails_at; i++)
        assert_true(run.done[i]);
    free(run.done);
    free(run.evaluated);
}

/* ---- Computations ---- */

static void draw_slice(struct shuf__computation *computation)
{
    struct shuf__permutation *p = &computation->request.permutation;
    p->offset = random_below(2) ? random_below(p->n) : p->n - random_size(p->n);
    p->stride = random_size(p->n);
    p->count = random_size((p->n - 1 - p->offset) / p->stride + 1);
    if (p->count > 3000)
        p->count = 3000;
}

/* Draws a padded shard. Its last position wraps to the front, before or after the other positions.
 * It is often the first value of a tile. */
static void draw_shard(struct fixture *s)
{
    struct shuf__permutation *p = &s->computation.request.permutation;
    p->stride = p->n / 3000 + random_size(p->n / 3);
    uint64_t wrapped = random_below(2) ? s->true_counts[random_below(s->tiles)] : random_size(p->n);
    wrapped %= p->stride;
    p->offset = (p->n + wrapped) % p->stride;
    p->count = (p->n + wrapped) / p->stride + 1;
}

static void random_computations_are_covered(void **state)
{
    (void)state;
    random_start("random_computations_are_covered");
    for (int i = 0; i < 300; i++) {
        struct fixture s = make_fixture(UINT64_C(2) << random_below(8));
        struct shuf__permutation *p = &s.computation.request.permutation;
        for (int k = 0; k < 12; k++) {
            if (random_below(3) == 0)
                draw_shard(&s);
            else
                draw_slice(&s.computation);
            if (random_below(4) == 0)
                s.computation.rank_index->known = random_below(s.computation.rank_index->known + 1);
            check_computation(&s, random_size(2 * s.tiles), random_size(p->n),
                              random_below(3) ? UINT64_MAX : 1 + random_below(5));
        }
        fixture_free(&s);
    }
}

static void set_known_tiles(struct fixture *s, uint64_t tiles)
{
    memcpy(s->computation.rank_index->before, s->true_counts, (tiles + 1) * sizeof *s->true_counts);
    s->computation.rank_index->known = tiles;
}

/* Requests this position in three ways: alone, together with the next one, and as the wrapped last
 * position of a shard. */
static void check_at(struct fixture *s, uint64_t known, uint64_t position)
{
    struct shuf__permutation *p = &s->computation.request.permutation;
    p->offset = position;
    p->stride = 1;
    for (p->count = 1; p->count <= 2 && position + p->count <= p->n; p->count++) {
        set_known_tiles(s, known);
        check_computation(s, 1 + random_below(s->tiles), TILE, UINT64_MAX);
    }
    if (position + 1 == p->n)
        return;
    set_known_tiles(s, known);
    p->count = 2;
    p->offset = p->n - random_size(p->n - 1 - position);
    p->stride = p->n + position - p->offset;
    check_computation(s, 1 + random_below(s->tiles), TILE, UINT64_MAX);
}

/* Requests the last value before each tile and the first value in it, with every number of counted
 * tiles. */
static void positions_at_tile_borders_are_covered(void **state)
{
    (void)state;
    random_start("positions_at_tile_borders_are_covered");
    for (int i = 0; i < 20; i++) {
        struct fixture s = make_fixture(16);
        struct shuf__permutation *p = &s.computation.request.permutation;
        for (uint64_t tile = 0; tile <= s.tiles; tile++)
            for (uint64_t known = 0; known <= s.tiles; known++) {
                const uint64_t border = s.true_counts[tile];
                if (border > 0)
                    check_at(&s, known, border - 1);
                if (border < p->n)
                    check_at(&s, known, border);
            }
        fixture_free(&s);
    }
}

static struct shuf__span next_span(const struct shuf__computation *computation,
                                   struct shuf__span span)
{
    assert_true(shuf__rank_index_next(computation->rank_index, &computation->request.permutation,
                                      100, 8 * TILE, &span));
    return span;
}

static void expect_end(const struct shuf__computation *computation, struct shuf__span span)
{
    assert_false(shuf__rank_index_next(computation->rank_index, &computation->request.permutation,
                                       100, 8 * TILE, &span));
}

#define EXPECT_SPAN(span, first, last)         \
    do {                                       \
        assert_int_equal((span).begin, first); \
        assert_int_equal((span).end, last);    \
    } while (0)

/* Compares with spans computed by hand: 256 tiles keep 15 000 values each, and a launch takes 100
 * tiles. */
static void spans_match_hand_computed(void **state)
{
    (void)state;
    enum { EACH = 15000, TILES = 256 };
    struct shuf__computation computation = {
        .request = {.kind = SHUF__PERMUTATION,
                    .permutation = {.algorithm = SHUF_ALGORITHM_PHILOX24,
                                    .n = EACH * TILES,
                                    .rows = 1,
                                    .offset = 130 * EACH,
                                    .count = 10 * EACH,
                                    .stride = 1}}};
    struct shuf__permutation *p = &computation.request.permutation;
    uint64_t starts[TILES + 1];
    for (uint64_t t = 0; t <= TILES; t++)
        starts[t] = t * EACH;
    computation.rank_index = calloc(1, shuf__rank_index_bytes(p->algorithm, p->n));
    struct shuf__span span = next_span(&computation, (struct shuf__span){0, 0});
    EXPECT_SPAN(span, 0, 100);
    shuf__rank_index_add(computation.rank_index, &span, starts);
    span = next_span(&computation, span);
    EXPECT_SPAN(span, 100, 200);
    shuf__rank_index_add(computation.rank_index, &span, starts + 100);
    expect_end(&computation, span); /* the last requested value is before the end of the span */

    span = next_span(&computation, (struct shuf__span){0, 0});
    EXPECT_SPAN(span, 130, 140); /* these tiles are already counted */
    expect_end(&computation, span);
    p->offset = 190 * EACH - 1; /* begins in a counted tile, and ends after the counted tiles */
    p->count = 20 * EACH;
    span = next_span(&computation, (struct shuf__span){0, 0});
    EXPECT_SPAN(span, 189, 256);
    shuf__rank_index_add(computation.rank_index, &span, starts + 189);
    assert_int_equal(computation.rank_index->known, TILES);
    assert_memory_equal(computation.rank_index->before, starts, sizeof starts);
    expect_end(&computation, span);

    p->offset = 20 * EACH + 5; /* far apart; the last position wraps to the front */
    p->stride = 120 * EACH;
    p->count = 3; /* the last position would be 3 900 005, so it wraps to 60 005 */
    span = next_span(&computation, (struct shuf__span){0, 0});
    EXPECT_SPAN(span, 4, 5);
    span = next_span(&computation, span);
    EXPECT_SPAN(span, 20, 21);
    span = next_span(&computation, span);
    EXPECT_SPAN(span, 140, 141);
    expect_end(&computation, span);
    free(computation.rank_index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(no_workspace_is_allocated_if_none_is_needed, reset),
        cmocka_unit_test_setup(best_workspace_is_allocated, reset),
        cmocka_unit_test_setup(least_workspace_is_allocated_if_best_does_not_fit, reset),
        cmocka_unit_test_setup(optional_workspace_is_left_out_if_none_fits, reset),
        cmocka_unit_test_setup(given_workspace_is_used, reset),
        cmocka_unit_test_setup(required_workspace_is_not_retried, reset),
        cmocka_unit_test_setup(failed_computation_frees_workspace, reset),
        cmocka_unit_test_setup(small_computations_have_limits, reset),
        cmocka_unit_test_setup(buffer_above_available_memory_is_refused, reset),
        cmocka_unit_test(large_requests_are_not_quick),
        cmocka_unit_test(random_computations_are_covered),
        cmocka_unit_test(positions_at_tile_borders_are_covered),
        cmocka_unit_test(spans_match_hand_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
