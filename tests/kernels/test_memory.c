/* SPDX-License-Identifier: MIT
 *
 * The contract of kernels/backend.h for blocks, on the backend of the command line. Blocks are
 * zeroed, have the fields of their kind, and free all their resources. Other tests here wait for
 * computations with short timeouts, or cancel them. test_memfd.c has more tests of memfds.
 */
#include "support/cmocka_all.h"
#include "support/computation.h"
#include "support/descriptors.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { UNIT = SHUF__BLOCK_UNIT };

/* ---- Every kind ----------------------------------------------------------- */

static void expect_zeros(const struct shuf__block *block)
{
    static const char zeros[UNIT];
    static char part[UNIT];
    struct shuf__error error = {0};
    for (uint64_t offset = 0; offset < block->bytes; offset += UNIT) {
        memset(part, 0xA5, UNIT);
        assert_int_equal(backend->ops->read(backend, block, offset, UNIT, part, &error), SHUF_OK);
        assert_memory_equal(part, zeros, UNIT);
    }
}

/* Allocates several blocks at once and three times, so that the system probably reuses freed
 * memory. */
static void new_block_is_zero(void **state)
{
    (void)state;
    enum { BLOCKS = 4 };
    struct shuf__block blocks[BLOCKS];
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < BLOCKS; i++) {
            computation_alloc((uint64_t)(i + 1) * UNIT, &blocks[i]);
            expect_zeros(&blocks[i]);
        }
        for (int i = 0; i < BLOCKS; i++)
            computation_fill_block(&blocks[i]);
        for (int i = 0; i < BLOCKS; i++)
            backend->ops->free(backend, &blocks[i]);
    }
}

static void block_has_its_sharing_information(void **state)
{
    (void)state;
    struct shuf__block block;
    computation_alloc(3 * UNIT, &block);
    assert_int_equal(block.kind, computation_kind);
    assert_int_equal(block.bytes, 3 * UNIT);
    assert_non_null(block.memory);
    assert_ptr_equal(block.host, computation_kind == SHUF__MEMORY_MEMFD ? block.memory : NULL);
    assert_int_equal(computation_has_nonzero(block.ipc, sizeof block.ipc),
                     computation_kind == SHUF__MEMORY_CUDA_IPC);
    if (computation_kind == SHUF__MEMORY_CUDA_IPC)
        assert_int_equal(block.fd, -1);
    else
        assert_int_equal(fcntl(block.fd, F_GETFD), FD_CLOEXEC);
    backend->ops->free(backend, &block);
    assert_null(block.memory);
    backend->ops->free(backend, &block); /* freeing a freed block has no effect */
}

/* Two blocks at the same time keep their own values. */
static void two_blocks_keep_their_values(void **state)
{
    (void)state;
    struct shuf__block first, second;
    struct shuf__computation computation = computation_of_bytes(UNIT), other = computation;
    other.request.permutation.epoch++;
    computation_alloc(UNIT, &first);
    computation_fill(&computation, &first);
    computation_alloc(UNIT, &second);
    computation_fill(&other, &second);
    computation_check_block(&computation, &first);
    computation_check_block(&other, &second);
    backend->ops->free(backend, &first);
    computation_check_block(&other, &second);
    backend->ops->free(backend, &second);
}

static void refuse_allocation(void)
{
    struct shuf__block block;
    struct shuf__error error = {0};
    assert_int_equal(
        backend->ops->alloc(backend, computation_kind, UINT64_C(1) << 50, &block, &error),
        SHUF_NO_MEMORY);
}

static void free_closes_descriptors(void **state)
{
    (void)state;
    struct shuf__block block;
    computation_alloc(UNIT, &block); /* the first use opens resources that a driver keeps */
    computation_fill_block(&block);
    backend->ops->free(backend, &block);
    int before = count_descriptors();
    for (int i = 0; i < 50; i++) {
        computation_alloc(UNIT, &block);
        computation_fill_block(&block);
        backend->ops->free(backend, &block);
        refuse_allocation();
    }
    assert_int_equal(count_descriptors(), before);
}

