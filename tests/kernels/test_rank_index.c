/* SPDX-License-Identifier: MIT
 *
 * Slices and look-ups of the algorithms that leave values out, with a rank index that is empty,
 * partly filled or complete. Their values are always those of the whole permutation. A known count
 * is not computed again.
 */
#include "support/cmocka_all.h"
#include "support/computation.h"
#include "support/random.h"

#include "rank_index.h"
#include "shuf/lcg.h"
#include "shuf/philox24.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BIT(k) (UINT64_C(1) << (k))
#define TILE ((uint64_t)SHUF__RANK_INDEX_TILE)

/* A permutation with an empty rank index, and all its values. */
struct fixture {
    struct shuf__computation computation;
    struct shuf__rank_index *rank_index;
    uint64_t *values;
};

static struct fixture make_fixture(enum shuf_algorithm algorithm, uint64_t n)
{
    struct fixture s = {.computation =
                            computation_whole(algorithm, n, n ^ 0x9e3779b97f4a7c15, BIT(63) - n)};
    s.values = computation_run(&s.computation, NULL);
    s.rank_index = calloc(1, shuf__rank_index_bytes(algorithm, n));
    assert_non_null(s.rank_index);
    s.computation.rank_index = s.rank_index;
    return s;
}

static void fixture_free(struct fixture *s)
{
    free(s->values);
    free(s->rank_index);
}

static uint64_t slice_length(uint64_t n, uint64_t offset, uint64_t stride)
{
    return (n - 1 - offset) / stride + 1;
}

static void check_slice(struct fixture *s, uint64_t offset, uint64_t count, uint64_t stride)
{
    struct shuf__permutation *p = &s->computation.request.permutation;
    p->offset = offset;
    p->count = count;
    p->stride = stride;
    const uint64_t known = s->rank_index->known;
    uint64_t *values = computation_run(&s->computation, NULL);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(values[i], s->values[(offset + i * stride) % p->n]);
    assert_true(s->rank_index->known >= known);
    free(values);
}

/* Compares every entry with a plain count. */
static void check_rank_index(const struct fixture *s)
{
    const struct shuf__permutation *p = &s->computation.request.permutation;
    const shuf_philox24 philox24 = shuf_philox24_make(p->n, p->seed, p->epoch);
    const shuf_lcg lcg = shuf_lcg_make(p->n, p->seed, p->epoch);
    uint64_t kept = 0;
    for (uint64_t tile = 0; tile < s->rank_index->known; tile++) {
        assert_int_equal(s->rank_index->before[tile], kept);
        for (uint64_t x = tile * TILE; x < (tile + 1) * TILE; x++)
            kept +=
                (p->algorithm == SHUF_ALGORITHM_LCG ? shuf_lcg_forward(&lcg, x)
                                                    : shuf_philox24_forward(&philox24, x)) < p->n;
    }
    assert_int_equal(s->rank_index->before[s->rank_index->known], kept);
}

/* Checks that the backend has filled the rank index, completely if `all`. Some backends use no rank
 * index. */
static void check_known(const struct fixture *s, bool all)
{
    const struct shuf__permutation *p = &s->computation.request.permutation;
    const uint64_t tiles = BIT(shuf_domain_bits(p->n)) / TILE;
    assert_true(s->rank_index->known <= tiles);
    if (backend->ops->rank_index_limits)
        assert_true(all ? s->rank_index->known == tiles : s->rank_index->known > 0);
}

/* ---- Slices ---- */

static const uint64_t sizes[] = {16385,  20000,       32767,       32769,       65535,      65537,
                                 100003, BIT(17) - 1, BIT(17) + 1, BIT(18) - 1, BIT(18) + 1};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* Calls `visit` for each algorithm that needs a rank index, and for each size. The values have 4
 * bytes and 8 bytes in turn. */
static void for_each_fixture(void (*visit)(struct fixture *s))
{
    for (int i = 0; i < SIZES; i += computation_full ? 1 : 3)
        for (int a = 0; a < SHUF_ALGORITHM_COUNT; a++) {
            if (shuf__rank_index_bytes((enum shuf_algorithm)a, sizes[i]) == 0)
                continue;
            struct fixture s = make_fixture((enum shuf_algorithm)a, sizes[i]);
            computation_set_width(&s.computation, i % 2 ? 4 : 8);
            visit(&s);
            check_rank_index(&s);
            fixture_free(&s);
        }
}

