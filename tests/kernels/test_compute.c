/* SPDX-License-Identifier: MIT
 *
 * Workspaces of computations, and which computations are small. Each computation gets a workspace,
 * and frees it at its end. Each test sets the memory of the fake backend.
 */
#include "backend.h"
#include "support/cmocka_all.h"

#include <string.h>

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

/* ---- workspaces --------------------------------------------------------------------------- */

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