static void free_returns_device_memory(void **state)
{
    (void)state;
    uint64_t before, after, total;
    struct shuf__block block;
    struct shuf__error error = {0};
    if (computation_kind == SHUF__MEMORY_MEMFD)
        return; /* other processes use host memory too, so its amount cannot be compared */
    computation_alloc(64 * UNIT, &block);
    backend->ops->free(backend, &block);
    assert_int_equal(backend->ops->memory(backend, computation_kind, &before, &total, &error),
                     SHUF_OK);
    for (int i = 0; i < 20; i++) {
        computation_alloc(64 * UNIT, &block);
        computation_fill_block(&block);
        backend->ops->free(backend, &block);
    }
    assert_int_equal(backend->ops->memory(backend, computation_kind, &after, &total, &error),
                     SHUF_OK);
    assert_in_range(after, before - 64 * UNIT, UINT64_MAX);
}

/* ---- Waiting -------------------------------------------------------------- */

static uint64_t fingerprint_of(const struct shuf__block *block,
                               const struct shuf__computation *computation)
{
    uint64_t sum = 0;
    struct shuf__error error = {0};
    assert_int_equal(backend->ops->fingerprint(backend, block, computation_width(computation),
                                               computation_value_count(computation), 0, &sum,
                                               &error),
                     SHUF_OK);
    return sum;
}

/* No wait exceeds its timeout by much. The result does not depend on the number of waits. */
static void check_wait_timeout(struct shuf__computation computation, uint64_t timeout_ns)
{
    struct shuf__permutation *p = &computation.request.permutation;
    struct shuf__block block, workspace;
    struct shuf__error error = {0};
    bool done = false;
    uint64_t ns = 0;
    computation_alloc_workspace(&computation, &workspace);
    computation_alloc(computation_value_count(&computation) * computation_width(&computation),
                      &block);
    computation_fill(&computation, &block);
    uint64_t expected = fingerprint_of(&block, &computation);
    p->epoch++;
    computation_fill(&computation, &block);
    p->epoch--;
    assert_int_not_equal(fingerprint_of(&block, &computation), expected);
    assert_int_equal(backend->ops->launch(backend, &computation, &block, &error), SHUF_OK);
    for (double deadline = computation_seconds() + 60; !done;) {
        double begin = computation_seconds();
        assert_int_equal(backend->ops->wait(backend, timeout_ns, &done, &ns, &error), SHUF_OK);
        assert_true(computation_seconds() - begin < 0.5 && computation_seconds() < deadline);
    }
    assert_in_range(ns, 1, 60000000000);
    assert_int_equal(fingerprint_of(&block, &computation), expected);
    backend->ops->free(backend, &block);
    backend->ops->free(backend, &workspace);
}

static void waits_end_at_their_timeouts(void **state)
{
    (void)state;
    static const uint64_t timeouts[] = {0, 1000, 200000, UINT64_MAX};
    for (size_t i = 0; i < sizeof timeouts / sizeof timeouts[0]; i++) {
        check_wait_timeout(computation_whole(SHUF_ALGORITHM_PHILOX24, 1000, i, 1), timeouts[i]);
        check_wait_timeout(computation_whole(SHUF_ALGORITHM_LCG, 4096, i, 1), timeouts[i]);
        check_wait_timeout(computation_whole(SHUF_ALGORITHM_LCG, (1 << 24) + 1, i, 1), timeouts[i]);
    }
}

static bool always(void *context)
{
    (void)context;
    return true;
}

/* 2^24 values take a single launch on a GPU, so the cancelling must stop the copy of the result. */
static void cancelled_launch_changes_no_later_result(void **state)
{
    (void)state;
    struct shuf__block block;
    struct shuf__error error = {0};
    struct shuf__computation good = computation_of_bytes(UNIT), bad = good;
    uint64_t ns;
    computation_alloc(64 * UNIT, &block);
    int before = count_descriptors();
    for (unsigned bits = 16; bits <= 24; bits += 8) {
        struct shuf__permutation *p = &bad.request.permutation;
        p->n = p->count = (UINT64_C(1) << bits) + 1;
        bad.cancelled = always;
        shuf_status status = shuf__backend_compute(backend, &bad, &block, &ns, &error);
        if (computation_kind == SHUF__MEMORY_MEMFD || status != SHUF_OK)
            assert_int_equal(status, SHUF_CANCELLED);
        computation_fill(&good, &block);
        computation_check_block(&good, &block);
    }
    assert_int_equal(count_descriptors(), before);
    backend->ops->free(backend, &block);
}

