/* SPDX-License-Identifier: MIT
 *
 * A program that allocates memory beside a daemon with idle results: the daemon frees these. "cpu":
 * both are in one control group, and the kernel kills neither process. Skipped if this process may
 * not make a control group; test_idle.c tests the rules in any case. "cuda": the program allocates
 * nearly all memory of the GPU.
 */
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/memory_group.h"
#include "support/wire.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MI (UINT64_C(1) << 20)
#define HOST SHUF__TRANSPORT__TRANSPORT_MEMFD

/* ---- A control group ---- */

enum {
    LIMIT_MI = 400,
    RESULTS = 8,
    FIRST_MI = 20, /* MiB of the first result */
    STEP_MI = 2,   /* MiB by which each next result is larger */
    IDLE_MI = RESULTS * FIRST_MI + STEP_MI * RESULTS * (RESULTS - 1) / 2, /* MiB of all results */
    EATEN_MI = 300, /* MiB that the program allocates; with IDLE_MI this exceeds the limit */
    /* pause of the program after each MiB; 100 MB/s is moderate for a slow machine */
    PAUSE_US = 40000,
};

static struct harness h;

static void start(const char *config)
{
    memory_group_enter();
    wire_start(&h, "cpu", config);
    memory_group_leave();
}

/* The limits of the control group take the place of the machine's memory. */
static void group_limits_the_budget(void **state)
{
    (void)state;
    start("");
    assert_int_equal(wire_status(&h).host_limit, LIMIT_MI * MI / 4);
    struct wire *w = wire_greet(&h);
    struct shuf__result_message permute = wire_permutation(128 * MI / 4, HOST);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_NO_MEMORY, "needs 128 MiB of host memory, the limit is 100 MiB: raise");
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* The results have different sizes, because the daemon keeps only a limited number of one size. */
static void leave_idle_results(void)
{
    struct wire *w = wire_greet(&h);
    for (uint64_t i = 0; i < RESULTS; i++) {
        const uint64_t bytes = (FIRST_MI + STEP_MI * i) * MI;
        const Shuf__ResultReply *reply = wire_lease(w, bytes / 4, i, HOST);
        close(wire_take_descriptor(w));
        wire_release(w, reply->lease, reply->block);
    }
    wire_close(w);
}

static void use_memory(int channel, void *context)
{
    (void)context;
    char *memory =
        mmap(NULL, EATEN_MI * MI, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    for (uint64_t i = 0; i < EATEN_MI; i++) {
        memset(memory + i * MI, 1, MI);
        usleep(PAUSE_US);
    }
    child_send(channel, EATEN_MI);
    child_receive(channel);
}

static void daemon_frees_idle_memory_for_neighbour(void **state)
{
    char log[4096];
    (void)state;
    start("host_memory = 75%\n");
    leave_idle_results();
    assert_true(wire_status(&h).host_idle >= IDLE_MI * MI);
    memory_group_enter();
    struct child memory_user = child_start(use_memory, NULL);
    memory_group_leave();
    /* Fails if the kernel killed the child. */
    assert_int_equal(child_receive(memory_user.channel), EATEN_MI);
    const Shuf__StatusReply s = wire_status(&h);
    assert_true(s.host_used <= (LIMIT_MI - EATEN_MI) * MI);
    assert_true(s.evicted > 0);
    assert_int_equal(memory_group_kills(), 0);
    child_send(memory_user.channel, 0);
    child_join(&memory_user);
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    wire_close(w);
    shufd_await(h.log, log, sizeof log, "memory is short: gave back ");
    assert_true(harness_stop(&h));
}

static int remove_group(void **state)
{
    (void)state;
    memory_group_remove();
    return 0;
}

/* ---- A GPU. The test calls CUDA itself, and retries like PyTorch ---- */

enum {
    GPU_RESULTS = 6,
    GPU_FIRST_MI = 100, /* the first result */
    GPU_STEP_MI = 20,   /* each next result is larger by this: the daemon keeps fewer of one size */
    LEFT_MI = 256,      /* the program leaves this much memory free at first */
    MORE_MI = 384,      /* the program then allocates this much more than is free */
    RETRY_MS = 20,
};

#define CALLS(X)                                                            \
    X(cuInit, "cuInit", (unsigned))                                         \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **, int)) \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", (void *))                         \
    X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t *, size_t *))                \
    X(cuMemAlloc, "cuMemAlloc_v2", (uint64_t *, size_t))                    \
    X(cuMemFree, "cuMemFree_v2", (uint64_t))

#define X(name, symbol, arguments) static int(*name) arguments;
CALLS(X)
#undef X

static void open_gpu(void)
{
    void *context, *library = dlopen("libcuda.so.1", RTLD_NOW);
    assert_non_null(library);
#define X(name, symbol, arguments) assert_non_null(*(void **)&name = dlsym(library, symbol));
    CALLS(X)
#undef X
    assert_int_equal(cuInit(0), 0);
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(cuCtxSetCurrent(context), 0);
}

static uint64_t free_bytes(void)
{
    size_t available, total;
    assert_int_equal(cuMemGetInfo(&available, &total), 0);
    return available;
}

static void leave_idle_results_on_gpu(struct wire *w)
{
    for (uint64_t i = 0; i < GPU_RESULTS; i++) {
        const uint64_t bytes = (GPU_FIRST_MI + GPU_STEP_MI * i) * MI;
        struct shuf__result_message permute =
            wire_permutation(bytes / 4, SHUF__TRANSPORT__TRANSPORT_NONE);
        wire_send_result(w, &permute);
        wire_expect(w, SHUF_OK, "");
    }
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Returns the seconds until the allocation succeeds. */
static double allocate_by_retrying(uint64_t bytes, uint64_t *block)
{
    const double begin = seconds();
    while (cuMemAlloc(block, bytes) != 0) {
        assert_true(seconds() - begin < 10);
        usleep(RETRY_MS * 1000);
    }
    return seconds() - begin;
}

static void daemon_frees_idle_memory_of_gpu(void **state)
{
    (void)state;
    uint64_t most, rest;
    struct wire *w = wire_greet(&harness_shared);
    open_gpu();
    leave_idle_results_on_gpu(w);
    assert_true(wire_status(&harness_shared).device_idle >= (LEFT_MI + MORE_MI) * MI);
    const uint64_t most_bytes = free_bytes() - LEFT_MI * MI;
    assert_int_equal(cuMemAlloc(&most, most_bytes), 0);
    const double waited = allocate_by_retrying((LEFT_MI + MORE_MI) * MI, &rest);
    fprintf(stderr, "%.0f MB more after %.3f s\n", (double)(LEFT_MI + MORE_MI), waited);
    assert_true(waited < 1);
    WIRE_AWAIT(&harness_shared, s, s.device_idle == 0 && s.evicted > 0);
    assert_int_equal(cuMemFree(most), 0);
    assert_int_equal(cuMemFree(rest), 0);
    wire_check_alive(w);
    wire_close(w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(group_limits_the_budget),
        cmocka_unit_test(daemon_frees_idle_memory_for_neighbour),
    };
    const struct CMUnitTest gpu_tests[] = {
        cmocka_unit_test(daemon_frees_idle_memory_of_gpu),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    if (strcmp(harness_backend, "cuda") == 0)
        return cmocka_run_group_tests(gpu_tests, harness_start_shared, harness_stop_shared);
    /* A sanitizer's own memory exceeds the limit. */
    if (TEST_SANITIZED || !memory_group_make(LIMIT_MI * MI))
        return HARNESS_SKIP;
    return cmocka_run_group_tests(tests, NULL, remove_group);
}
