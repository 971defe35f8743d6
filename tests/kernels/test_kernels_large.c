/* SPDX-License-Identifier: MIT
 *
 * Compares a GPU with the CPU at sizes at which a 32-bit index or count would overflow. The test
 * compares whole permutations by their fingerprints, in every kind of memory. It also compares late
 * slices whose counts take several launches, and shuffles that exceed the GPU's cache or need
 * several launches. It takes minutes, 36 GB of host memory and 36 GB of GPU memory; one case takes
 * 70 GB of GPU memory. A case without enough memory is skipped.
 */
#include "support/cmocka_all.h"
#include "support/computation.h"

#include "rank_index.h"
#include "shuf/fingerprint.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SKIPPED = 77,
    LAUNCH = 131072, /* tiles of counts that the GPU evaluates in one launch */
};

static struct shuf__backend *cpu;

static uint64_t compute_fingerprint(struct shuf__backend *on, enum shuf__memory kind,
                                    const struct shuf__computation *computation)
{
    const struct shuf__permutation *p = &computation->request.permutation;
    struct shuf__error error = {0};
    struct shuf__block block;
    uint64_t ns, fingerprint = 0, values = computation_value_count(computation);
    uint64_t units =
        (values * computation_width(computation) + SHUF__BLOCK_UNIT - 1) / SHUF__BLOCK_UNIT;
    if (on->ops->alloc(on, kind, units * SHUF__BLOCK_UNIT, &block, &error) ||
        shuf__backend_compute(on, computation, &block, &ns, &error) ||
        on->ops->fingerprint(on, &block, computation_width(computation), values, 0, &fingerprint,
                             &error))
        fail_msg("%s: %s", on->ops->name, error.text);
    on->ops->free(on, &block);
    printf("%s n=%llu width %u: %016llx\n", on->ops->name, (unsigned long long)p->n,
           computation_width(computation), (unsigned long long)fingerprint);
    return fingerprint;
}

static void compare_with_cpu(const struct shuf__computation *computation)
{
    uint64_t expected = compute_fingerprint(cpu, SHUF__MEMORY_MEMFD, computation);
    while (computation_next_kind())
        assert_int_equal(compute_fingerprint(backend, computation_kind, computation), expected);
}

static void compare_permutation(uint64_t n)
{
    struct shuf__computation computation = computation_whole(SHUF_ALGORITHM_PHILOX24, n, 7, 0);
    compare_with_cpu(&computation);
}

static void compute_block(struct shuf__backend *on, enum shuf__memory kind,
                          const struct shuf__computation *computation, uint64_t bytes,
                          struct shuf__block *block)
{
    struct shuf__error error = {0};
    uint64_t ns, units = (bytes + SHUF__BLOCK_UNIT - 1) / SHUF__BLOCK_UNIT;
    if (on->ops->alloc(on, kind, units * SHUF__BLOCK_UNIT, block, &error) ||
        shuf__backend_compute(on, computation, block, &ns, &error))
        fail_msg("%s: %s", on->ops->name, error.text);
}

/* Shuffles a stream's words and returns the fingerprint of the result. */
static uint64_t shuffled_fingerprint(struct shuf__backend *on, enum shuf__memory kind,
                                     struct shuf__computation computation)
{
    struct shuf__error error = {0};
    const struct shuf__shuffle *s = &computation.request.shuffle;
    const uint64_t bytes = computation_bytes(&computation);
    struct shuf__block in, out;
    uint64_t fingerprint;
    const struct shuf__computation noise =
        computation_stream(SHUF_DISTRIBUTION_UNIFORM, SHUF_U32, 7, 0, 0, bytes / 4);
    compute_block(on, kind, &noise, bytes, &in);
    computation.input = &in;
    compute_block(on, kind, &computation, bytes, &out);
    if (on->ops->fingerprint(on, &out, 4, bytes / 4, 0, &fingerprint, &error))
        fail_msg("%s: %s", on->ops->name, error.text);
    on->ops->free(on, &in);
    on->ops->free(on, &out);
    printf("%s n=%llu record %llu inverse %d: %016llx\n", on->ops->name,
           (unsigned long long)s->permutation.n, (unsigned long long)s->record, s->inverse,
           (unsigned long long)fingerprint);
    return fingerprint;
}

static void compare_shuffled(const struct shuf__computation *computation)
{
    const uint64_t expected = shuffled_fingerprint(cpu, SHUF__MEMORY_MEMFD, *computation);
    while (computation_next_kind())
        assert_int_equal(shuffled_fingerprint(backend, computation_kind, *computation), expected);
}

static void compare_shuffle(uint64_t n, uint64_t record, bool inverse)
{
    struct shuf__computation computation =
        computation_shuffle(SHUF_ALGORITHM_PRIMEFOLD, n, 7, 3, record);
    computation.request.shuffle.inverse = inverse;
    compare_shuffled(&computation);
}

