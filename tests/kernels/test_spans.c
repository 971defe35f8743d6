/* SPDX-License-Identifier: MIT
 *
 * A device evaluates tiles in spans that the rank index chooses, and adds the counts of these tiles
 * to the index. The test checks that every needed tile is evaluated, that no other tile is, and
 * that the counts have no gaps. The device is a loop in this test. A tile may keep any number of
 * its inputs as values of the permutation, from none to all.
 */
#include "support/cmocka_all.h"
#include "support/random.h"

#include "backend.h"
#include "rank_index.h"

#include <stdlib.h>
#include <string.h>

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

/* ---- the fake device ---- */

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

/* ---- computations ---- */

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
        cmocka_unit_test(random_computations_are_covered),
        cmocka_unit_test(positions_at_tile_borders_are_covered),
        cmocka_unit_test(spans_match_hand_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
