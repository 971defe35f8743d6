/* SPDX-License-Identifier: MIT
 *
 * Plans of exchanges on the host, for the tests of every instruction set of this processor. A test
 * includes it once.
 */
#ifndef TEST_SUPPORT_HOST_PLANS_H
#define TEST_SUPPORT_HOST_PLANS_H

#include "cmocka_all.h"

#include "host/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOST_PLAN_GUARD = 64 };

static const struct shuf__simd_ops *simd; /* of the present run */

static struct shuf__computation host_plan_computation(const struct shuf__plan *plan)
{
    struct shuf__error error;
    struct shuf__computation c = {.request = {.plan = *plan}};
    if (shuf__exchange_make(&c.request, &error))
        fail_msg("%s", error.text);
    return c;
}

/* Computes a plan, and checks that nothing is written beside the result and the workspace. */
static void *host_plan_compute(struct shuf__computation c, int threads)
{
    const uint64_t bytes = shuf__request_shape(&c.request).bytes;
    const uint64_t needed = shuf__exchange_bytes(threads, &c.request.plan);
    uint8_t *out = malloc(bytes + HOST_PLAN_GUARD), *beside = malloc(needed + HOST_PLAN_GUARD);
    const struct shuf__block workspace = {.memory = beside, .bytes = needed};
    assert_true(out && beside);
    memset(out, 0xa5, bytes + HOST_PLAN_GUARD);
    memset(beside, 0x5a, needed + HOST_PLAN_GUARD);
    c.workspace = &workspace;
    assert_true(shuf__host_exchange(simd, threads, &c, out));
    for (int i = 0; i < HOST_PLAN_GUARD; i++)
        assert_true(out[bytes + (size_t)i] == 0xa5 && beside[needed + (size_t)i] == 0x5a);
    free(beside);
    return out;
}

struct host_plan_cancel {
    unsigned calls, limit;
};

static bool host_plan_at_last(void *context)
{
    struct host_plan_cancel *cancel = context; /* called by any thread */
    return __atomic_add_fetch(&cancel->calls, 1, __ATOMIC_RELAXED) >= cancel->limit;
}

/* Each call of `cancelled`, from the first to the last, ends the computation soon. */
static void host_plan_check_cancel(struct shuf__computation c)
{
    struct host_plan_cancel cancel = {.limit = UINT32_MAX};
    struct shuf__block workspace = {.bytes = shuf__exchange_bytes(2, &c.request.plan)};
    void *out = malloc(shuf__request_shape(&c.request).bytes);
    workspace.memory = malloc(workspace.bytes);
    c.workspace = &workspace;
    c.cancelled = host_plan_at_last;
    c.cancel_context = &cancel;
    assert_true(shuf__host_exchange(simd, 2, &c, out));
    const unsigned all = cancel.calls;
    assert_true(all > 100);
    for (unsigned limit = 1; limit <= all; limit += 13) {
        cancel = (struct host_plan_cancel){.limit = limit};
        assert_false(shuf__host_exchange(simd, 2, &c, out));
        assert_in_range(cancel.calls, limit, limit + 10);
    }
    free(workspace.memory);
    free(out);
}

/* Runs the tests with the instructions of `name`, if this processor has them. */
#define HOST_PLAN_RUN(name, tests) \
    (host_plan_choose(name) ? cmocka_run_group_tests_name(name, tests, NULL, NULL) : 0)

static bool host_plan_choose(const char *name)
{
    struct shuf__error error;
    if (shuf__simd_choose(name, &simd, &error) == SHUF_OK)
        return true;
    fprintf(stderr, "%s\n", error.text);
    if (error.status != SHUF_DEVICE)
        exit(1);
    return false;
}

#endif