/* The smallest shuffles that the GPU makes by partitions, and a number of records that fills its
 * tiles. These sizes are small enough for compute-sanitizer. */
static void smallest_partitioned_shuffles_match(void **state)
{
    (void)state;
    compare_shuffle(UINT64_C(10) << 20, 8, false);
    compare_shuffle((UINT64_C(20) << 20) + 1, 4, true);
    compare_shuffle((UINT64_C(80) << 20) + 9, 1, false);
}

static void large_shuffles_match(void **state)
{
    (void)state;
    static const uint64_t records[] = {1, 2, 4, 8, 16, 12, 256};
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++)
        for (int inverse = 0; inverse < 2; inverse++)
            compare_shuffle((UINT64_C(300) << 20) / records[i] + 1, records[i], inverse);
    /* the GPU uses another form for this prime */
    compare_shuffle((UINT64_C(1) << 28) + 4321, 8, false);
    compare_shuffle((UINT64_C(1) << 28) + 4321, 8, true);
    compare_shuffle((UINT64_C(1) << 31) - 1, 4, false);
    compare_shuffle((UINT64_C(10) << 20) - 1, 8, false);
    compare_shuffle((UINT64_C(192) << 20) - 7, 2, true);
}

/* The maps of this seed leave n + 433 unchanged. So a cycle walk from this input would never end.
 * The input is in the last tile, after the last position. */
static void fixed_point_beyond_n_is_skipped(void **state)
{
    (void)state;
    const uint64_t n = (UINT64_C(1) << 28) + (UINT64_C(1) << 23) - 1000;
    const struct shuf__computation computation =
        computation_shuffle(SHUF_ALGORITHM_PRIMEFOLD, n, 35965, 0, 4);
    compare_shuffled(&computation);
}

/* ---- Shuffles of several launches ---- */

static uint64_t fingerprint_of(const struct shuf__block *block, unsigned width, uint64_t values)
{
    struct shuf__error error = {0};
    uint64_t fingerprint;
    if (backend->ops->fingerprint(backend, block, width, values, 0, &fingerprint, &error))
        fail_msg("%s", error.text);
    return fingerprint;
}

/* Replaces the contents of the block by their shuffle. */
static void shuffle_block(const struct shuf__computation *original, bool inverse,
                          struct shuf__block *block)
{
    struct shuf__block shuffled_block;
    struct shuf__computation computation = *original;
    computation.request.shuffle.inverse = inverse;
    computation.input = block;
    compute_block(backend, backend->ops->own, &computation, computation_bytes(&computation),
                  &shuffled_block);
    backend->ops->free(backend, block);
    *block = shuffled_block;
}

static bool has_memory(struct shuf__backend *on, enum shuf__memory kind, uint64_t bytes)
{
    uint64_t available, total;
    struct shuf__error error = {0};
    if (on->ops->memory(on, kind, &available, &total, &error) != SHUF_OK || available < bytes) {
        fprintf(stderr, "%s: less than %llu bytes of memory\n", on->ops->name,
                (unsigned long long)bytes);
        return false;
    }
    return true;
}

/* The fingerprint of the numbers 0 to n - 1 in order. */
static uint64_t fingerprint_of_identity(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += shuf_fingerprint_term(i, i);
    return sum;
}

/* An inverse shuffle sorts the values of a permutation, and a shuffle then restores them. So the
 * test needs no second result to compare with. */
static void check_sorted_and_restored(uint64_t n, unsigned width)
{
    const uint64_t identity = fingerprint_of_identity(n);
    for (int a = 0; a < SHUF_ALGORITHM_COUNT; a++) {
        const enum shuf_algorithm algorithm = (enum shuf_algorithm)a;
        struct shuf__computation computation = computation_whole(algorithm, n, 7, 3);
        const struct shuf__computation shuffle = computation_shuffle(algorithm, n, 7, 3, width);
        struct shuf__block block;
        computation_set_width(&computation, width);
        compute_block(backend, backend->ops->own, &computation, n * width, &block);
        const uint64_t values = fingerprint_of(&block, width, n);
        shuffle_block(&shuffle, true, &block);
        assert_int_equal(fingerprint_of(&block, width, n), identity);
        shuffle_block(&shuffle, false, &block);
        assert_int_equal(fingerprint_of(&block, width, n), values);
        backend->ops->free(backend, &block);
    }
}

static void shuffle_inverse_sorts_permutation(void **state)
{
    (void)state;
    check_sorted_and_restored((UINT64_C(1) << 31) + 1, 4);
    check_sorted_and_restored((UINT64_C(1) << 31) + 1, 8);
    check_sorted_and_restored(UINT64_C(1) << 32, 4);
    if (has_memory(backend, backend->ops->own, UINT64_C(66) << 30))
        check_sorted_and_restored((UINT64_C(1) << 32) + 1, 8);
}

