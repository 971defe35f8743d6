/* SPDX-License-Identifier: MIT
 *
 * A daemon in a sandbox that refuses a system call of shared memory, or that hides /proc/meminfo or
 * the control groups. It says so, also with --check, and serves copies within the configured
 * memory. A filter of system calls imitates the sandbox. A client in a sandbox names it too.
 */
#include "shuf.h"
#include "support/child.h"
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/memory_group.h"
#include "support/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1000000, FEW = 1000, LIMIT = 64 << 20 };

/* Makes the call fail with EPERM in this process and in the daemon that it starts. */
static void forbid(int call)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void hide_meminfo(void)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("proc", "/proc", "proc", 0, "subset=pid") != 0)
        exit(EXIT_SUCCESS);
    assert_int_equal(access("/proc/meminfo", F_OK), -1);
}

static void expect_warning(const char *text)
{
    static const char *const arguments[] = {"--no-config", "--backend", "cpu", "--socket",
                                            "/tmp/none",   "--check",   NULL};
    char output[2048];
    const int status = harness_run(arguments, output, sizeof output);
    if (status != 0 || !strstr(output, text))
        fail_msg("wait status 0x%x, expected \"%s\" in:\n%s", (unsigned)status, text, output);
}

static void expect_copies(shuf *handle, uint64_t n)
{
    const shuf_request p = {.permutation = {.n = n, .seed = 7}};
    const shuf_records records = {.n = n, .record = sizeof(uint32_t), .seed = 7};
    const size_t bytes = n * sizeof(uint32_t);
    uint32_t *values = malloc(3 * bytes);
    assert_non_null(values);
    for (uint32_t i = 0; i < n; i++)
        values[i] = i;
    if (shuf_copy(handle, &p, values + n, bytes, NULL) ||
        shuf_shuffle(handle, &records, values, values + 2 * n, bytes, NULL))
        fail_msg("%s", shuf_message(handle));
    assert_memory_equal(values + n, values + 2 * n, bytes);
    free(values);
}

/* Serves requests for more memory than the budget has, so each block must be free again. */
static void serve(bool copies)
{
    struct harness h;
    shuf *handle;
    wire_start(&h, "cpu", "cache_time = 0\nhost_memory = 64Mi\n");
    const Shuf__StatusReply status = wire_status(&h);
    assert_int_equal(status.host_limit, LIMIT);
    assert_int_equal(status.copies_host, copies);
    assert_int_equal(shuf_connect(&handle, h.socket), SHUF_OK);
    for (unsigned i = 0; i < 20; i++)
        expect_copies(handle, i % 2 ? N : FEW);
    shuf_close(handle);
    WIRE_AWAIT(&h, s, s.blocks == 0 && s.host_used == 0 && s.pending_free == 0);
    assert_true(harness_stop(&h));
}

struct refused {
    int call;
    const char *cause;
};

/* Log, status and refusal name the same cause. */
static void expect_cause(const char *cause)
{
    static const shuf_lease_options memfd = {.transports = SHUF_MEMFD};
    const shuf_request p = {.permutation = {.n = N, .seed = 7}};
    struct harness h;
    shuf *handle;
    shuf_lease *lease = NULL;
    expect_warning(cause);
    wire_start(&h, "cpu", "host_memory = 64Mi\n");
    struct wire *w = wire_greet(&h);
    assert_non_null(strstr(wire_ask_status(w)->lending_fault, cause));
    wire_close(w);
    assert_int_equal(shuf_connect(&handle, h.socket), SHUF_OK);
    assert_int_equal(shuf_lease_take(handle, &p, &memfd, &lease), SHUF_DENIED);
    assert_non_null(strstr(shuf_message(handle), cause));
    shuf_close(handle);
    assert_true(harness_stop(&h));
}

static void serve_without_call(int channel, void *context)
{
    const struct refused *refused = context;
    (void)channel;
    forbid(refused->call);
    expect_warning("results are copied and not lent (memfd): ");
    expect_cause(refused->cause);
    serve(true);
}

static void refused_calls(void **state)
{
    static const struct refused calls[] = {
        {SYS_memfd_create, "memfd_create: Operation not permitted; allow this call in the sandbox"},
        {SYS_ftruncate, "ftruncate: Operation not permitted; allow this call in the sandbox"},
        {SYS_fchmod, "fchmod: Operation not permitted; allow this call in the sandbox"}};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const struct child child = child_start(serve_without_call, (void *)&calls[i]);
        child_join(&child);
    }
}

static void serve_without_meminfo(int channel, void *context)
{
    (void)channel;
    (void)context;
    hide_meminfo();
    expect_warning("host memory: /proc/meminfo: No such file or directory; so shufd does not know");
    serve(false);
}

static bool mount_over(const char *path)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", path, "tmpfs", 0, NULL) == 0;
}

static void serve_without_control_groups(int channel, void *context)
{
    struct harness h;
    char log[8192], group[64];
    (void)channel;
    (void)context;
    memory_group_enter();
    assert_true(mount_over("/sys/fs/cgroup"));
    snprintf(group, sizeof group, "/shuf-test-%d cannot be read", (int)getppid());
    expect_warning(group);
    wire_start(&h, "cpu", "");
    shufd_await(h.log, log, sizeof log, group);
    assert_true(harness_stop(&h));
    wire_start(&h, "cpu", "host_memory = 64Mi\n");
    shufd_await(h.log, log, sizeof log, "listening on");
    assert_null(strstr(log, "cannot be read"));
    assert_true(harness_stop(&h));
}