static void event_follows_each_launch(void **state)
{
    (void)state;
    struct shuf__block block;
    struct shuf__error error = {0};
    struct shuf__computation computation = computation_of_bytes(UNIT);
    struct shuf__permutation *p = &computation.request.permutation;
    uint8_t handle[SHUF__IPC_HANDLE] = {0};
    uint64_t ns;
    if (computation_kind != SHUF__MEMORY_CUDA_IPC)
        return;
    computation_alloc(UNIT, &block);
    for (p->n = p->count = 1024; p->n <= UNIT / 4; p->n *= 4, p->count = p->n) {
        bool done = false;
        assert_int_equal(backend->ops->launch(backend, &computation, &block, &error), SHUF_OK);
        assert_int_equal(backend->ops->event(backend, &block, handle, &error), SHUF_OK);
        assert_true(computation_has_nonzero(handle, sizeof handle));
        assert_int_equal(backend->ops->wait(backend, UINT64_MAX, &done, &ns, &error), SHUF_OK);
        assert_true(done);
        computation_check_block(&computation, &block);
    }
    backend->ops->free(backend, &block);
}

/* ---- Threads -------------------------------------------------------------- */

/* This test must be the first one, because a later computation starts the process's team of
 * threads. */
static void quick_job_starts_no_thread(void **state)
{
    (void)state;
    enum { FEW = 1024 }; /* look-ups, which the daemon's loop does itself */
    uint64_t at[FEW] = {0};
    struct shuf__block block;
    struct shuf__error error;
    struct shuf__computation computation = computation_whole(SHUF_ALGORITHM_PHILOX24, 1000, 5, 6),
                             look_up = computation_whole(SHUF_ALGORITHM_PRIMEFOLD, 1000, 5, 6);
    look_up.request = (struct shuf__request){
        .kind = SHUF__LOOK_UP, .look_up = {.permutation = look_up.request.permutation}};
    computation_alloc(UNIT, &block);
    int before = count_entries("/proc/self/task");
    computation_fill(&computation, &block);
    fingerprint_of(&block, &computation);
    assert_int_equal(backend->ops->look_up(backend, &look_up, at, FEW, &error), SHUF_OK);
    assert_int_equal(count_entries("/proc/self/task"), before);
    backend->ops->free(backend, &block);
}

static void *compute_in_thread(void *context)
{
    struct shuf__block *block = context;
    struct shuf__computation computation = computation_of_bytes(block->bytes);
    struct shuf__error error = {0};
    uint64_t ns;
    if (backend->ops->alloc(backend, block->kind, block->bytes, block, &error) ||
        shuf__backend_compute(backend, &computation, block, &ns, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return NULL;
    }
    return block;
}

static void any_thread_may_use_backend(void **state)
{
    (void)state;
    struct shuf__block block = {.kind = computation_kind, .bytes = UNIT};
    struct shuf__computation computation = computation_of_bytes(UNIT);
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, compute_in_thread, &block), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, &block);
    computation_check_block(&computation, &block);
    backend->ops->free(backend, &block);
}

static void *query_memory(void *context)
{
    enum shuf__memory kind = *(const enum shuf__memory *)context;
    uint64_t available, total;
    struct shuf__error error = {0};
    for (int i = 0; i < 200; i++)
        if (backend->ops->memory(backend, kind, &available, &total, &error) || available > total)
            return NULL;
    return context;
}

static void memory_is_reported_during_computations(void **state)
{
    (void)state;
    struct shuf__block block;
    pthread_t thread;
    void *result;
    computation_alloc(16 * UNIT, &block);
    assert_int_equal(pthread_create(&thread, NULL, query_memory, &computation_kind), 0);
    for (int i = 0; i < 20; i++)
        computation_fill_block(&block);
    pthread_join(thread, &result);
    assert_ptr_equal(result, &computation_kind);
    backend->ops->free(backend, &block);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quick_job_starts_no_thread),
        cmocka_unit_test(new_block_is_zero),
        cmocka_unit_test(block_has_its_sharing_information),
        cmocka_unit_test(two_blocks_keep_their_values),
        cmocka_unit_test(free_closes_descriptors),
        cmocka_unit_test(free_returns_device_memory),
        cmocka_unit_test(waits_end_at_their_timeouts),
        cmocka_unit_test(cancelled_launch_changes_no_later_result),
        cmocka_unit_test(event_follows_each_launch),
        cmocka_unit_test(any_thread_may_use_backend),
        cmocka_unit_test(memory_is_reported_during_computations),
    };
    return computation_main(argc, argv, tests);
}
