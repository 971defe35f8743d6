/* SPDX-License-Identifier: MIT
 *
 * The contract of kernels/backend.h, on the backend of the command line and in every kind of
 * memory: the golden table, quick computations, reads, writes and cancelling. Slices, shards and
 * batches are in test_slices.c, blocks in test_memory.c.
 */
#include "support/cmocka_all.h"
#include "support/computation.h"
#include "support/golden.h"
#include "support/random.h"

#include "shuf/primefold.h"

#include <stdlib.h>
#include <string.h>

static void check_golden(const struct golden *row, unsigned width)
{
    struct shuf__computation computation =
        computation_whole(computation_algorithm(row->algorithm), row->n, row->seed, row->epoch);
    uint64_t fingerprint;
    computation_set_width(&computation, width);
    uint64_t *values = computation_run(&computation, &fingerprint);
    for (unsigned i = 0; i < row->count; i++)
        assert_int_equal(values[golden_position(row, i)], row->values[i]);
    assert_int_equal(fingerprint, row->fingerprint);
    free(values);
}

/* u64 and i64 are the same bytes: no value reaches 2^63. */
static void golden_table_matches(void **state)
{
    (void)state;
    struct golden row;
    unsigned rows = 0;
    FILE *table = golden_open("permute.txt");
    for (; golden_next(table, &row); rows++) {
        if (!computation_full && rows % 3 != 0)
            continue;
        check_golden(&row, 4);
        check_golden(&row, 8);
    }
    fclose(table);
    assert_in_range(rows, 400, 10000);
}

/* Single positions, also of permutations that are too large for a golden table. */
static void check_positions(const struct golden_positions *row, struct shuf__block *block)
{
    struct shuf__computation computation =
        computation_whole(SHUF_ALGORITHM_PRIMEFOLD, row->n, row->seed, row->epoch);
    struct shuf__permutation *p = &computation.request.permutation;
    struct shuf__error error = {0};
    p->count = 1;
    computation_set_width(&computation, 8);
    for (unsigned i = 0; i < row->count; i++) {
        uint64_t value = UINT64_MAX;
        p->offset = row->position[i];
        computation_fill(&computation, block);
        assert_int_equal(backend->ops->read(backend, block, 0, 8, &value, &error), SHUF_OK);
        assert_int_equal(value, row->value[i]);
    }
}

static void golden_positions_match(void **state)
{
    (void)state;
    struct golden_positions row;
    struct shuf__block block;
    unsigned rows = 0;
    FILE *table = golden_open("primefold.txt");
    computation_alloc(8, &block);
    for (; golden_next_positions(table, &row); rows++)
        check_positions(&row, &block);
    backend->ops->free(backend, &block);
    fclose(table);
    assert_in_range(rows, 300, 10000);
}

/* Requests around the limit of quick computations. For each row, philox24 and lcg cost as much as
 * the size of their domain, and in a batch the keys. */
static void quick_depends_on_domain_size(void **state)
{
    (void)state;
    const uint64_t most = backend->ops->quick, keys = backend->ops->quick_row;
    const struct {
        uint64_t n, rows;
        bool quick;
    } computations[] = {
        {1, 1, true},
        {1000, 1, true},
        {most - 1, 1, true},
        {most, 1, true},
        {most + 1, 1, false},
        {17, most / (32 + keys), true},
        {16, most / (16 + keys), true},
        {16, most / (16 + keys) + 1, false},
        {1, most, false},
    };
    for (size_t i = 0; i < sizeof computations / sizeof computations[0]; i++) {
        struct shuf__computation computation =
            computation_whole(SHUF_ALGORITHM_PHILOX24, computations[i].n, 8, UINT64_MAX - i);
        struct shuf__permutation *p = &computation.request.permutation;
        p->rows = computations[i].rows;
        assert_int_equal(shuf__backend_is_quick(backend->ops, &computation.request),
                         computations[i].quick);
        computation_check(&computation);
        computation_set_width(&computation, 8);
        p->algorithm = SHUF_ALGORITHM_LCG;
        computation_check(&computation);
    }
}

/* The cost of primefold depends on the number of requested values. For small n it depends on n,
 * because each value needs all n exchanges. On a CPU the keys of many rows are not quick. */
