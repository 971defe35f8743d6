/* SPDX-License-Identifier: MIT
 *
 * Shuffles and plans of exchanges on the backend of the command line, in every kind of memory. Each
 * record of a shuffle, forward and inverse, is compared with the permutation of the inline
 * algorithms. The bytes after the result and after the input do not change. Plans are compared with
 * those of the host's scalar code, number by number. test_exchange.c compares the latter with the
 * definition.
 */
#include "host/exchange.h"
#include "support/cmocka_all.h"
#include "support/computation.h"
#include "support/random.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, LARGE = 1 << 20 };

/* ---- Shuffles: blocks with random bytes ---- */

/* Fills a block with a stream. A backend cannot copy other bytes into every kind of memory. */
static void make_random_block(uint64_t bytes, uint64_t seed, struct shuf__block *block)
{
    struct shuf__computation computation =
        computation_stream(SHUF_DISTRIBUTION_UNIFORM, SHUF_U32, seed, 0, 0, (bytes + 3) / 4);
    computation_alloc(bytes + 4, block);
    computation_fill(&computation, block);
}

static uint8_t *bytes_of(const struct shuf__block *block, uint64_t bytes)
{
    struct shuf__error error = {0};
    uint8_t *copy = malloc(bytes);
    assert_non_null(copy);
    if (backend->ops->read(backend, block, 0, bytes, copy, &error))
        fail_msg("%s", error.text);
    return copy;
}

/* Expects that `block` has the bytes `expected`, and frees `expected`. */
static void expect_bytes(const struct shuf__block *block, uint8_t *expected, uint64_t bytes,
                         const char *label, const struct shuf__computation *computation)
{
    uint8_t *got = bytes_of(block, bytes);
    char text[SHUF__REQUEST_TEXT];
    for (uint64_t i = 0; memcmp(got, expected, bytes) != 0 && i < bytes; i++)
        if (got[i] != expected[i])
            fail_msg("%s: %s: byte %" PRIu64 " of %" PRIu64 " is %d, expected %d", label,
                     shuf__request_describe(&computation->request, true, text), i, bytes, got[i],
                     expected[i]);
    free(expected);
    free(got);
}

/* ---- One shuffle ---- */

/* The expected result: the shuffle by its definition, followed by the old bytes of the output. */
static uint8_t *expected_bytes(const struct shuf__computation *computation,
                               const struct shuf__block *before)
{
    const uint64_t record = computation->request.shuffle.record;
    uint64_t *p = computation_expected_values(computation);
    uint8_t *in = bytes_of(computation->input, computation_bytes(computation));
    uint8_t *out = bytes_of(before, computation_bytes(computation) + GUARD);
    for (uint64_t i = 0; i < computation_value_count(computation); i++)
        if (computation->request.shuffle.inverse)
            memcpy(out + p[i] * record, in + i * record, record);
        else
            memcpy(out + i * record, in + p[i] * record, record);
    free(in);
    free(p);
    return out;
}

/* Shuffles into a new block, which the caller frees. */
static void check_shuffle(struct shuf__computation *computation, const struct shuf__block *input,
                          struct shuf__block *output)
{
    const uint64_t bytes = computation_bytes(computation);
    computation->input = input;
    make_random_block(bytes + GUARD, 2, output);
    uint8_t *expected = expected_bytes(computation, output), *in = bytes_of(input, bytes + GUARD);
    computation_fill(computation, output);
    expect_bytes(output, expected, bytes + GUARD, "output", computation);
    expect_bytes(input, in, bytes + GUARD, "input", computation);
}

/* Checks a shuffle, and then the inverse shuffle of its result. */
static void check_shuffle_and_inverse(struct shuf__computation computation)
{
    struct shuf__block first, second, third;
    const uint64_t bytes = computation_bytes(&computation);
    make_random_block(bytes + GUARD, 1, &first);
    check_shuffle(&computation, &first, &second);
    computation.request.shuffle.inverse = !computation.request.shuffle.inverse;
    check_shuffle(&computation, &second, &third);
    expect_bytes(&third, bytes_of(&first, bytes), bytes, "there and back", &computation);
    backend->ops->free(backend, &first);
    backend->ops->free(backend, &second);
    backend->ops->free(backend, &third);
}

