/* SPDX-License-Identifier: MIT
 *
 * Attacks by a malicious process that has the descriptor of a cuda-fd lease: it tries to read and
 * to write the memory, as the daemon's user and as another user. The test shows that the section
 * "What protects what" of docs/protocol.md is true for the driver of this machine. It calls CUDA
 * itself, like such a process.
 */
#include "support/wire.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 1000, NOBODY = 65534, READ = 1, READ_AND_WRITE = 3 };

/* The result of an attempt: the first step that failed, or WRITTEN. */
enum outcome { NOT_IMPORTED, NOT_MAPPED, NOT_READ, NOT_WRITTEN, WRITTEN, BROKEN };

static const char *backend;

/* ---- the malicious process ---- */

struct access {
    int location_type, location_id, flags;
};

#define CALLS(X)                                                                        \
    X(cuInit, "cuInit", (unsigned))                                                     \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **, int))             \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", (void *))                                     \
    X(cuImport, "cuMemImportFromShareableHandle", (uint64_t *, void *, int))            \
    X(cuReserve, "cuMemAddressReserve",                                                 \
      (uint64_t *, size_t, size_t, uint64_t, unsigned long long))                       \
    X(cuMap, "cuMemMap", (uint64_t, size_t, size_t, uint64_t, unsigned long long))      \
    X(cuSetAccess, "cuMemSetAccess", (uint64_t, size_t, const struct access *, size_t)) \
    X(cuRead, "cuMemcpyDtoH_v2", (void *, uint64_t, size_t))                            \
    X(cuFill, "cuMemsetD8_v2", (uint64_t, unsigned char, size_t))                       \
    X(cuSynchronize, "cuCtxSynchronize", (void))

#define X(name, symbol, arguments) static int(*name) arguments;
CALLS(X)
#undef X

static bool load_libcuda(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
#define X(name, symbol, arguments)                             \
    *(void **)&name = library ? dlsym(library, symbol) : NULL; \
    if (!name)                                                 \
        return false;
    CALLS(X)
#undef X
    return true;
}

static enum outcome try_access(int fd, uint64_t bytes, int flags)
{
    void *context;
    uint64_t allocation, address, first = 0;
    struct access access = {.location_type = 1, .flags = flags};
    if (!load_libcuda() || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
        cuCtxSetCurrent(context))
        return BROKEN;
    if (cuImport(&allocation, (void *)(uintptr_t)fd, 1))
        return NOT_IMPORTED;
    if (cuReserve(&address, bytes, 0, 0, 0) || cuMap(address, bytes, 0, allocation, 0))
        return BROKEN;
    if (cuSetAccess(address, bytes, &access, 1))
        return NOT_MAPPED;
    if (cuRead(&first, address, sizeof first) || first == 0)
        return NOT_READ;
    return cuFill(address, 0xff, bytes) || cuSynchronize() ? NOT_WRITTEN : WRITTEN;
}

static enum outcome try_access_as(uid_t uid, int fd, uint64_t bytes, int flags)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(setgid(uid) || setuid(uid) ? BROKEN : (int)try_access(fd, bytes, flags));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return (enum outcome)WEXITSTATUS(status);
}

/* ---- the results ---- */

static uint32_t first_value(struct wire *w)
{
    uint32_t values[N];
    struct shuf__result_message permute = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_INLINE);
    permute.permutation.seed = 1;
    wire_send_result(w, &permute);
    assert_true(wire_expect(w, SHUF_OK, "")->result->shared); /* the same block as the lease */
    wire_read_payload(w, values, sizeof values);
    return values[0];
}

static void descriptor_allows_only_its_access(void **state)
{
    (void)state;
    static const struct {
        uid_t uid;
        int flags;
        enum outcome outcome;
    } rows[] = {
        {0, READ, NOT_WRITTEN},
        {NOBODY, READ, NOT_WRITTEN},
        {NOBODY, READ_AND_WRITE, WRITTEN}, /* nothing prevents this write; it is the last row,
                                            * because it destroys the values */
    };
    struct harness h;
    if (geteuid() != 0)
        skip();
    assert_true(harness_start(&h, backend, NULL));
    struct wire *w = wire_greet(&h), *other = wire_greet(&h);
    uint64_t bytes = wire_lease(w, N, 1, SHUF__TRANSPORT__TRANSPORT_CUDA_FD)->block_bytes;
    uint32_t first = first_value(other);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum outcome outcome = try_access_as(rows[i].uid, w->descriptor, bytes, rows[i].flags);
        uint32_t now = first_value(other);
        fprintf(stderr, "uid %d, access %d: outcome %d, the daemon's first value %u, was %u\n",
                (int)rows[i].uid, rows[i].flags, (int)outcome, now, first);
        assert_int_equal(outcome, rows[i].outcome);
        assert_int_equal(now, outcome == WRITTEN ? UINT32_MAX : first);
    }
    wire_close(w);
    wire_close(other);
    assert_true(harness_stop(&h));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(descriptor_allows_only_its_access)};
    backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