static void check_slices_in_any_order(struct fixture *s)
{
    struct shuf__permutation *p = &s->computation.request.permutation;
    const uint64_t n = p->n;
    check_slice(s, n / 2, n / 4, 1); /* counts about half of the tiles */
    check_known(s, false);
    for (int i = 0; i < 12; i++) {
        const uint64_t offset = random_below(n), stride = random_size(n);
        check_slice(s, offset, random_size(slice_length(n, offset, stride)), stride);
    }
    check_slice(s, n - 1, 1, 1);
    check_known(s, true);
    for (int i = 0; i < 12; i++) {
        const uint64_t offset = random_below(n), stride = random_size(n);
        check_slice(s, offset, random_size(slice_length(n, offset, stride)), stride);
    }
    check_slice(s, 0, n, 1);
}

static void slices_in_any_order_match(void **state)
{
    (void)state;
    random_start("slices_in_any_order_match");
    for_each_fixture(check_slices_in_any_order);
}

static void check_slices_at_borders(struct fixture *s)
{
    struct shuf__permutation *p = &s->computation.request.permutation;
    const uint64_t n = p->n, tiles = BIT(shuf_domain_bits(n)) / TILE;
    check_slice(s, n - 1, 1, 1);
    for (uint64_t tile = 1; tile < tiles && backend->ops->rank_index_limits; tile++) {
        const uint64_t border = s->rank_index->before[tile];
        check_slice(s, border - 1, 1, 1);
        check_slice(s, border, 1, 1);
        check_slice(s, border - 1, 2, 1);
        check_slice(s, border / 2, slice_length(border + 1, border / 2, border - border / 2), 1);
        check_slice(s, 0, border, 1);
        check_slice(s, border, n - border, 1);
        s->rank_index->known = tile; /* forget the counts from this border on */
        check_slice(s, border - 1, n - border + 1, 1);
        s->rank_index->known = tile;
        check_slice(s, border, n - border, 1);
        check_known(s, true);
    }
}

static void slices_at_tile_borders_match(void **state)
{
    (void)state;
    for_each_fixture(check_slices_at_borders);
}

/* The last value of a padded shard is at the front of the permutation, before all others. */
static void check_padded_shards(struct fixture *s)
{
    struct shuf__permutation *p = &s->computation.request.permutation;
    static const uint64_t worlds[] = {2, 3, 7, 1000, 16384, 16385, 30000};
    for (int turn = 0; turn < 2; turn++) /* the second pass uses the counts of the first */
        for (size_t w = 0; w < sizeof worlds / sizeof worlds[0]; w++)
            for (uint64_t rank = worlds[w] - 2; rank < worlds[w]; rank++)
                if (worlds[w] < p->n)
                    check_slice(s, rank, (p->n + worlds[w] - 1) / worlds[w], worlds[w]);
}

static void padded_shards_match(void **state)
{
    (void)state;
    for_each_fixture(check_padded_shards);
}

/* A computation trusts the counts of the rank index. Here all counts are too large by one, so every
 * slice is shifted by one. */
static void counts_of_rank_index_are_used(void **state)
{
    (void)state;
    for (int a = SHUF_ALGORITHM_PHILOX24;
         a < SHUF_ALGORITHM_COUNT && backend->ops->rank_index_limits; a++) {
        struct fixture s = make_fixture((enum shuf_algorithm)a, BIT(18) + 1);
        struct shuf__permutation *p = &s.computation.request.permutation;
        check_slice(&s, p->n - 1, 1, 1);
        check_known(&s, true);
        for (uint64_t tile = 1; tile <= s.rank_index->known; tile++)
            s.rank_index->before[tile]++;
        p->offset = s.rank_index->before[5] + 10;
        p->count = 3 * TILE / 2; /* covers more than two tiles */
        uint64_t *values = computation_run(&s.computation, NULL);
        assert_memory_equal(values, s.values + p->offset - 1, p->count * sizeof *values);
        free(values);
        fixture_free(&s);
    }
}

/* The requested values are so far apart that a GPU skips the tiles between them. Some of these
 * tiles are not counted yet. */
static void distant_values_match(void **state)
{
    (void)state;
    static const uint64_t known[] = {255, 256, 100, 1, 0}, strides[] = {BIT(21) - 1, BIT(21) + 7};
    struct fixture s = make_fixture(SHUF_ALGORITHM_PHILOX24, BIT(21) + 12345); /* 256 tiles */
    struct shuf__permutation *p = &s.computation.request.permutation;
    const uint64_t n = p->n;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        for (size_t i = 0; i < 2; i++) {
            const uint64_t stride = strides[i];
            check_slice(&s, stride - 2, 2, stride); /* wraps to the front of the permutation */
            check_slice(&s, 7, 2, stride);
            check_slice(&s, n / 2, 2, stride); /* wraps to a position just before the first one */
            if (known[k] < s.rank_index->known)
                s.rank_index->known = known[k];
        }
    check_slice(&s, n - 1, 1, 1);
    check_known(&s, true);
    check_rank_index(&s);
    fixture_free(&s);
}

