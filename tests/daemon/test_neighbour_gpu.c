/* SPDX-License-Identifier: MIT
 *
 * A daemon has idle results on a GPU. A program allocates nearly all memory of the GPU, and retries
 * when an allocation fails, like PyTorch. The program gets the memory of the idle blocks within a
 * second. The test calls CUDA itself.
 */
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MI (UINT64_C(1) << 20)

enum {
    RESULTS = 6,
    FIRST_MI = 100, /* the first result */
    STEP_MI = 20,   /* each next result is larger by this: the daemon keeps fewer of one size */
    LEFT_MI = 256,  /* the program leaves this much memory free at first */
    MORE_MI = 384,  /* the program then allocates this much more than is free */
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

static void leave_idle_results(struct wire *w)
{
    for (uint64_t i = 0; i < RESULTS; i++) {
        const uint64_t bytes = (FIRST_MI + STEP_MI * i) * MI;
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

static void daemon_frees_idle_memory_for_neighbour(void **state)
{
    (void)state;
    uint64_t most, rest;
    struct harness *h = &harness_shared;
    struct wire *w = wire_greet(h);
    open_gpu();
    leave_idle_results(w);
    assert_true(wire_status(h).device_idle >= (LEFT_MI + MORE_MI) * MI);
    const uint64_t most_bytes = free_bytes() - LEFT_MI * MI;
    assert_int_equal(cuMemAlloc(&most, most_bytes), 0);
    const double waited = allocate_by_retrying((LEFT_MI + MORE_MI) * MI, &rest);
    fprintf(stderr, "%.0f MB more after %.3f s\n", (double)(LEFT_MI + MORE_MI), waited);
    assert_true(waited < 1);
    WIRE_AWAIT(h, s, s.device_idle == 0 && s.evicted > 0);
    assert_int_equal(cuMemFree(most), 0);
    assert_int_equal(cuMemFree(rest), 0);
    wire_check_alive(w);
    wire_close(w);
}

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(daemon_frees_idle_memory_for_neighbour)};
    return cmocka_run_group_tests(tests, harness_start_shared, harness_stop_shared);
}