/* The socket's mode has no part in it. */
static void connect_without_calls(int channel, void *context)
{
    static const int calls[] = {SYS_connect, SYS_setsockopt, SYS_socket};
    struct harness h;
    shuf *handle;
    (void)channel;
    (void)context;
    wire_start(&h, "cpu", "");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        forbid(calls[i]);
        assert_int_equal(shuf_connect(&handle, h.socket), SHUF_DENIED);
        assert_non_null(
            strstr(shuf_message(handle), ": Operation not permitted: a seccomp filter"));
        shuf_close(handle);
    }
    assert_true(harness_stop(&h));
}

static void refused_calls_of_a_client(void **state)
{
    (void)state;
    const struct child child = child_start(connect_without_calls, NULL);
    child_join(&child);
}

/* Calls that follow a link at the path of the socket, which another user may have put there. */
static void make_socket_without_paths(int channel, void *context)
{
    static const int calls[] = {SYS_chmod, SYS_fchmodat, SYS_chown, SYS_lchown};
    struct harness h;
    struct stat status;
    (void)channel;
    (void)context;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        forbid(calls[i]);
    wire_start(&h, "cpu", "socket_mode = 0646\nsocket_group = 4711\n");
    assert_int_equal(stat(h.socket, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0646);
    assert_int_equal(status.st_gid, 4711);
    assert_true(harness_stop(&h));
}

static void no_calls_by_path(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    const struct child child = child_start(make_socket_without_paths, NULL);
    child_join(&child);
}

static void hidden_meminfo(void **state)
{
    (void)state;
    const struct child child = child_start(serve_without_meminfo, NULL);
    child_join(&child);
}

static void hidden_control_groups(void **state)
{
    (void)state;
    if (geteuid() != 0 || !memory_group_make(UINT64_C(1) << 30)) {
        print_message("no control group of memory can be made here\n");
        skip();
    }
    const struct child child = child_start(serve_without_control_groups, NULL);
    child_join(&child);
    memory_group_remove();
}

/* ---- No file leases: the daemon warns, sends copies, and leaves no memory charged ---- */

enum { LEASES_N = 1000000 };

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
    const shuf_request p = {.permutation = {.n = LEASES_N, .seed = 7}};
    shuf_lease *lease = NULL;
    shuf *handle = client_open_at(&h);
    (void)state;
    assert_int_equal(shuf_lease_take(handle, &p, &memfd, &lease), SHUF_DENIED);
    assert_non_null(strstr(shuf_message(handle), "too: the kernel grants no file leases; sysctl"));
    shuf_close(handle);
}

static void inline_results_and_shuffles_work(void **state)
{
    const shuf_request p = {.permutation = {.n = LEASES_N, .seed = 7}};
    const shuf_records records = {.n = LEASES_N, .record = sizeof(uint32_t), .seed = 7};
    uint32_t *values = malloc(3 * LEASES_N * sizeof *values);
    shuf *handle = client_open_at(&h);
    (void)state;
    assert_non_null(values);
    for (uint32_t i = 0; i < LEASES_N; i++)
        values[i] = i;
    assert_int_equal(shuf_copy(handle, &p, values + LEASES_N, LEASES_N * sizeof *values, NULL),
                     SHUF_OK);
    assert_int_equal(shuf_shuffle(handle, &records, values, values + 2 * LEASES_N,
                                  LEASES_N * sizeof *values, NULL),
                     SHUF_OK);
    assert_memory_equal(values + LEASES_N, values + 2 * LEASES_N, LEASES_N * sizeof *values);
    shuf_close(handle);
    free(values);
}

/* Computes more results than the budget has room for. This succeeds only if the memory of each is
 * free again. */
static void nothing_stays_charged(void **state)
{
    (void)state;
    uint32_t *values = malloc(LEASES_N * sizeof *values);
    shuf *handle = client_open_at(&h);
    assert_non_null(values);
    for (uint64_t seed = 0; seed < 50; seed++) {
        const shuf_request p = {.permutation = {.n = LEASES_N, .seed = seed}};
        assert_int_equal(shuf_copy(handle, &p, values, LEASES_N * sizeof *values, NULL), SHUF_OK);
    }
    shuf_close(handle);
    free(values);
    WIRE_AWAIT(&h, s, s.blocks == 0 && s.host_used == 0 && s.pending_free == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_calls),    cmocka_unit_test(refused_calls_of_a_client),
        cmocka_unit_test(hidden_meminfo),   cmocka_unit_test(hidden_control_groups),
        cmocka_unit_test(no_calls_by_path),
    };
    const struct CMUnitTest lease_tests[] = {
        cmocka_unit_test(missing_file_leases_are_logged),
        cmocka_unit_test(memfd_leases_are_refused),
        cmocka_unit_test(inline_results_and_shuffles_work),
        cmocka_unit_test(nothing_stays_charged),
    };
    int failed = 0;
    harness_backend = "cpu";
    if (!TEST_THREAD_SANITIZED) /* its OpenMP run time needs shared memory itself */
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + cmocka_run_group_tests(lease_tests, start, stop); /* forbids a call for good */
}