/* These permutations are too large to compute whole. The expected values come from the same slices
 * without a rank index. */
static void slices_beyond_32_bits_match(void **state)
{
    (void)state;
    for (int a = SHUF_ALGORITHM_PHILOX24; a < SHUF_ALGORITHM_COUNT; a++) {
        const uint64_t n = BIT(33) + 12345;
        struct shuf__computation computation = computation_whole((enum shuf_algorithm)a, n, 7, 9);
        struct shuf__permutation *p = &computation.request.permutation;
        struct shuf__rank_index *rank_index = calloc(1, shuf__rank_index_bytes(p->algorithm, n));
        for (p->offset = 1000000; p->offset > 300000; p->offset -= 99999) {
            p->count = 20000;
            computation.rank_index = NULL;
            uint64_t *plain = computation_run(&computation, NULL);
            computation.rank_index = rank_index;
            uint64_t *values = computation_run(&computation, NULL);
            assert_memory_equal(values, plain, p->count * sizeof *values);
            free(values);
            free(plain);
        }
        assert_true(!backend->ops->rank_index_limits || rank_index->known > 100);
        free(rank_index);
    }
}

/* ---- Cost ---- */

static atomic_uint cancel_calls;

/* Counts its calls, one for each tile. The call with number *context cancels the computation. */
static bool count_and_cancel(void *context)
{
    const unsigned *after = context;
    return atomic_fetch_add(&cancel_calls, 1) + 1 >= *after;
}

static unsigned cost_of(struct fixture *s, uint64_t offset, uint64_t count, uint64_t stride)
{
    static unsigned never = UINT32_MAX;
    atomic_store(&cancel_calls, 0);
    s->computation.cancelled = count_and_cancel;
    s->computation.cancel_context = &never;
    check_slice(s, offset, count, stride);
    s->computation.cancelled = NULL;
    return atomic_load(&cancel_calls);
}

/* The calls of `cancelled` show the cost on the CPU: one for the row, one for each tile, and at
 * most one more for each thread. The GPU is not tested, because it computes many tiles at once. */
static void only_needed_tiles_are_counted(void **state)
{
    (void)state;
    struct fixture s = make_fixture(SHUF_ALGORITHM_PHILOX24, BIT(20) + 12345); /* 128 tiles */
    struct shuf__permutation *p = &s.computation.request.permutation;
    if (backend->ops == &shuf__cpu_ops) {
        assert_true(cost_of(&s, p->n - 1000, 1000, 1) > 100);
        assert_true(cost_of(&s, p->n - 1500, 1000, 1) <= 4);
        assert_true(cost_of(&s, p->n / 2, 1000, 1) <= 4);
        assert_true(cost_of(&s, p->n / 3, 5 * TILE / 2, 1) <= 9);
        assert_true(cost_of(&s, 0, 10, 1) <= 3);
        assert_true(cost_of(&s, 0, p->n, 1) >= 128);
    }
    fixture_free(&s);
}

/* The counts of a cancelled computation are correct, and the next computation continues after
 * them. */
static void cancelled_counts_are_continued(void **state)
{
    (void)state;
    struct fixture s = make_fixture(SHUF_ALGORITHM_PHILOX24, BIT(20) + 12345);
    struct shuf__permutation *p = &s.computation.request.permutation;
    struct shuf__block block;
    computation_alloc(8, &block);
    for (unsigned after = 1; after < 150 && backend->ops->rank_index_limits;
         after += 1 + after / 3) {
        uint64_t ns;
        struct shuf__error error;
        atomic_store(&cancel_calls, 0);
        s.computation.cancelled = count_and_cancel;
        s.computation.cancel_context = &after;
        p->offset = p->n - 1;
        p->count = 1;
        shuf_status status = shuf__backend_compute(backend, &s.computation, &block, &ns, &error);
        assert_true(status == SHUF_CANCELLED || status == SHUF_OK);
        check_rank_index(&s);
        s.computation.cancelled = NULL;
        check_slice(&s, s.rank_index->before[s.rank_index->known / 2], 5, 1);
    }
    check_slice(&s, p->n - 1, 1, 1);
    check_known(&s, true);
    backend->ops->free(backend, &block);
    fixture_free(&s);
}