static struct shuf__computation computation_of(enum shuf_algorithm algorithm, uint64_t n,
                                               uint64_t record)
{
    return computation_shuffle(algorithm, n, 7 + n, record, record);
}

/* ---- Tests ---- */

static const uint64_t record_sizes[] = {1,   2,    3,     4,      7,      8,      12,       16,
                                        100, 4096, 65536, 150528, 524287, 524288, LARGE + 1};
static const uint64_t counts[] = {1,    2,    3,    4,    5,     96,    97,   127,
                                  128,  129,  255,  256,  257,   1000,  1023, 1024,
                                  1025, 4095, 4096, 4097, 65535, 65536, 65537};
enum {
    RECORDS = sizeof record_sizes / sizeof *record_sizes,
    SIZES = sizeof counts / sizeof *counts
};

static void check_every_algorithm(uint64_t n, uint64_t record)
{
    for (int a = 0; a < SHUF_ALGORITHM_COUNT; a++)
        check_shuffle_and_inverse(computation_of((enum shuf_algorithm)a, n, record));
}

/* Arrays of up to 8 MiB, and an array of one record. */
static void sizes_and_records_match(void **state)
{
    (void)state;
    for (int r = 0; r < RECORDS; r++)
        for (int s = 0; s < SIZES; s++)
            if ((counts[s] - 1) * record_sizes[r] <= (computation_full ? 8 : 1) * LARGE)
                check_every_algorithm(counts[s], record_sizes[r]);
}

/* The maps of this seed leave 1002 unchanged, an input above n. A cycle walk from it would never
 * end. */
static void fixed_point_beyond_n_is_skipped(void **state)
{
    (void)state;
    for (uint64_t record = 1; record <= 16; record *= 2)
        check_shuffle_and_inverse(
            computation_shuffle(SHUF_ALGORITHM_PRIMEFOLD, 1000, 328, 0, record));
}

static void many_records_match(void **state)
{
    (void)state;
    check_every_algorithm(LARGE + 1, 8);
    if (!computation_full)
        return;
    check_every_algorithm(LARGE + 1, 1);
    check_shuffle_and_inverse(computation_of(SHUF_ALGORITHM_PRIMEFOLD, LARGE + 1, 3));
    check_shuffle_and_inverse(computation_of(SHUF_ALGORITHM_PRIMEFOLD, LARGE + 1, 4));
    check_shuffle_and_inverse(computation_of(SHUF_ALGORITHM_PHILOX24, LARGE, 4));
    check_shuffle_and_inverse(
        computation_of(SHUF_ALGORITHM_PHILOX24, LARGE / 2 + 1, 12)); /* an even power of two */
    check_shuffle_and_inverse(computation_of(SHUF_ALGORITHM_LCG, LARGE, 12));
}

/* Arrays of several tiles. A GPU uses several thread blocks for each tile. n is half of the domain,
 * all of it, or three quarters. */
static void many_large_records_match(void **state)
{
    (void)state;
    check_every_algorithm(8193, 333);
    check_every_algorithm(16384, 256);
    check_every_algorithm(3 << 13, 200);
}

/* More bytes than one launch of the CUDA backend moves. The records are so large that all threads
 * share each one. */
static void huge_records_match(void **state)
{
    (void)state;
    check_shuffle_and_inverse(computation_of(SHUF_ALGORITHM_PHILOX24, 259, 524288));
    if (!computation_full)
        return;
    check_shuffle_and_inverse(computation_of(SHUF_ALGORITHM_PRIMEFOLD, 1, 100000000));
    check_shuffle_and_inverse(computation_of(SHUF_ALGORITHM_PRIMEFOLD, 2, 50000001));
}

