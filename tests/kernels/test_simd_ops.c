/* SPDX-License-Identifier: MIT
 *
 * The loops of the host: those of `primefold` for every width of word and every instruction set,
 * shuffles in two passes, and the threads of OpenMP.
 */
#include "host/host.h"
#include "host/shuffle.h"
#include "simd/primefold.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/random.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- primefold: values of positions and positions of values, against the inline C ---- */

#define BIT(k) (UINT64_C(1) << (k))
enum { MOST = 3000 }; /* values in one call */

static const struct shuf__simd_ops *simd;

static void check_direction(uint64_t n, uint64_t seed, uint64_t first, uint64_t stride,
                            size_t count, bool inverse)
{
    const shuf_primefold_shape shape = shuf__primefold_shape(n);
    shuf_primefold plain = shuf_primefold_make_of(&shape, shuf_key_of_seed(seed), 5);
    const bool narrow = shuf__primefold_word_bits(&shape) <= 32;
    uint32_t narrow_out[MOST];
    uint64_t wide_out[MOST];
    union shuf__bijection f;
    shuf_primefold_make_inverse(&plain);
    shuf__primefold_make(&f.primefold, &shape, shuf_key_of_seed(seed), 5);
    if (inverse)
        shuf__primefold_invert(&f.primefold);
    if (narrow)
        simd->narrow[SHUF_ALGORITHM_PRIMEFOLD](&f, (uint32_t)first, (uint32_t)stride, narrow_out,
                                               count);
    else
        simd->wide[SHUF_ALGORITHM_PRIMEFOLD](&f, first, stride, wide_out, count);
    for (size_t i = 0; i < count; i++) {
        const uint64_t value = narrow ? narrow_out[i] : wide_out[i], at = first + i * stride;
        const uint64_t expected =
            inverse ? shuf_primefold_inverse(&plain, at) : shuf_primefold_forward(&plain, at);
        if (value != expected)
            fail_msg("%s n %" PRIu64 " seed %" PRIu64 ": %s %" PRIu64 " gives %" PRIu64
                     ", expected %" PRIu64,
                     simd->name, n, seed, inverse ? "value" : "position", at, value, expected);
    }
}

static void check_both_directions(uint64_t n, uint64_t seed, uint64_t first, uint64_t stride,
                                  size_t count)
{
    check_direction(n, seed, first, stride, count, false);
    check_direction(n, seed, first, stride, count, true);
}

/* Checks the first and the last values. */
static void check_ends(uint64_t n, uint64_t seed)
{
    const size_t count = n < MOST ? n : MOST;
    check_both_directions(n, seed, 0, 1, count);
    check_both_directions(n, seed, n - count, 1, count);
}

static void small_sizes_match(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 65540; n += n < 1200 || n > 65500 ? 1 : n < MOST ? 17 : 257)
        check_ends(n, n);
}

static void sizes_near_powers_of_two_match(void **state)
{
    (void)state;
    for (unsigned k = 12; k < 62; k++)
        for (uint64_t n = BIT(k) - 1; n <= BIT(k) + 1; n++)
            check_ends(n, k);
    check_ends(BIT(62), 1);
}

/* Sizes around the largest n of each width of word. For some of them p is the next prime; for
 * others n is rounded up to a whole block first. */
static void sizes_near_word_limits_match(void **state)
{
    (void)state;
    const uint64_t wide = BIT(31) - BIT(25), widest = BIT(50) - BIT(44);
    const uint64_t sizes[] = {32748, 32749, 32750,       65520,  65521,
                              65522, wide,  wide + 1007, widest, widest + 1009};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (uint64_t n = sizes[i] - 2; n <= sizes[i] + 2; n++)
            check_ends(n, n);
}

static void random_slices_match(void **state)
{
    (void)state;
    random_start("random_slices_match");
    for (int i = 0; i < 300; i++) {
        const uint64_t n = random_size(BIT(62)), first = random_below(n);
        const uint64_t stride = random_size(n), most = (n - 1 - first) / stride + 1;
        check_both_directions(n, random_u64(), first, stride,
                              most < MOST ? most : 1 + random_below(MOST));
    }
}

/* ---- Shuffles in two passes, with very small parts so that there are many of them ---- */

enum { GUARD = 64, LARGE = 1 << 20, LEAST_BITS = 9 };