/* A rank index saves work only for a slice that begins far from the front. */
static void rank_index_is_used_for_late_slices(void **state)
{
    (void)state;
    const struct shuf__rank_index_limits any = {.min_skip = BIT(20), .min_gap = 5000};
    const struct shuf__computation stream =
        computation_stream(SHUF_DISTRIBUTION_GAUSS, SHUF_F64, 7, 0, BIT(20), 1000);
    struct shuf__computation computation =
        computation_whole(SHUF_ALGORITHM_PHILOX24, 1000000000, 7, 0);
    struct shuf__permutation *p = &computation.request.permutation;
    assert_false(shuf__rank_index_helps(&any, &computation.request));
    p->count = 1000;
    assert_false(shuf__rank_index_helps(&any, &computation.request));
    p->offset = BIT(20) - 1;
    assert_false(shuf__rank_index_helps(&any, &computation.request));
    p->offset = BIT(20);
    assert_true(shuf__rank_index_helps(&any, &computation.request));
    assert_false(shuf__rank_index_helps(NULL, &computation.request));
    /* A value of a stream depends only on its position. */
    assert_false(shuf__rank_index_helps(&any, &stream.request));
    p->rows = 2;
    assert_false(shuf__rank_index_helps(&any, &computation.request));
    p->rows = 1;
    p->algorithm = SHUF_ALGORITHM_PRIMEFOLD;
    assert_false(shuf__rank_index_helps(&any, &computation.request));
    p->algorithm = SHUF_ALGORITHM_LCG;
    assert_true(shuf__rank_index_helps(&any, &computation.request));
    p->n = BIT(30); /* a power of two: no value is left out */
    assert_false(shuf__rank_index_helps(&any, &computation.request));
    p->n = SHUF__RANK_INDEX_N_MAX - 1;
    assert_true(shuf__rank_index_helps(&any, &computation.request));
    p->n = SHUF__RANK_INDEX_N_MAX + 1;
    assert_false(shuf__rank_index_helps(&any, &computation.request));
    p->n = 1000000000;
    p->offset = 3;
    p->stride = 5000; /* every tile has requested values */
    p->count = p->n / 5000;
    assert_false(shuf__rank_index_helps(&any, &computation.request));
    p->stride = 5000 + 1024; /* up to 1024 values are skipped at a time */
    p->count = 1024;
    assert_false(shuf__rank_index_helps(&any, &computation.request));
    p->count = 1025;
    assert_true(shuf__rank_index_helps(&any, &computation.request));
}

/* ---- Look-ups ---- */

static struct shuf__computation look_up_computation(const struct fixture *s, bool inverse)
{
    struct shuf__computation computation = s->computation;
    computation.request = (struct shuf__request){
        .kind = SHUF__LOOK_UP,
        .look_up = {.permutation = s->computation.request.permutation, .inverse = inverse}};
    return computation;
}

static void look_up(struct fixture *s, bool inverse, uint64_t *queries, size_t count)
{
    struct shuf__error error = {0};
    const struct shuf__computation computation = look_up_computation(s, inverse);
    if (backend->ops->look_up(backend, &computation, queries, count, &error))
        fail_msg("%s", error.text);
}

static void check_look_ups(struct fixture *s)
{
    struct shuf__permutation *p = &s->computation.request.permutation;
    enum { SOME = 300 };
    const uint64_t n = p->n;
    uint64_t *queries = calloc(n, sizeof *queries);
    for (uint64_t i = 0; i < SOME; i++)
        queries[i] = i % 3 == 2 ? queries[i / 2] : random_below(n); /* some positions occur twice */
    look_up(s, false, queries, SOME);
    for (uint64_t i = 0; i < SOME; i++)
        queries[SOME + i] = queries[i];
    look_up(s, true, queries + SOME, SOME);
    for (uint64_t i = 0; i < SOME; i++)
        assert_int_equal(queries[i], s->values[queries[SOME + i]]);
    for (uint64_t i = 0; i < n; i++)
        queries[i] = n - 1 - i;
    look_up(s, false, queries, n);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(queries[i], s->values[n - 1 - i]);
    look_up(s, true, queries, n);
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(queries[i], n - 1 - i);
    free(queries);
}

static void look_ups_match(void **state)
{
    (void)state;
    random_start("look_ups_match");
    for_each_fixture(check_look_ups);
}