/* The input may have any bytes after its last record, and its block may be larger. */
static void random_shuffles_match(void **state)
{
    (void)state;
    random_start("random_shuffles_match");
    for (int i = 0; i < 60; i++) {
        const uint64_t record = random_size(random_below(4) ? 64 : LARGE);
        const uint64_t most = LARGE / record, n = random_size(most < 2 ? 2 : most);
        struct shuf__computation computation =
            computation_of((enum shuf_algorithm)random_below(SHUF_ALGORITHM_COUNT), n, record);
        struct shuf__shuffle *s = &computation.request.shuffle;
        s->permutation.seed = random_u64();
        s->permutation.epoch = random_u64();
        s->inverse = random_below(2);
        check_shuffle_and_inverse(computation);
    }
}

/* ---- Cancelling ---- */

static bool is_third_call(void *context)
{
    unsigned *calls = context;
    /* any thread may call this function */
    return __atomic_add_fetch(calls, 1, __ATOMIC_RELAXED) >= 3;
}

static void shuffles_are_cancelled(void **state)
{
    (void)state;
    for (int a = 0; a < SHUF_ALGORITHM_COUNT; a++) {
        struct shuf__block in, out;
        struct shuf__error error = {0};
        uint64_t ns;
        unsigned calls = 0;
        struct shuf__computation computation =
            computation_of((enum shuf_algorithm)a, 2 * LARGE + 1, 8);
        make_random_block(computation_bytes(&computation), 1, &in);
        computation_alloc(computation_bytes(&computation), &out);
        computation.input = &in;
        computation.cancelled = is_third_call;
        computation.cancel_context = &calls;
        const shuf_status status = shuf__backend_compute(backend, &computation, &out, &ns, &error);
        if (backend->ops == &shuf__cpu_ops)
            assert_true(calls >= 3);
        if (calls >= 3) /* a GPU may finish before the third call */
            assert_int_equal(status, SHUF_CANCELLED);
        else
            assert_int_equal(status, SHUF_OK);
        backend->ops->free(backend, &in);
        backend->ops->free(backend, &out);
    }
}

/* A shuffle of many or of large records is not quick. */
static void large_shuffles_are_not_quick(void **state)
{
    (void)state;
    const struct shuf__backend_ops *ops = backend->ops;
    const struct shuf__computation small = computation_of(SHUF_ALGORITHM_PRIMEFOLD, 100, 8),
                                   many = computation_of(SHUF_ALGORITHM_PRIMEFOLD, LARGE, 1),
                                   large = computation_of(SHUF_ALGORITHM_PRIMEFOLD, 100, 65536);
    assert_true(shuf__backend_is_quick(ops, &small.request));
    assert_false(shuf__backend_is_quick(ops, &many.request));
    assert_false(shuf__backend_is_quick(ops, &large.request));
    assert_string_equal(shuf__request_name(&small.request), "shuffle");
}

/* ---- Plans of exchanges ---- */

enum { WORLD_MOST = 24 };

static struct shuf__computation computation_of_plan(const struct shuf__plan *plan, shuf_dtype dtype)
{
    struct shuf__error error;
    struct shuf__computation c = {.request = {.plan = *plan}};
    if (shuf__exchange_make(&c.request, &error))
        fail_msg("%s", error.text);
    if (dtype != SHUF_AUTO)
        c.request.dtype = dtype;
    return c;
}

static void *expected_plan(struct shuf__computation c)
{
    const struct shuf__simd_ops *simd;
    struct shuf__error error;
    const uint64_t needed = shuf__exchange_bytes(2, &c.request.plan);
    void *out = malloc(computation_bytes(&c));
    struct shuf__block workspace = {.memory = malloc(needed), .bytes = needed};
    assert_true(out && workspace.memory);
    assert_int_equal(shuf__simd_choose("scalar", &simd, &error), SHUF_OK);
    c.workspace = &workspace;
    assert_true(shuf__host_exchange(simd, 2, &c, out));
    free(workspace.memory);
    return out;
}

static uint64_t number_at(const void *values, unsigned width, uint64_t index)
{
    return width == 4 ? ((const uint32_t *)values)[index] : ((const uint64_t *)values)[index];
}