/* Records of three bytes are compared with the CPU, forward and inverse. */
static void shuffles_of_three_byte_records_match(void **state)
{
    (void)state;
    for (int a = SHUF_ALGORITHM_PHILOX24; a < SHUF_ALGORITHM_COUNT; a++) {
        const struct shuf__computation computation =
            computation_shuffle((enum shuf_algorithm)a, (UINT64_C(1) << 31) + 4, 7, 3, 3);
        const uint64_t bytes = computation_bytes(&computation);
        const struct shuf__computation noise =
            computation_stream(SHUF_DISTRIBUTION_UNIFORM, SHUF_U32, 7, 0, 0, bytes / 4);
        struct shuf__block block;
        const uint64_t expected = shuffled_fingerprint(cpu, SHUF__MEMORY_MEMFD, computation);
        compute_block(backend, backend->ops->own, &noise, bytes, &block);
        const uint64_t before = fingerprint_of(&block, 4, bytes / 4);
        shuffle_block(&computation, false, &block);
        assert_int_equal(fingerprint_of(&block, 4, bytes / 4), expected);
        shuffle_block(&computation, true, &block);
        assert_int_equal(fingerprint_of(&block, 4, bytes / 4), before);
        backend->ops->free(backend, &block);
    }
}

static void permutation_past_31_bits_matches(void **state)
{
    (void)state;
    compare_permutation((UINT64_C(1) << 31) + 1);
}

static void permutation_past_32_bits_matches(void **state)
{
    (void)state;
    compare_permutation((UINT64_C(1) << 32) + 1);
}

/* A batch of rows, each with many tiles. It takes several launches. */
static void batch_of_long_rows_matches(void **state)
{
    (void)state;
    struct shuf__computation computation =
        computation_whole(SHUF_ALGORITHM_PHILOX24, (UINT64_C(1) << 26) + 1, 7, 0);
    struct shuf__permutation *p = &computation.request.permutation;
    p->rows = 40;
    compare_with_cpu(&computation);
}

/* Padded shards of two rows. The last value of each shard is a value from the front of its row. */
static void batch_of_padded_shards_matches(void **state)
{
    (void)state;
    struct shuf__computation computation =
        computation_whole(SHUF_ALGORITHM_PHILOX24, (UINT64_C(1) << 32) + 1, 7, 0);
    struct shuf__permutation *p = &computation.request.permutation;
    p->rows = 2;
    p->offset = 999;
    p->stride = 1000;
    p->count = p->n / p->stride + 1;
    compare_with_cpu(&computation);
}

/* ---- Late slices ---- */

/* The CPU has filled `cpus` completely. The launches of the GPU fill `gpus`. */
struct rank_indexes {
    struct shuf__computation computation;
    struct shuf__rank_index *cpus, *gpus;
};

static void check_rank_index(const struct rank_indexes *t)
{
    assert_memory_equal(t->gpus->before, t->cpus->before,
                        (t->gpus->known + 1) * sizeof *t->cpus->before);
}

/* Forgets all counts after the first `known` tiles, and then compares the slice with the CPU. */
static void check_slice(struct rank_indexes *t, uint64_t known, uint64_t offset, uint64_t count,
                        uint64_t stride)
{
    if (known < t->gpus->known)
        t->gpus->known = known;
    struct shuf__permutation *p = &t->computation.request.permutation;
    p->offset = offset;
    p->count = count;
    p->stride = stride;
    t->computation.rank_index = t->cpus;
    const uint64_t expected = compute_fingerprint(cpu, SHUF__MEMORY_MEMFD, &t->computation);
    t->computation.rank_index = t->gpus;
    assert_int_equal(compute_fingerprint(backend, computation_kind, &t->computation), expected);
    check_rank_index(t);
}

static bool is_second(void *context)
{
    return ++*(int *)context == 2;
}

static void check_cancelled(struct rank_indexes *t)
{
    int calls = 0;
    uint64_t ns;
    struct shuf__error error;
    struct shuf__block block;
    struct shuf__computation computation = t->computation;
    struct shuf__permutation *p = &computation.request.permutation;
    p->offset = p->n - 1;
    p->count = p->stride = 1;
    computation.cancelled = is_second;
    computation.cancel_context = &calls;
    t->gpus->known = 0;
    computation_alloc(8, &block);
    assert_int_equal(shuf__backend_compute(backend, &computation, &block, &ns, &error),
                     SHUF_CANCELLED);
    backend->ops->free(backend, &block);
    assert_int_equal(t->gpus->known, LAUNCH); /* the counts of the first launch are kept */
    check_rank_index(t);
}