static void quick_depends_on_count_for_primefold(void **state)
{
    (void)state;
    const uint64_t most = backend->ops->quick, keys = backend->ops->quick_row,
                   exact = SHUF_PRIMEFOLD_EXACT;
    const struct {
        uint64_t n, rows, count;
        bool quick;
    } computations[] = {
        {1, 1, 1, true},
        {1, most / (1 + keys), 1, true},
        {1, most / (1 + keys) + 1, 1, false},
        {exact, most / (exact + keys), 1, true},
        {exact, most / (exact + keys) + 1, 1, false},
        {exact + 1, most / (1 + keys), 1, true},
        {exact + 1, most / (1 + keys) + 1, 1, false},
        {exact + 1, most, 1, strcmp(backend->ops->name, "cpu") != 0},
        {1000, most / 1000 + 1, 1000, false},
        {most, 1, most, true},
        {most + 1, 1, most + 1, false},
        {UINT64_C(1) << 62, 1, most, true},
        {UINT64_C(1) << 62, 1, 0, true},
    };
    for (size_t i = 0; i < sizeof computations / sizeof computations[0]; i++) {
        struct shuf__computation computation =
            computation_whole(SHUF_ALGORITHM_PRIMEFOLD, computations[i].n, 8, UINT64_MAX - i);
        struct shuf__permutation *p = &computation.request.permutation;
        p->rows = computations[i].rows;
        p->count = computations[i].count;
        assert_int_equal(shuf__backend_is_quick(backend->ops, &computation.request),
                         computations[i].quick);
        computation_check(&computation);
    }
}

/* Each window needs keys and a prime, also for small n. */
static void many_windows_are_not_quick(void **state)
{
    (void)state;
    const uint64_t sizes[] = {SHUF_PRIMEFOLD_EXACT, SHUF_PRIMEFOLD_EXACT + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct shuf__computation computation =
            computation_whole(SHUF_ALGORITHM_PRIMEFOLD, sizes[i], 8, i);
        struct shuf__permutation *p = &computation.request.permutation;
        p->chunk = p->window = 1;
        assert_false(shuf__backend_is_quick(backend->ops, &computation.request));
        p->window = sizes[i] - 1;
        assert_true(shuf__backend_is_quick(backend->ops, &computation.request));
    }
}

/* Fingerprints of the first values of a result. The numbers of values are near the sizes at which
 * backends divide the work. */
static void fingerprint_of_any_length_matches(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {0, 1, 2, 31, 33, 255, 257, 65535, 65536, 65537, 200000};
    struct shuf__error error = {0};
    struct shuf__block block;
    struct shuf__computation computation =
        computation_whole(SHUF_ALGORITHM_PHILOX24, 200000, 11, 12);
    struct shuf__permutation *p = &computation.request.permutation;
    uint64_t *values = computation_run(&computation, NULL), sum;
    for (unsigned width = 4; width <= 8; width += 4) {
        computation_set_width(&computation, width);
        computation_alloc(p->n * width, &block);
        computation_fill(&computation, &block);
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            assert_int_equal(
                backend->ops->fingerprint(backend, &block, width, lengths[i], 0, &sum, &error),
                SHUF_OK);
            assert_int_equal(sum, golden_fingerprint(values, lengths[i]));
        }
        backend->ops->free(backend, &block);
    }
    free(values);
}

static void read_at_any_offset(void **state)
{
    (void)state;
    random_start("read_at_any_offset");
    enum { N = 100000, BYTES = 4 * N };
    struct shuf__computation computation = computation_whole(SHUF_ALGORITHM_LCG, N, 5, 6);
    struct shuf__block block;
    struct shuf__error error = {0};
    uint8_t *whole = malloc(BYTES), *part = malloc(BYTES + 2);
    computation_alloc(BYTES, &block);
    computation_fill(&computation, &block);
    assert_int_equal(backend->ops->read(backend, &block, 0, BYTES, whole, &error), SHUF_OK);
    for (int i = 0; i < 200; i++) {
        uint64_t offset = i ? random_below(BYTES) : BYTES; /* the first time 0 bytes at the end */
        uint64_t bytes = i ? random_size(BYTES - offset) : 0;
        memset(part, 0xA5, BYTES + 2);
        assert_int_equal(backend->ops->read(backend, &block, offset, bytes, part + 1, &error),
                         SHUF_OK);
        assert_memory_equal(part + 1, whole + offset, bytes);
        assert_int_equal(part[0], 0xA5);
        assert_int_equal(part[bytes + 1], 0xA5);
    }
    backend->ops->free(backend, &block);
    free(whole);
    free(part);
}