static uint8_t *allocate_filled(uint64_t bytes, int byte)
{
    uint8_t *memory = aligned_alloc(GUARD, bytes / GUARD * GUARD + 2 * GUARD);
    assert_non_null(memory);
    memset(memory, byte, bytes + GUARD);
    return memory;
}

static struct shuf__computation computation_of(uint64_t n, uint64_t record,
                                               const struct shuf__block *input)
{
    return (struct shuf__computation){
        .request = {.kind = SHUF__SHUFFLE,
                    .shuffle = {.permutation = {.algorithm = SHUF_ALGORITHM_PRIMEFOLD,
                                                .n = n,
                                                .seed = n,
                                                .rows = 1,
                                                .count = n,
                                                .stride = 1},
                                .record = record}},
        .input = input};
}

static void compare_with_direct_shuffle(const struct shuf__computation *computation, unsigned bits,
                                        int threads)
{
    const struct shuf__shuffle *s = &computation->request.shuffle;
    const uint64_t bytes = s->permutation.n * s->record;
    const uint64_t workspace_bytes = shuf__partition_bytes(s, threads, bits);
    uint8_t *expected = allocate_filled(bytes, 0xa5), *out = allocate_filled(bytes, 0xa5);
    uint8_t *workspace = allocate_filled(workspace_bytes, 0x5a);
    assert_true(shuf__host_shuffle_directly(simd, threads, computation, expected));
    assert_true(shuf__partition(simd, threads, computation, bits, workspace, out));
    for (unsigned i = 0; i < GUARD; i++)
        assert_int_equal(workspace[workspace_bytes + i], 0x5a);
    if (memcmp(out, expected, bytes + GUARD) != 0)
        fail_msg("%s n %" PRIu64 " seed %" PRIu64 " record %" PRIu64
                 " inverse %d in parts of 2^%u by %d threads: not what it is at once",
                 simd->name, s->permutation.n, s->permutation.seed, s->record, s->inverse, bits,
                 threads);
    free(expected);
    free(out);
    free(workspace);
}

static void check_shuffle(uint64_t n, uint64_t record, unsigned bits, int threads)
{
    uint8_t *in = allocate_filled(n * record, 0);
    struct shuf__block input = {.memory = in};
    struct shuf__computation computation = computation_of(n, record, &input);
    for (uint64_t i = 0; i < n * record; i++)
        in[i] = (uint8_t)(random_u64() >> 13);
    compare_with_direct_shuffle(&computation, bits, threads);
    computation.request.shuffle.inverse = true;
    compare_with_direct_shuffle(&computation, bits, threads);
    free(in);
}

/* Record sizes that have a loop of their own, and other sizes. The numbers of records fit one part,
 * or are around the ends of parts and chunks. */
