/* SPDX-License-Identifier: MIT
 *
 * A computation gives the same result with its best workspace, with a smaller one and with the
 * least one. The bytes in the workspace do not matter.
 */
#include "support/cmocka_all.h"
#include "support/computation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { UNIT = SHUF__BLOCK_UNIT };

static struct shuf__workspace workspace_of(const struct shuf__computation *computation)
{
    return backend->ops->workspace(backend, &computation->request, computation_kind);
}

/* ---- Running ---- */

static void make_dirty(struct shuf__block *block)
{
    struct shuf__error error;
    uint8_t *ones = malloc(UNIT);
    assert_non_null(ones);
    memset(ones, 0xff, UNIT);
    for (uint64_t at = 0; at < block->bytes; at += UNIT)
        assert_int_equal(backend->ops->write(backend, block, at, UNIT, ones, &error), SHUF_OK);
    free(ones);
}

/* Runs the computation with a workspace of this size (0: without one). Returns the fingerprint. */
static uint64_t fingerprint_with_workspace(struct shuf__computation computation, uint64_t bytes)
{
    struct shuf__block out, workspace = {.fd = -1};
    struct shuf__error error = {0};
    const struct shuf__workspace needs = workspace_of(&computation);
    uint64_t ns, fingerprint;
    computation_alloc(computation_bytes(&computation), &out);
    if (bytes > 0) {
        assert_int_equal(backend->ops->alloc(backend, needs.kind, bytes, &workspace, &error),
                         SHUF_OK);
        make_dirty(&workspace);
        computation.workspace = &workspace;
    }
    bool done = false;
    assert_int_equal(backend->ops->launch(backend, &computation, &out, &error), SHUF_OK);
    while (!done)
        assert_int_equal(backend->ops->wait(backend, UINT64_MAX, &done, &ns, &error), SHUF_OK);
    assert_int_equal(backend->ops->fingerprint(backend, &out, 4,
                                               computation_bytes(&computation) / 4, 0, &fingerprint,
                                               &error),
                     SHUF_OK);
    backend->ops->free(backend, &out);
    if (bytes > 0)
        backend->ops->free(backend, &workspace);
    return fingerprint;
}

static uint64_t round_up_to_units(uint64_t bytes)
{
    return (bytes + UNIT - 1) / UNIT * UNIT;
}

static void check_workspaces(const struct shuf__computation *computation)
{
    struct shuf__error error = {0};
    struct shuf__block out;
    const struct shuf__workspace needs = workspace_of(computation);
    const uint64_t best = round_up_to_units(needs.best), least = round_up_to_units(needs.least);
    uint64_t ns, expected;
    assert_true(needs.least <= needs.best);
    assert_true(needs.best == 0 || backend->ops->makes[needs.kind]);
    assert_true(needs.best == 0 || shuf__memory_is_private(needs.kind));
    computation_alloc(computation_bytes(computation), &out);
    assert_int_equal(shuf__backend_compute(backend, computation, &out, &ns, &error), SHUF_OK);
    assert_int_equal(backend->ops->fingerprint(backend, &out, 4, computation_bytes(computation) / 4,
                                               0, &expected, &error),
                     SHUF_OK);
    backend->ops->free(backend, &out);
    printf("%s of %" PRIu64 " bytes: %" PRIu64 " bytes to work in, at least %" PRIu64 "\n",
           shuf__request_name(&computation->request), computation_bytes(computation), needs.best,
           needs.least);
    assert_int_equal(fingerprint_with_workspace(*computation, best), expected);
    assert_int_equal(fingerprint_with_workspace(*computation, best + 5 * UNIT), expected);
    assert_int_equal(fingerprint_with_workspace(*computation, least), expected);
    if (best > least + UNIT)
        assert_int_equal(fingerprint_with_workspace(*computation, best - UNIT), expected);
}

/* ---- Computations ---- */

static void check_shuffle(enum shuf_algorithm algorithm, uint64_t n)
{
    struct shuf__block in;
    struct shuf__computation computation = computation_shuffle(algorithm, n, 7, 3, 8);
    const struct shuf__computation noise =
        computation_stream(SHUF_DISTRIBUTION_UNIFORM, SHUF_U32, 7, 0, 0, 2 * n);
    computation_alloc(8 * n, &in);
    computation_fill(&noise, &in);
    computation.input = &in;
    check_workspaces(&computation);
    computation.request.shuffle.inverse = true;
    check_workspaces(&computation);
    backend->ops->free(backend, &in);
}

/* The records exceed the caches, so that a shuffle needs a workspace. */
static void large_shuffles_use_workspace(void **state)
{
    (void)state;
    struct shuf__computation computation =
        computation_shuffle(SHUF_ALGORITHM_PRIMEFOLD, 1 << 20, 7, 3, 8);
    struct shuf__permutation *p = &computation.request.shuffle.permutation;
    for (; workspace_of(&computation).best == 0; p->count = p->n *= 2)
        assert_in_range(p->n, 1, 1 << 26);
    check_shuffle(SHUF_ALGORITHM_PRIMEFOLD, p->n + 1);
}