/* A write changes no byte outside its range: it is compared with a write to a plain copy. */
static void write_at_any_offset(void **state)
{
    (void)state;
    random_start("write_at_any_offset");
    enum { BYTES = 300000 };
    struct shuf__block block;
    struct shuf__error error = {0};
    uint8_t *expected = calloc(1, BYTES), *found = malloc(BYTES);
    computation_alloc(BYTES, &block);
    for (int i = 0; i < 100; i++) {
        uint64_t offset = i ? random_below(BYTES) : BYTES; /* the first time 0 bytes at the end */
        uint64_t bytes = i ? random_size(BYTES - offset) : 0;
        for (uint64_t j = 0; j < bytes; j++)
            expected[offset + j] = (uint8_t)random_u64();
        assert_int_equal(
            backend->ops->write(backend, &block, offset, bytes, expected + offset, &error),
            SHUF_OK);
    }
    assert_int_equal(backend->ops->read(backend, &block, 0, BYTES, found, &error), SHUF_OK);
    assert_memory_equal(found, expected, BYTES);
    backend->ops->free(backend, &block);
    free(expected);
    free(found);
}

static void host_view_is_mapped_block(void **state)
{
    (void)state;
    struct shuf__computation computation = computation_whole(SHUF_ALGORITHM_PHILOX24, 1000, 7, 0);
    struct shuf__block block;
    struct shuf__error error = {0};
    uint32_t values[1000];
    computation_alloc(sizeof values, &block);
    computation_fill(&computation, &block);
    assert_int_equal(backend->ops->read(backend, &block, 0, sizeof values, values, &error),
                     SHUF_OK);
    assert_int_equal(block.host != NULL, computation_kind == SHUF__MEMORY_MEMFD);
    if (block.host)
        assert_memory_equal(block.host, values, sizeof values);
    backend->ops->free(backend, &block);
}

/* A shard without values is a valid computation. */
static void empty_shard_is_computed(void **state)
{
    (void)state;
    struct shuf__computation computation = computation_whole(SHUF_ALGORITHM_PHILOX24, 10, 7, 0);
    struct shuf__permutation *p = &computation.request.permutation;
    struct shuf__block block;
    struct shuf__error error = {0};
    uint64_t sum = 1;
    p->count = 0;
    computation_alloc(0, &block);
    assert_null(block.memory);
    assert_int_equal(block.fd, -1);
    computation_fill(&computation, &block);
    assert_int_equal(backend->ops->fingerprint(backend, &block, 4, 0, 0, &sum, &error), SHUF_OK);
    assert_int_equal(sum, 0);
    assert_int_equal(backend->ops->read(backend, &block, 0, 0, NULL, &error), SHUF_OK);
    backend->ops->free(backend, &block);
}

static void expect_alloc_refused(uint64_t bytes)
{
    struct shuf__block block;
    struct shuf__error error = {0};
    char number[32];
    bytes -= bytes % SHUF__BLOCK_UNIT;
    snprintf(number, sizeof number, "%llu", (unsigned long long)bytes);
    assert_int_equal(backend->ops->alloc(backend, computation_kind, bytes, &block, &error),
                     SHUF_NO_MEMORY);
    assert_int_equal(error.status, SHUF_NO_MEMORY);
    assert_non_null(strstr(error.text, number));
    assert_null(strchr(error.text, '\n'));
}

/* An allocation of the whole memory fails too, because some of it is in use. */
static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    uint64_t available, total;
    struct shuf__error error = {0};
    assert_int_equal(backend->ops->memory(backend, computation_kind, &available, &total, &error),
                     SHUF_OK);
    expect_alloc_refused(total);
    expect_alloc_refused(UINT64_C(1) << 50);
    expect_alloc_refused(UINT64_C(1) << 62);
    expect_alloc_refused(INT64_MAX);
}