static void sizes_at_edges_match(void **state)
{
    (void)state;
    static const uint64_t records[] = {1, 2, 3, 4, 7, 8, 12, 16, 24, 64, 127};
    static const uint64_t sizes[] = {1, 2, 256, 257, 511, 512, 513, 1023, 1024, 1025, 5000, 20001};
    random_start("sizes_at_edges_match");
    for (size_t r = 0; r < sizeof records / sizeof *records; r++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            check_shuffle(sizes[s], records[r], LEAST_BITS, 1 + (int)(s % 3));
}

/* These parts need positions of two bytes and of four bytes. */
static void position_widths_match(void **state)
{
    (void)state;
    random_start("position_widths_match");
    for (unsigned bits = 15; bits <= 18; bits++)
        check_shuffle(300001, 4, bits, 2);
}

static void random_computations_match(void **state)
{
    (void)state;
    random_start("random_computations_match");
    for (int i = 0; i < 40; i++) {
        const uint64_t record = 1 + random_below(127);
        check_shuffle(random_size(LARGE / record), record, LEAST_BITS + (unsigned)random_below(6),
                      1 + (int)random_below(5));
    }
}

/* ---- When a partition pays, and its cancelling ---- */

static struct shuf__shuffle shuffle_of(uint64_t n, uint64_t record)
{
    return computation_of(n, record, NULL).request.shuffle;
}

static void partition_pays_for_large_shuffles(void **state)
{
    (void)state;
    for (uint64_t record = 1; record <= 1 << 20; record *= 4)
        for (unsigned k = 0; k <= 44; k += 4) {
            struct shuf__shuffle s = shuffle_of((UINT64_C(1) << k) + 1, record);
            const uint64_t bytes = s.permutation.n * record;
            if (bytes < LARGE / 8 || record > 127)
                assert_false(shuf__partition_pays(&s));
            else if (bytes >> 36)
                assert_true(shuf__partition_pays(&s));
            if (record <= 127)
                assert_in_range(shuf__partition_bits(&s), LEAST_BITS, 32);
            s.permutation.algorithm = SHUF_ALGORITHM_PHILOX24;
            assert_false(shuf__partition_pays(&s));
        }
}

/* The number of bytes decides whether a partition pays, and how large a part is. The number of
 * records does not. */
static void partition_depends_on_bytes(void **state)
{
    (void)state;
    for (unsigned k = 18; k <= 36; k++)
        for (unsigned size = 1; size <= 6; size++) {
            const struct shuf__shuffle bytes = shuffle_of(UINT64_C(1) << k, 1);
            const struct shuf__shuffle records =
                shuffle_of(bytes.permutation.n >> size, UINT64_C(1) << size);
            assert_int_equal(shuf__partition_pays(&records), shuf__partition_pays(&bytes));
            const unsigned of_bytes = shuf__partition_bits(&bytes);
            if (k == 18)
                assert_int_equal(shuf__partition_bits(&records),
                                 of_bytes > 12 + size ? of_bytes - size : 12);
        }
}

struct cancel_after {
    unsigned calls, limit;
};

static bool is_limit_reached(void *context)
{
    struct cancel_after *cancel_after = context; /* any thread may call this function */
    return __atomic_add_fetch(&cancel_after->calls, 1, __ATOMIC_RELAXED) >= cancel_after->limit;
}

/* `cancelled` returns true from its third call on: the third of all, or the third of the second
 * pass. After that, each thread makes at most one more call in each pass. */
static void cancelled_partition_ends_early(void **state)
{
    (void)state;
    enum { FIRST_PASS = LARGE / (16 * 2048), SECOND_PASS = LARGE >> LEAST_BITS };
    uint8_t *in = allocate_filled(LARGE, 1), *out = allocate_filled(LARGE, 2);
    struct shuf__block input = {.memory = in};
    struct shuf__computation computation = computation_of(LARGE, 1, &input);
    uint8_t *workspace =
        allocate_filled(shuf__partition_bytes(&computation.request.shuffle, 2, LEAST_BITS), 0);
    struct cancel_after cancel_after = {.limit = UINT_MAX};
    computation.cancelled = is_limit_reached;
    computation.cancel_context = &cancel_after;
    assert_true(shuf__partition(simd, 2, &computation, LEAST_BITS, workspace, out));
    assert_int_equal(cancel_after.calls, FIRST_PASS + SECOND_PASS);
    for (int pass = 0; pass < 2; pass++) {
        cancel_after = (struct cancel_after){.limit = 3 + (pass ? FIRST_PASS : 0)};
        assert_false(shuf__partition(simd, 2, &computation, LEAST_BITS, workspace, out));
        assert_in_range(cancel_after.calls, cancel_after.limit, cancel_after.limit + 5);
    }
    free(in);
    free(out);
    free(workspace);
}

/* Cancels a shuffle that moves the records directly, with one thread. First the first call of
 * `cancelled` returns true, then only the last call. */
static void check_cancelled_directly(enum shuf_algorithm algorithm, uint64_t n)
{
    struct cancel_after cancel_after = {.limit = UINT_MAX};
    uint8_t *in = allocate_filled(n, 1), *out = allocate_filled(n, 2);
    const struct shuf__block input = {.memory = in};
    struct shuf__computation computation = computation_of(n, 1, &input);
    computation.request.shuffle.permutation.algorithm = algorithm;
    computation.cancelled = is_limit_reached;
    computation.cancel_context = &cancel_after;
    assert_true(shuf__host_shuffle_directly(simd, 1, &computation, out));
    const unsigned all = cancel_after.calls;
    assert_in_range(all, 2, n);
    for (int last = 0; last < 2; last++) {
        cancel_after = (struct cancel_after){.limit = last ? all : 1};
        assert_false(shuf__host_shuffle_directly(simd, 1, &computation, out));
        assert_int_equal(cancel_after.calls, cancel_after.limit);
    }
    free(in);
    free(out);
}

static void cancelled_direct_shuffle_ends_early(void **state)
{
    (void)state;
    check_cancelled_directly(SHUF_ALGORITHM_PRIMEFOLD, LARGE + 1);
    check_cancelled_directly(SHUF_ALGORITHM_PHILOX24, LARGE / 2 + 1); /* uses a list of positions */
    /* permutes a whole domain, so it needs no list */
    check_cancelled_directly(SHUF_ALGORITHM_LCG, LARGE / 2);
}

/* A computation with its best workspace uses a partition, and writes to the workspace. With a
 * smaller workspace, it moves the records directly and does not write to the workspace. */
static void workspace_selects_partition(void **state)
{
    (void)state;
    struct shuf__block input = {.fd = -1}, workspace = {.kind = SHUF__MEMORY_PRIVATE};
    struct shuf__computation computation = computation_of(LARGE + 1, 4, &input);
    struct shuf__permutation *p = &computation.request.shuffle.permutation;
    while (!shuf__partition_pays(&computation.request.shuffle))
        p->n = p->count = 2 * p->n;
    const uint64_t n = p->n;
    uint32_t *in = (uint32_t *)(void *)allocate_filled(4 * n, 0);
    uint8_t *out[3];
    for (uint64_t i = 0; i < n; i++)
        in[i] = (uint32_t)i * 2654435761u;
    input.memory = in;
    const struct shuf__workspace needs = shuf__host_workspace(2, &computation.request);
    assert_int_equal(needs.kind, SHUF__MEMORY_PRIVATE);
    assert_int_equal(needs.least, 0);
    assert_true(needs.best >= 2 * n);
    workspace.memory = allocate_filled(needs.best, 0x5a);
    for (int i = 0; i < 3; i++) {
        out[i] = allocate_filled(4 * n, 0xa5);
        workspace.bytes = i == 2 ? needs.best : needs.best - 1;
        computation.workspace = i == 0 ? NULL : &workspace;
        assert_true(shuf__host_shuffle(simd, 2, &computation, out[i]));
        bool used = false;
        for (uint64_t at = 0; at < needs.best; at++)
            used |= ((const uint8_t *)workspace.memory)[at] != 0x5a;
        assert_int_equal(used, i == 2);
        assert_memory_equal(out[i], out[0], 4 * n + GUARD);
    }
    for (int i = 0; i < 3; i++)
        free(out[i]);
    free(workspace.memory);
    free(in);
}

/* ---- The threads exist before the first computation ---- */

static void team_is_started(void **state)
{
    enum { THREADS = 5, LATER = 3 };
    struct shuf__error error;
    const int before = count_entries("/proc/self/task");
    (void)state;
    assert_int_equal(shuf__threads_start(THREADS, LATER, &error), SHUF_OK);
    assert_true(count_entries("/proc/self/task") >=
                before + THREADS - 1); /* a sanitizer has more */
}

int main(void)
{
    const struct CMUnitTest threads_tests[] = {
        cmocka_unit_test(team_is_started),
    };
    const struct CMUnitTest simd_tests[] = {
        cmocka_unit_test(small_sizes_match),
        cmocka_unit_test(sizes_near_powers_of_two_match),
        cmocka_unit_test(sizes_near_word_limits_match),
        cmocka_unit_test(random_slices_match),
    };
    const struct CMUnitTest partition_tests[] = {
        cmocka_unit_test(sizes_at_edges_match),
        cmocka_unit_test(position_widths_match),
        cmocka_unit_test(random_computations_match),
        cmocka_unit_test(partition_pays_for_large_shuffles),
        cmocka_unit_test(partition_depends_on_bytes),
        cmocka_unit_test(cancelled_partition_ends_early),
        cmocka_unit_test(cancelled_direct_shuffle_ends_early),
        cmocka_unit_test(workspace_selects_partition),
    };
    int failed = cmocka_run_group_tests(threads_tests, NULL, NULL);
    struct shuf__error error;
    for (int i = 0; i < SHUF__SIMD_SETS; i++)
        if (shuf__simd_choose(shuf__simd_names[i], &simd, &error))
            printf("%s\n", error.text);
        else
            failed += cmocka_run_group_tests_name(shuf__simd_names[i], simd_tests, NULL, NULL);
    if (shuf__simd_choose(NULL, &simd, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    return failed + cmocka_run_group_tests(partition_tests, NULL, NULL);
}