static void check_plan(const struct shuf__plan *plan, shuf_dtype dtype)
{
    const struct shuf__computation c = computation_of_plan(plan, dtype);
    uint64_t *values = computation_run(&c, NULL);
    void *expected = expected_plan(c);
    for (uint64_t i = 0; i < computation_value_count(&c); i++)
        if (values[i] != number_at(expected, computation_width(&c), i))
            fail_msg("%s n %" PRIu64 " seed %" PRIu64 " epoch %" PRIu64 " rank %" PRIu64
                     " of %" PRIu64 " inverse %d: number %" PRIu64 " is %" PRIu64
                     ", expected %" PRIu64,
                     computation_kind_name(), plan->permutation.n, plan->permutation.seed,
                     plan->permutation.epoch, plan->rank, plan->world, plan->inverse, i, values[i],
                     number_at(expected, computation_width(&c), i));
    free(expected);
    free(values);
}

static struct shuf__plan plan_of(uint64_t n, uint64_t rank, uint64_t world, bool inverse)
{
    return (struct shuf__plan){
        .permutation = {.n = n, .seed = n ^ random_u64(), .epoch = random_below(9)},
        .rank = rank,
        .world = world,
        .inverse = inverse};
}

/* The bounds of the forms of primefold, and worlds with empty ranks. */
static void plan_edges(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 2, 7, 255, 256, 257, 1000, 4097, 65521, 100003};
    static const uint64_t worlds[] = {1, 2, 3, 5, 24, 1000};
    random_start("plan_edges");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof worlds / sizeof *worlds; k++)
            for (int inverse = 0; inverse < 2; inverse++) {
                const struct shuf__plan plan =
                    plan_of(sizes[i], random_below(worlds[k]), worlds[k], inverse);
                check_plan(&plan, inverse ? SHUF_U64 : SHUF_AUTO);
            }
}

static void plan_uneven(void **state)
{
    (void)state;
    random_start("plan_uneven");
    for (int i = 0; i < (computation_full ? 60 : 20); i++) {
        uint64_t input[WORLD_MOST], output[WORLD_MOST];
        const uint64_t world = 1 + random_below(WORLD_MOST);
        struct shuf__plan plan =
            plan_of(random_size(1000000), random_below(world), world, random_below(2));
        random_sizes(plan.permutation.n, world, input);
        random_sizes(plan.permutation.n, world, output);
        plan.input = i % 4 ? input : NULL;
        plan.output = i % 4 != 1 ? output : NULL;
        check_plan(&plan, i % 3 ? SHUF_AUTO : SHUF_U64);
    }
}

/* One rank of n of up to 62 bits. It has few records before and after, and they are sorted by up to
 * four digits. */
static void plan_large_n(void **state)
{
    (void)state;
    static const unsigned bits[] = {16, 17, 24, 30, 31, 32, 33, 38, 40, 48, 49, 62};
    random_start("plan_large_n");
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        for (uint64_t rank = 1; rank < 4; rank += 2) {
            const uint64_t n = (UINT64_C(1) << bits[i]) - random_below(1000);
            const uint64_t sizes[] = {n / 3, 5000 + i, n - n / 3 - 9000 - i, 4000};
            const uint64_t after[] = {9000, 6000, n - 15000 - 7000, 7000};
            struct shuf__plan plan = plan_of(n, rank, 4, random_below(2));
            plan.input = sizes;
            plan.output = random_below(2) ? after : NULL;
            check_plan(&plan, SHUF_AUTO);
        }
}

/* A rank has a few records more or less than the share of all records from which on a GPU needs no
 * sort for its order (tuning::select_most). The other ranks are few enough, or just too many, to
 * need no sort for the places. */
