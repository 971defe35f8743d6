/* SPDX-License-Identifier: MIT
 *
 * Shuffles on the backend of the command line, forward and inverse, in every kind of memory. Each
 * record is compared with the permutation of the inline algorithms. The bytes after the result and
 * after the input do not change.
 */
#include "support/cmocka_all.h"
#include "support/computation.h"
#include "support/random.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, LARGE = 1 << 20 };

/* ---- Blocks with random bytes ---- */

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

static const uint64_t records[] = {1,   2,    3,     4,      7,      8,      12,       16,
                                   100, 4096, 65536, 150528, 524287, 524288, LARGE + 1};
static const uint64_t sizes[] = {1,    2,    3,    4,    5,     96,    97,   127,
                                 128,  129,  255,  256,  257,   1000,  1023, 1024,
                                 1025, 4095, 4096, 4097, 65535, 65536, 65537};
enum { RECORDS = sizeof records / sizeof *records, SIZES = sizeof sizes / sizeof *sizes };

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
            if ((sizes[s] - 1) * records[r] <= (computation_full ? 8 : 1) * LARGE)
                check_every_algorithm(sizes[s], records[r]);
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
    };
    return computation_main(argc, argv, tests);
}