/* `cancelled` is called before the first launch, and stops the shuffle at its second call. */
static void shuffles_are_cancelled(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {(UINT64_C(1) << 31) + 1, UINT64_C(1) << 32};
    for (int i = 0; i < 4; i++) {
        int calls = 0;
        uint64_t ns;
        struct shuf__error error;
        struct shuf__block in, out;
        struct shuf__computation computation =
            computation_shuffle(SHUF_ALGORITHM_PHILOX24, sizes[i / 2], 7, 3, 1);
        computation.request.shuffle.inverse = i % 2;
        computation.cancelled = is_second;
        computation.cancel_context = &calls;
        computation_kind = backend->ops->own;
        computation_alloc(computation_bytes(&computation), &in);
        computation_alloc(computation_bytes(&computation), &out);
        computation_kind = SHUF__MEMORY_KINDS;
        computation.input = &in;
        assert_int_equal(shuf__backend_compute(backend, &computation, &out, &ns, &error),
                         SHUF_CANCELLED);
        assert_int_equal(calls, 2);
        backend->ops->free(backend, &in);
        backend->ops->free(backend, &out);
    }
}

/* The GPU needs four launches to count all tiles of the domain. */
static void check_late_slices(struct rank_indexes *t)
{
    const uint64_t n = t->computation.request.permutation.n, *before = t->cpus->before;
    check_slice(t, 0, n - 1000, 1000, 1);
    assert_int_equal(t->gpus->known, 4 * LAUNCH);
    check_slice(t, 4 * LAUNCH, n / 3, 100000, 1);
    for (uint64_t launch = 1; launch <= 3; launch++)
        for (uint64_t i = 0; i <= 2; i++) {
            const uint64_t tile = launch * LAUNCH + i - 1;
            check_slice(t, tile, before[tile] - 1, 2, 1);
            check_slice(t, tile + 1, before[tile - 1], before[tile + 2] - before[tile - 1], 1);
            check_slice(t, 4 * LAUNCH, before[tile], 1, 1);
        }
    for (uint64_t known = 0; known <= 4 * LAUNCH; known += LAUNCH + 7) {
        check_slice(t, known, n / 4 - 3, 5, n / 4 + 1); /* wraps */
        check_slice(t, known, before[LAUNCH] - 1, 3, n / 3);
    }
    check_cancelled(t);
    /* Uses the counts of the first launch. */
    check_slice(t, LAUNCH, before[LAUNCH / 2], 1000, n / 4000);
}

static void late_slices_match(void **state)
{
    (void)state;
    for (int a = SHUF_ALGORITHM_PHILOX24; a < SHUF_ALGORITHM_COUNT; a++) {
        const uint64_t n = (uint64_t)2 * LAUNCH * SHUF__RANK_INDEX_TILE + 1;
        const enum shuf_algorithm algorithm = (enum shuf_algorithm)a;
        struct rank_indexes t = {.computation = computation_whole(algorithm, n, 7, 3)};
        t.computation.request.permutation.offset = n - 1;
        t.computation.request.permutation.count = 1;
        t.computation.rank_index = t.cpus = calloc(1, shuf__rank_index_bytes(algorithm, n));
        compute_fingerprint(cpu, SHUF__MEMORY_MEMFD, &t.computation);
        assert_int_equal(t.cpus->known, 4 * LAUNCH);
        while (computation_next_kind()) {
            t.gpus = calloc(1, shuf__rank_index_bytes(algorithm, n));
            check_late_slices(&t);
            free(t.gpus);
        }
        free(t.cpus);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permutation_past_31_bits_matches),
        cmocka_unit_test(permutation_past_32_bits_matches),
        cmocka_unit_test(batch_of_long_rows_matches),
        cmocka_unit_test(batch_of_padded_shards_matches),
        cmocka_unit_test(late_slices_match),
        cmocka_unit_test(smallest_partitioned_shuffles_match),
        cmocka_unit_test(large_shuffles_match),
        cmocka_unit_test(fixed_point_beyond_n_is_skipped),
        cmocka_unit_test(shuffle_inverse_sorts_permutation),
        cmocka_unit_test(shuffles_of_three_byte_records_match),
        cmocka_unit_test(shuffles_are_cancelled),
    };
    const uint64_t needed = UINT64_C(36) << 30;
    backend = computation_open(argc == 2 ? argv[1] : "");
    cpu = computation_open("cpu");
    int result = SKIPPED;
    if (has_memory(backend, backend->ops->own, needed) &&
        has_memory(cpu, SHUF__MEMORY_MEMFD, needed))
        result = cmocka_run_group_tests(tests, NULL, NULL) != 0;
    backend->ops->close(backend);
    cpu->ops->close(cpu);
    return result;
}