static void plan_around_the_bounds(void **state)
{
    (void)state;
    enum { SELECT_MOST = 13, SPLIT_RANKS = 8 }; /* of tuning.cuh */
    static const uint64_t sizes[] = {300, 5000, 65000, 100003, 1000000, 3000017};
    random_start("plan_around_the_bounds");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint64_t world = SPLIT_RANKS - 1; world <= SPLIT_RANKS + 1; world++)
            for (int more = -1; more <= 1; more++) {
                const uint64_t n = sizes[i], own = n / SELECT_MOST + (uint64_t)(int64_t)more;
                const uint64_t rank = random_below(world), other = (rank + 1) % world;
                uint64_t input[WORLD_MOST], output[WORLD_MOST];
                random_sizes(n - own, world, input);
                input[other] += input[rank];
                input[rank] = own;
                random_sizes(n, world, output);
                struct shuf__plan plan = plan_of(n, rank, world, random_below(2));
                plan.input = input;
                plan.output = output;
                check_plan(&plan, more ? SHUF_AUTO : SHUF_U64);
            }
}

/* Few ranks. All records are on one of them, before or after, and the others are empty. */
static void plan_one_has_all(void **state)
{
    (void)state;
    random_start("plan_one_has_all");
    for (uint64_t world = 1; world <= 9; world++)
        for (uint64_t full = 0; full < world; full++) {
            uint64_t sizes[WORLD_MOST] = {0};
            const uint64_t n = random_size(200000);
            sizes[full] = n;
            struct shuf__plan plan = plan_of(n, random_below(world), world, random_below(2));
            plan.input = full % 2 ? sizes : NULL;
            plan.output = full % 2 ? NULL : sizes;
            check_plan(&plan, SHUF_AUTO);
            plan.rank = full;
            check_plan(&plan, SHUF_AUTO);
        }
}

/* Sorted by one, two and three bytes of the rank. */
static void plan_many_ranks(void **state)
{
    (void)state;
    static const uint64_t worlds[] = {255, 256, 257, 4000, 65536, 65537, SHUF__RANKS_EQUAL};
    random_start("plan_many_ranks");
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++)
        for (int inverse = 0; inverse < 2; inverse++) {
            const struct shuf__plan few =
                plan_of(1000, random_below(worlds[i]), worlds[i], inverse);
            const struct shuf__plan many = plan_of(worlds[i] * 300 + random_below(worlds[i]),
                                                   random_below(worlds[i]), worlds[i], inverse);
            check_plan(&few, SHUF_AUTO);
            check_plan(&many, SHUF_AUTO);
        }
}

/* Enough records for many blocks of each kernel, at each number of passes. */
static void plan_many_records(void **state)
{
    (void)state;
    random_start("plan_many_records");
    for (uint64_t world = 1; world <= (computation_full ? 4096 : 64); world *= 4) {
        const struct shuf__plan plan =
            plan_of(1500001 * world, random_below(world), world, random_below(2));
        check_plan(&plan, SHUF_AUTO);
    }
}

/* One-sided plans: ranks of one and of several windows, values of 32 and of 64 bits, and a last
 * part with few places or with none. */
static void plan_one_sided(void **state)
{
    (void)state;
    enum { UNIT = SHUF__PART_UNIT, MOST = SHUF__RANKS_ONE_SIDED };
    random_start("plan_one_sided");
    for (int i = 0; i < (computation_full ? 60 : 20); i++) {
        uint64_t input[MOST], output[MOST];
        const uint64_t world = 1 + random_below(i % 2 ? 5 : MOST);
        struct shuf__plan plan =
            plan_of(random_size(i % 5 ? 900000 : 9000000), random_below(world), world, i % 3 == 0);
        random_sizes(plan.permutation.n, world, input);
        random_sizes(plan.permutation.n, world, output);
        plan.input = i % 4 ? input : NULL;
        plan.output = i % 4 == 2 ? output : NULL;
        plan.part = UNIT * (1 + random_below(4));
        check_plan(&plan, SHUF_AUTO);
    }
    static const uint64_t large[] = {
        (UINT64_C(1) << 30) - 1, (UINT64_C(1) << 31) - 1, (UINT64_C(1) << 31) + 1,
        UINT64_C(3) << 30,       (UINT64_C(1) << 32) - 5, UINT64_C(1) << 32,
        UINT64_C(1) << 34,       (UINT64_C(1) << 38) - 1,
    };
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        const uint64_t n = large[i];
        uint64_t output[MOST] = {0};
        struct shuf__plan plan = plan_of(n, 3, MOST, random_below(2));
        output[0] = n - 300001;
        output[3] = 300001;
        plan.output = output;
        plan.part = UNIT;
        check_plan(&plan, SHUF_AUTO);
        plan.rank = 5; /* gets nothing */
        check_plan(&plan, SHUF_AUTO);
    }
}

