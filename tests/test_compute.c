/* SPDX-License-Identifier: MIT
 *
 * Workspaces of computations: each computation gets one, which is freed after it. Each test sets
 * the memory of the fake backend.
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
} does;

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
    *available = does.available;
    *total = does.total;
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
    if (does.total == 0)
        return shuf__fail(error, SHUF_DEVICE, "lost");
    if (bytes > does.available)
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
    return does.workspace;
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
    return does.launch ? shuf__fail(error, does.launch, "cannot") : SHUF_OK;
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
    memset(&does, 0, sizeof does);
    memset(&seen, 0, sizeof seen);
    does.available = 8 * UNIT;
    does.total = 16 * UNIT;
    does.workspace.kind = SHUF__MEMORY_PRIVATE;
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

static const struct shuf__computation any = {
    .request = {.kind = SHUF__PERMUTATION,
                .dtype = SHUF_U32,
                .permutation = {.n = 10, .rows = 1, .count = 10, .stride = 1}}};

/* Expects this number of allocations, the size of the last one in units, and this number of
 * frees. */
static void expect_given(unsigned allocations, uint64_t units, unsigned frees)
{
    assert_int_equal(seen.allocations, allocations);
    assert_int_equal(seen.bytes, units * UNIT);
    assert_int_equal(seen.frees, frees);
    assert_int_equal(seen.workspace != NULL, units > 0 && seen.launches > 0);
}

/* ---- workspaces --------------------------------------------------------------------------- */

static void in_nothing(void **state)
{
    (void)state;
    assert_int_equal(compute(&any), SHUF_OK);
    expect_given(0, 0, 0);
}

/* The size is rounded up to whole units. */
static void in_what_is_best(void **state)
{
    (void)state;
    does.workspace.best = 7 * UNIT + 1;
    does.workspace.least = 1;
    assert_int_equal(compute(&any), SHUF_OK);
    expect_given(1, 8, 1);
}

static void in_the_least(void **state)
{
    (void)state;
    does.workspace.best = 8 * UNIT + 1;
    does.workspace.least = 2 * UNIT - 1;
    assert_int_equal(compute(&any), SHUF_OK);
    expect_given(2, 2, 1);
}

/* The best workspace does not fit, but the computation can do without. It gets an empty block. */
static void in_nothing_rather_than_not(void **state)
{
    (void)state;
    does.workspace.best = 9 * UNIT;
    assert_int_equal(compute(&any), SHUF_OK);
    expect_given(2, 0, 1);
    assert_int_equal(seen.launches, 1);
}

static void in_its_own(void **state)
{
    (void)state;
    struct shuf__computation computation = any;
    const struct shuf__block own = {.bytes = 0};
    computation.workspace = &own;
    does.workspace.best = does.workspace.least = UNIT;
    assert_int_equal(compute(&computation), SHUF_OK);
    assert_ptr_equal(seen.workspace, &own);
    assert_int_equal(seen.allocations + seen.frees, 0);
}

/* The computation cannot run without a workspace, and the best size is also the least. So the
 * allocation is not repeated. It is not repeated after a failure of the device either. */
static void not_without_it(void **state)
{
    (void)state;
    does.workspace.best = does.workspace.least = 9 * UNIT;
    assert_int_equal(compute(&any), SHUF_NO_MEMORY);
    expect_given(1, 9, 0);
    does.total = 0;
    does.workspace.least = UNIT;
    assert_int_equal(compute(&any), SHUF_DEVICE);
    expect_given(2, 9, 0);
    assert_int_equal(seen.launches, 0);
}

static void given_back_by_what_fails(void **state)
{
    (void)state;
    does.workspace.best = UNIT;
    does.launch = SHUF_CANCELLED;
    assert_int_equal(compute(&any), SHUF_CANCELLED);
    expect_given(1, 1, 1);
}

/* A buffer may not exceed the available memory, even if the device has more memory in total. */

/* A buffer may not exceed the available memory, although the backend has more in total. */
static void buffers_fit(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(in_nothing, reset),
        cmocka_unit_test_setup(in_what_is_best, reset),
        cmocka_unit_test_setup(in_the_least, reset),
        cmocka_unit_test_setup(in_nothing_rather_than_not, reset),
        cmocka_unit_test_setup(in_its_own, reset),
        cmocka_unit_test_setup(not_without_it, reset),
        cmocka_unit_test_setup(given_back_by_what_fails, reset),
        cmocka_unit_test_setup(buffers_fit, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