/* A look-up does not count more tiles than it needs. */
static void look_up_counts_only_needed_tiles(void **state)
{
    (void)state;
    struct fixture s = make_fixture(SHUF_ALGORITHM_PHILOX24, BIT(20) + 12345);
    struct shuf__permutation *p = &s.computation.request.permutation;
    uint64_t queries[2] = {100000, 5};
    look_up(&s, false, queries, 2);
    assert_int_equal(queries[0], s.values[100000]);
    assert_int_equal(queries[1], s.values[5]);
    assert_in_range(s.rank_index->known, 1, 30);
    queries[0] = s.values[7]; /* in the first tile, whose count is known */
    look_up(&s, true, queries, 1);
    assert_int_equal(queries[0], 7);
    assert_in_range(s.rank_index->known, 1, 30);
    queries[0] = s.values[p->n - 1];
    look_up(&s, true, queries, 1);
    assert_int_equal(queries[0], p->n - 1);
    assert_int_equal(s.rank_index->known, 128);
    look_up(&s, true, queries, 0);
    fixture_free(&s);
}

/* A permutation has no rank index if it fits one tile, or if n is a power of two. */
static void look_ups_without_rank_index_match(void **state)
{
    (void)state;
    static const uint64_t small[] = {1,    2,    3,    15,    16,    17,    1000,
                                     8191, 8192, 8193, 16383, 16384, 32768, BIT(17)};
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        for (int a = SHUF_ALGORITHM_PHILOX24; a < SHUF_ALGORITHM_COUNT; a++) {
            struct fixture s = {.computation =
                                    computation_whole((enum shuf_algorithm)a, small[i], 7, i)};
            struct shuf__permutation *p = &s.computation.request.permutation;
            assert_int_equal(shuf__rank_index_bytes(p->algorithm, small[i]), 0);
            s.values = computation_run(&s.computation, NULL);
            uint64_t *queries = malloc(small[i] * sizeof *queries);
            memcpy(queries, s.values, small[i] * sizeof *queries);
            look_up(&s, true, queries, small[i]);
            for (uint64_t k = 0; k < small[i]; k++)
                assert_int_equal(queries[k], k);
            look_up(&s, false, queries, small[i]);
            assert_memory_equal(queries, s.values, small[i] * sizeof *queries);
            free(queries);
            fixture_free(&s);
        }
}

/* A look-up in n = 2^62 takes as little time as in a smaller power of two. */
static void look_ups_in_large_powers_of_two_match(void **state)
{
    (void)state;
    for (unsigned k = 31; k <= 62; k++) {
        struct fixture s = {.computation =
                                computation_whole(SHUF_ALGORITHM_PHILOX24, BIT(k), k, 3)};
        const shuf_philox24 f = shuf_philox24_make(BIT(k), k, 3);
        uint64_t queries[2] = {BIT(k) - 1, 12345};
        look_up(&s, false, queries, 2);
        assert_int_equal(queries[0], shuf_philox24_forward(&f, BIT(k) - 1));
        assert_int_equal(queries[1], shuf_philox24_forward(&f, 12345));
        look_up(&s, true, queries, 2);
        assert_int_equal(queries[0], BIT(k) - 1);
        assert_int_equal(queries[1], 12345);
    }
}

static void look_ups_are_cancelled(void **state)
{
    (void)state;
    struct fixture s = make_fixture(SHUF_ALGORITHM_PHILOX24, BIT(20) + 12345);
    uint64_t queries[8000];
    struct shuf__error error;
    s.computation.cancelled = count_and_cancel;
    for (unsigned after = 1; after < 250; after = 2 * after + 1) {
        for (size_t i = 0; i < 8000; i++)
            queries[i] = i * 131;
        atomic_store(&cancel_calls, 0);
        s.computation.cancel_context = &after;
        const struct shuf__computation computation = look_up_computation(&s, false);
        assert_int_equal(backend->ops->look_up(backend, &computation, queries, 8000, &error),
                         SHUF_CANCELLED);
        assert_string_equal(error.text, "index: cancelled");
        check_rank_index(&s);
    }
    fixture_free(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_in_any_order_match),
        cmocka_unit_test(slices_at_tile_borders_match),
        cmocka_unit_test(padded_shards_match),
        cmocka_unit_test(counts_of_rank_index_are_used),
        cmocka_unit_test(distant_values_match),
        cmocka_unit_test(slices_beyond_32_bits_match),
        cmocka_unit_test(only_needed_tiles_are_counted),
        cmocka_unit_test(cancelled_counts_are_continued),
        cmocka_unit_test(rank_index_is_used_for_late_slices),
        cmocka_unit_test(look_ups_match),
        cmocka_unit_test(look_up_counts_only_needed_tiles),
        cmocka_unit_test(look_ups_without_rank_index_match),
        cmocka_unit_test(look_ups_in_large_powers_of_two_match),
        cmocka_unit_test(look_ups_are_cancelled),
    };
    return computation_main(argc, argv, tests);
}