/* A list of sizes that are those of equal parts gives the plan of equal parts. */
static void plan_equal_sizes(void **state)
{
    (void)state;
    random_start("plan_equal_sizes");
    const uint64_t sizes[] = {33334, 33333, 33333};
    struct shuf__plan plan = plan_of(100000, 1, 3, false);
    plan.input = sizes;
    check_plan(&plan, SHUF_AUTO);
    plan.input = NULL;
    check_plan(&plan, SHUF_AUTO);
}

/* A plan and its workspace take at most 16 bytes for each record, and counters. For few ranks the
 * GPU needs only the counters. */
static void plan_memory(void **state)
{
    (void)state;
    static const uint64_t worlds[] = {1, 4, 1024};
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        const struct shuf__plan plan = {
            .permutation = {.n = worlds[i] << 28}, .rank = worlds[i] - 1, .world = worlds[i]};
        const uint64_t records = UINT64_C(1) << 28;
        const struct shuf__computation c = computation_of_plan(&plan, SHUF_AUTO);
        const struct shuf__workspace needs =
            backend->ops->workspace(backend, &c.request, computation_kind);
        assert_int_equal(c.request.dtype, SHUF_U32);
        assert_int_equal(needs.best, needs.least);
        const bool only_counters = !shuf__memory_is_host(computation_kind) && worlds[i] <= 8;
        const uint64_t bytes = (only_counters ? 8 : 16) * records;
        assert_in_range(computation_bytes(&c) + needs.best, bytes, bytes + records / 4);
    }
}

static bool at_once(void *context)
{
    (void)context;
    return true;
}

static void plan_cancelled(void **state)
{
    (void)state;
    struct shuf__error error = {0};
    struct shuf__block block, workspace;
    uint64_t ns;
    random_start("plan_cancelled");
    for (uint64_t world = 2; world <= 200; world *= 10) {
        const struct shuf__plan plan = plan_of(150000 * world, 1, world, false);
        struct shuf__computation c = computation_of_plan(&plan, SHUF_AUTO);
        computation_alloc(computation_bytes(&c), &block);
        computation_alloc_workspace(&c, &workspace);
        c.cancelled = at_once;
        assert_int_equal(shuf__backend_compute(backend, &c, &block, &ns, &error), SHUF_CANCELLED);
        assert_string_equal(error.text, "exchange: cancelled");
        c.cancelled = NULL;
        assert_int_equal(shuf__backend_compute(backend, &c, &block, &ns, &error), SHUF_OK);
        backend->ops->free(backend, &workspace);
        backend->ops->free(backend, &block);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_records_match),
        cmocka_unit_test(many_records_match),
        cmocka_unit_test(many_large_records_match),
        cmocka_unit_test(huge_records_match),
        cmocka_unit_test(fixed_point_beyond_n_is_skipped),
        cmocka_unit_test(random_shuffles_match),
        cmocka_unit_test(shuffles_are_cancelled),
        cmocka_unit_test(large_shuffles_are_not_quick),
        cmocka_unit_test(plan_edges),
        cmocka_unit_test(plan_uneven),
        cmocka_unit_test(plan_large_n),
        cmocka_unit_test(plan_around_the_bounds),
        cmocka_unit_test(plan_one_has_all),
        cmocka_unit_test(plan_many_ranks),
        cmocka_unit_test(plan_many_records),
        cmocka_unit_test(plan_equal_sizes),
        cmocka_unit_test(plan_memory),
        cmocka_unit_test(plan_cancelled),
        cmocka_unit_test(plan_one_sided),
    };
    return computation_main(argc, argv, tests);
}