static void memory_is_reported(void **state)
{
    (void)state;
    uint64_t available = 0, total = 0;
    struct shuf__error error = {0};
    assert_int_equal(backend->ops->memory(backend, computation_kind, &available, &total, &error),
                     SHUF_OK);
    assert_in_range(total, 1, UINT64_MAX);
    assert_in_range(available, 1, total);
}

/* ---- Cancelling ---- */

static bool is_past(void *context)
{
    return computation_seconds() > *(const double *)context;
}

static bool never(void *context)
{
    (void)context;
    return false;
}

/* The last value of 2^40 + 1 takes any backend far longer than the timeout of the test. */
static void long_job_is_cancelled(void **state)
{
    (void)state;
    struct shuf__computation computation =
        computation_whole(SHUF_ALGORITHM_PHILOX24, (UINT64_C(1) << 40) + 1, 7, 0);
    struct shuf__permutation *p = &computation.request.permutation;
    struct shuf__block block;
    struct shuf__error error = {0};
    double begin = computation_seconds(), deadline = begin + 0.1;
    uint64_t ns;
    p->offset = p->n - 1;
    p->count = 1;
    computation.cancelled = is_past;
    computation.cancel_context = &deadline;
    computation_alloc(8, &block);
    assert_int_equal(shuf__backend_compute(backend, &computation, &block, &ns, &error),
                     SHUF_CANCELLED);
    assert_int_equal(error.status, SHUF_CANCELLED);
    backend->ops->free(backend, &block);
    if (computation_seconds() - begin > 5)
        fail_msg("cancelled after 0.1 s, ended after %.1f s", computation_seconds() - begin);
}

static void check_cancelled_at_once(struct shuf__computation computation)
{
    struct shuf__block block;
    struct shuf__error error = {0};
    double already_past = 0;
    uint64_t ns;
    computation.cancelled = is_past;
    computation.cancel_context = &already_past;
    computation_alloc(4 * computation_value_count(&computation), &block);
    assert_int_equal(shuf__backend_compute(backend, &computation, &block, &ns, &error),
                     SHUF_CANCELLED);
    backend->ops->free(backend, &block);
}

static void many_rows_are_cancelled(void **state)
{
    (void)state;
    struct shuf__computation computation = computation_whole(SHUF_ALGORITHM_PHILOX24, 17, 7, 0);
    struct shuf__permutation *p = &computation.request.permutation;
    p->rows = 1 << 20;
    check_cancelled_at_once(computation);
    p->algorithm = SHUF_ALGORITHM_PRIMEFOLD;
    check_cancelled_at_once(computation);
}

static void long_row_is_cancelled(void **state)
{
    (void)state;
    check_cancelled_at_once(computation_whole(SHUF_ALGORITHM_PRIMEFOLD, 1 << 26, 7, 0));
}

/* A call of `cancelled` that returns false does not change the result. After a computation was
 * cancelled, the backend still works. */
static void false_cancel_check_changes_nothing(void **state)
{
    (void)state;
    struct shuf__computation computation =
        computation_whole(SHUF_ALGORITHM_PHILOX24, (1 << 20) + 1, 7, 0);
    computation.cancelled = never;
    computation_check(&computation);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_table_matches),
        cmocka_unit_test(golden_positions_match),
        cmocka_unit_test(quick_depends_on_domain_size),
        cmocka_unit_test(quick_depends_on_count_for_primefold),
        cmocka_unit_test(many_windows_are_not_quick),
        cmocka_unit_test(fingerprint_of_any_length_matches),
        cmocka_unit_test(write_at_any_offset),
        cmocka_unit_test(read_at_any_offset),
        cmocka_unit_test(host_view_is_mapped_block),
        cmocka_unit_test(empty_shard_is_computed),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(memory_is_reported),
        cmocka_unit_test(long_job_is_cancelled),
        cmocka_unit_test(many_rows_are_cancelled),
        cmocka_unit_test(long_row_is_cancelled),
        cmocka_unit_test(false_cancel_check_changes_nothing),
    };
    return computation_main(argc, argv, tests);
}
