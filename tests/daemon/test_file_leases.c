/* SPDX-License-Identifier: MIT
 *
 * A daemon on a kernel without file leases: it warns, sends copies instead of lending memory, and
 * leaves no memory charged. A filter of system calls imitates such a kernel.
 */
#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { N = 1000000 };

static struct harness h;

/* Makes fcntl(fd, F_SETLEASE, ...) fail with EINVAL in this process and in the daemon that it
 * starts. */
static void forbid_file_leases(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 offsetof(struct seccomp_data, args[1])), /* little endian */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETLEASE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    assert_int_equal(fcntl(STDERR_FILENO, F_SETLEASE, F_UNLCK), -1);
    assert_int_equal(errno, EINVAL);
}

static int start(void **state)
{
    (void)state;
    forbid_file_leases();
    wire_start(&h, harness_backend, "cache_time = 0\nhost_memory = 64Mi\n");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return harness_stop(&h) ? 0 : -1;
}

static shuf *open_handle(void)
{
    shuf *handle;
    assert_int_equal(shuf_connect(&handle, h.socket), SHUF_OK);
    return handle;
}

static bool log_has(const char *text)
{
    char log[4096];
    FILE *file = fopen(h.log, "re");
    assert_non_null(file);
    log[fread(log, 1, sizeof log - 1, file)] = '\0';
    fclose(file);
    return strstr(log, text) != NULL;
}

/* Waits for the warning, because another thread of the daemon writes the log. */
static void missing_file_leases_are_logged(void **state)
{
    static const char text[] = "not lent (memfd): the kernel grants no file leases; sysctl";
    (void)state;
    for (unsigned waited = 0; !log_has(text);)
        wire_wait(&waited, text);
    assert_true(wire_status(&h).copies_host);
}

static void memfd_leases_are_refused(void **state)
{
    static const shuf_lease_options memfd = {.transports = SHUF_MEMFD};
    const shuf_request p = {.permutation = {.n = N, .seed = 7}};
    shuf_lease *lease = NULL;
    shuf *handle = open_handle();
    (void)state;
    assert_int_equal(shuf_lease_take(handle, &p, &memfd, &lease), SHUF_DENIED);
    assert_non_null(strstr(shuf_message(handle), "too: the kernel grants no file leases; sysctl"));
    shuf_close(handle);
}

static void inline_results_and_shuffles_work(void **state)
{
    const shuf_request p = {.permutation = {.n = N, .seed = 7}};
    const shuf_records records = {.n = N, .record = sizeof(uint32_t), .seed = 7};
    uint32_t *values = malloc(3 * N * sizeof *values);
    shuf *handle = open_handle();
    (void)state;
    assert_non_null(values);
    for (uint32_t i = 0; i < N; i++)
        values[i] = i;
    assert_int_equal(shuf_copy(handle, &p, values + N, N * sizeof *values, NULL), SHUF_OK);
    assert_int_equal(
        shuf_shuffle(handle, &records, values, values + 2 * N, N * sizeof *values, NULL), SHUF_OK);
    assert_memory_equal(values + N, values + 2 * N, N * sizeof *values);
    shuf_close(handle);
    free(values);
}

/* Computes more results than the budget has room for. This succeeds only if the memory of each is
 * free again. */
static void nothing_stays_charged(void **state)
{
    (void)state;
    uint32_t *values = malloc(N * sizeof *values);
    shuf *handle = open_handle();
    assert_non_null(values);
    for (uint64_t seed = 0; seed < 50; seed++) {
        const shuf_request p = {.permutation = {.n = N, .seed = seed}};
        assert_int_equal(shuf_copy(handle, &p, values, N * sizeof *values, NULL), SHUF_OK);
    }
    shuf_close(handle);
    free(values);
    WIRE_AWAIT(&h, s, s.blocks == 0 && s.host_used == 0 && s.pending_free == 0);
}

int main(void)
{
    harness_backend = "cpu";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_file_leases_are_logged),
        cmocka_unit_test(memfd_leases_are_refused),
        cmocka_unit_test(inline_results_and_shuffles_work),
        cmocka_unit_test(nothing_stays_charged),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