/* These algorithms move the records while they evaluate, and need no list of indices. */
static void scanning_shuffles_need_no_workspace(void **state)
{
    (void)state;
    for (int a = SHUF_ALGORITHM_PHILOX24; a < SHUF_ALGORITHM_COUNT; a++)
        for (uint64_t record = 1; record <= 16; record *= 2) {
            const struct shuf__computation computation =
                computation_shuffle((enum shuf_algorithm)a, UINT64_C(1) << 33, 7, 3, record);
            assert_int_equal(workspace_of(&computation).best, 0);
        }
    check_shuffle(SHUF_ALGORITHM_PHILOX24, (3 << 20) + 1);
    check_shuffle(SHUF_ALGORITHM_LCG, (1 << 20) - 1);
}

static bool is_gpu(void)
{
    return strcmp(backend->ops->name, "cuda") == 0;
}

static void permutations_and_streams_need_workspace_to_copy(void **state)
{
    (void)state;
    const struct shuf__computation permutation =
        computation_whole(SHUF_ALGORITHM_PHILOX24, (3 << 20) + 1, 7, 3);
    const struct shuf__computation stream =
        computation_stream(SHUF_DISTRIBUTION_GAUSS, SHUF_F64, 7, 3, 5, (3 << 20) + 1);
    const bool copied = is_gpu() && shuf__memory_is_host(computation_kind);
    assert_int_equal(workspace_of(&permutation).least > 0, copied);
    assert_int_equal(workspace_of(&stream).least > 0, copied);
    check_workspaces(&permutation);
    check_workspaces(&stream);
}

static void small_computations_need_no_workspace(void **state)
{
    (void)state;
    for (int a = 0; a < SHUF_ALGORITHM_COUNT; a++) {
        const enum shuf_algorithm algorithm = (enum shuf_algorithm)a;
        const struct shuf__computation values = computation_whole(algorithm, 10000, 7, 3);
        const struct shuf__computation records = computation_shuffle(algorithm, 10000, 7, 3, 12);
        assert_int_equal(workspace_of(&values).best, 0);
        assert_int_equal(workspace_of(&records).best, 0);
        check_shuffle(algorithm, 10000);
    }
}

/* ---- Private memory, the kind of most workspaces ---- */

static void private_memory_is_allocated(void **state)
{
    (void)state;
    struct shuf__block block;
    struct shuf__error error = {0};
    uint8_t byte = 7, read = 0;
    uint64_t available, total;
    assert_true(backend->ops->makes[SHUF__MEMORY_PRIVATE]);
    assert_int_equal(backend->ops->alloc(backend, SHUF__MEMORY_PRIVATE, 0, &block, &error),
                     SHUF_OK);
    assert_null(block.memory);
    assert_int_equal(backend->ops->alloc(backend, SHUF__MEMORY_PRIVATE, 3 * UNIT, &block, &error),
                     SHUF_OK);
    assert_int_equal(block.kind, SHUF__MEMORY_PRIVATE);
    assert_int_equal(block.bytes, 3 * UNIT);
    assert_int_equal(block.fd, -1);
    assert_ptr_equal(block.host, block.memory);
    for (uint64_t at = 0; at < block.bytes; at++)
        assert_int_equal(((const uint8_t *)block.host)[at], 0);
    assert_int_equal(backend->ops->write(backend, &block, UNIT, 1, &byte, &error), SHUF_OK);
    assert_int_equal(backend->ops->read(backend, &block, UNIT, 1, &read, &error), SHUF_OK);
    assert_int_equal(read, 7);
    const void *at = block.memory;
    unsigned char residency;
    backend->ops->free(backend, &block);
    assert_null(block.memory);
    if (backend->ops == &shuf__cpu_ops) /* another backend may keep the memory */
        assert_int_equal(mincore((void *)(uintptr_t)at, 1, &residency), -1);
    backend->ops->free(backend, &block); /* freeing a freed block has no effect */
    assert_int_equal(
        backend->ops->memory(backend, SHUF__MEMORY_PRIVATE, &available, &total, &error), SHUF_OK);
    assert_in_range(available, 1, total);
    assert_int_equal(backend->ops->alloc(backend, SHUF__MEMORY_PRIVATE, round_up_to_units(total),
                                         &block, &error),
                     SHUF_NO_MEMORY);
    assert_non_null(strstr(error.text, "are available"));
    assert_null(block.memory);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_shuffles_use_workspace),
        cmocka_unit_test(scanning_shuffles_need_no_workspace),
        cmocka_unit_test(permutations_and_streams_need_workspace_to_copy),
        cmocka_unit_test(small_computations_need_no_workspace),
        cmocka_unit_test(private_memory_is_allocated),
    };
    return computation_main(argc, argv, tests);
}
