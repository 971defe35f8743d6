/* SPDX-License-Identifier: MIT
 *
 * How shufd starts and ends: whose place it takes and whose not, what its
 * configuration may say, and that it answers what it has accepted before it goes.
 */
#include "socket.h"
#include "wire.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include <cmocka.h>

static const char *backend;

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static size_t read_file(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    size_t length = fread(text, 1, size - 1, file);
    text[length] = '\0';
    fclose(file);
    return length;
}

static void start(struct harness *h, const char *config)
{
    static char path[HARNESS_PATH + 8];
    static const char *const extra[] = {"--config", path, NULL};
    assert_true(harness_prepare(h, backend, extra));
    snprintf(path, sizeof path, "%s/conf", h->directory);
    write_file(path, config);
    assert_true(harness_restart(h));
}

static void await_text(const char *path, const char *text)
{
    char content[8192] = "";
    for (int waited = 0; !strstr(content, text); waited += 5) {
        assert_true(waited < HARNESS_WAIT_MS);
        usleep(5000);
        read_file(path, content, sizeof content);
    }
}

/* Runs shufd to its end, which must come with this exit code and text. */
static void expect_exit(const char *const *arguments, int code, const char *text)
{
    char output[4096];
    int status = harness_run(arguments, output, sizeof output);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code || !strstr(output, text))
        fail_msg("expected exit %d with \"%s\", got wait status 0x%x with \"%s\"", code, text,
                 (unsigned)status, output);
}

static void expect_refused_start(const char *socket, const char *text)
{
    const char *arguments[] = {"--socket", socket, "--backend", backend, NULL};
    expect_exit(arguments, EX_CANTCREAT, text);
}

static void expect_exit_code(int status, int code)
{
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
}

/* ---- the end ---- */

static void read_whole(struct wire *w, uint64_t bytes, uint64_t n)
{
    uint8_t *values = malloc(bytes), *seen = calloc(n / 8 + 1, 1);
    assert_non_null(values);
    assert_non_null(seen);
    wire_read_bulk(w, values, bytes);
    const uint32_t *numbers = (const uint32_t *)(const void *)values;
    for (uint64_t i = 0; i < bytes / 4; i++) {
        if (numbers[i] >= n || (seen[numbers[i] / 8] >> numbers[i] % 8 & 1))
            fail_msg("value %u is out of range or came twice", numbers[i]);
        seen[numbers[i] / 8] |= (uint8_t)(1 << numbers[i] % 8);
    }
    free(seen);
    free(values);
}

static void test_drain(void **state)
{
    (void)state;
    enum { N = 5 << 20 }; /* 20 MiB, far more than socket buffers hold */
    struct harness h;
    char byte;
    Shuf__Permute permute = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_INLINE);
    start(&h, "");
    struct wire *half_read = wire_greet(&h), *in_flight = wire_greet(&h), *idle = wire_greet(&h);
    wire_send_permute(half_read, &permute);
    wire_expect(half_read, SHUF_OK, "");
    wire_send_permute(in_flight, &permute);
    while (recv(in_flight->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           wire_status(&h).queued == 0)
        continue; /* until it is accepted, or even answered */
    kill(h.pid, SIGTERM);
    wire_await_end_of_listening(&h);
    wire_expect_end(idle);
    read_whole(half_read, 4 * (uint64_t)N, N);
    wire_expect_end(half_read);
    wire_expect(in_flight, SHUF_OK, "");
    read_whole(in_flight, 4 * (uint64_t)N, N);
    wire_expect_end(in_flight);
    expect_exit_code(harness_kill(&h, 0), EX_OK);
    wire_close(half_read);
    wire_close(in_flight);
    wire_close(idle);
    assert_true(access(h.socket, F_OK) != 0);
    assert_true(harness_stop(&h));
}

static void test_idle_drain_is_quick(void **state)
{
    (void)state;
    struct harness h;
    start(&h, "drain_timeout_ms = 3600000\n");
    struct wire *w = wire_greet(&h);
    expect_exit_code(harness_kill(&h, SIGINT), EX_OK);
    wire_expect_end(w);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void test_second_signal(void **state)
{
    (void)state;
    struct harness h;
    Shuf__Slice slice;
    Shuf__Permute endless = wire_endless(&slice);
    start(&h, "drain_timeout_ms = 3600000\n");
    struct wire *w = wire_greet(&h);
    wire_send_permute(w, &endless);
    wire_await_queued(&h, 1);
    kill(h.pid, SIGTERM);
    wire_await_end_of_listening(&h);
    expect_exit_code(harness_kill(&h, SIGTERM), EX_TEMPFAIL);
    wire_expect_end(w);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void test_drain_timeout(void **state)
{
    (void)state;
    struct harness h;
    char log[8192];
    Shuf__Slice slice;
    Shuf__Permute endless = wire_endless(&slice);
    start(&h, "drain_timeout_ms = 100\n");
    struct wire *w = wire_greet(&h);
    wire_send_permute(w, &endless);
    wire_await_queued(&h, 1);
    expect_exit_code(harness_kill(&h, SIGTERM), EX_TEMPFAIL);
    read_file(h.log, log, sizeof log);
    assert_non_null(strstr(log,
                           "\nerror: ended before its time: drain_timeout_ms is over, 1 client "
                           "cut off\n"));
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void test_hangup(void **state)
{
    (void)state;
    struct harness h;
    start(&h, "");
    expect_exit_code(harness_kill(&h, SIGHUP), EX_OK);
    signal(SIGHUP, SIG_IGN); /* as nohup has it, which shufd inherits */
    assert_true(harness_restart(&h));
    signal(SIGHUP, SIG_DFL);
    kill(h.pid, SIGHUP);
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* ---- the socket ---- */

static void test_stale_socket(void **state)
{
    (void)state;
    struct harness h;
    start(&h, "");
    assert_int_equal(WTERMSIG(harness_kill(&h, SIGKILL)), SIGKILL);
    assert_int_equal(access(h.socket, F_OK), 0);
    assert_true(harness_restart(&h));
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void test_live_daemon(void **state)
{
    (void)state;
    struct harness h;
    char text[64];
    start(&h, "");
    snprintf(text, sizeof text, "in use by shufd, pid %d, uid %d", (int)h.pid, (int)getuid());
    expect_refused_start(h.socket, text);
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* A listener of another kind, which holds no lock. */
static void test_live_stranger(void **state)
{
    (void)state;
    struct harness h;
    char text[64];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_true(harness_prepare(&h, backend, NULL));
    snprintf(address.sun_path, sizeof address.sun_path, "%s", h.socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 5), 0);
    snprintf(text, sizeof text, "pid %d", (int)getpid());
    expect_refused_start(h.socket, text);
    assert_int_equal(access(h.socket, F_OK), 0);
    close(fd);
    assert_true(harness_restart(&h));
    assert_true(harness_stop(&h));
}

static void test_no_socket_there(void **state)
{
    (void)state;
    struct harness h;
    char text[64];
    assert_true(harness_prepare(&h, backend, NULL));
    write_file(h.socket, "precious");
    expect_refused_start(h.socket, "something that is no socket");
    assert_int_equal(read_file(h.socket, text, sizeof text), 8);
    assert_string_equal(text, "precious");
    unlink(h.socket);

    char missing[HARNESS_PATH + 16];
    snprintf(missing, sizeof missing, "%s/none/s", h.directory);
    char directory[HARNESS_PATH + 32];
    snprintf(directory, sizeof directory, "directory %s/none: %s", h.directory, strerror(ENOENT));
    expect_refused_start(missing, directory);
    char endless[200];
    memset(endless, 'a', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    const char *arguments[] = {"--socket", endless, NULL};
    expect_exit(arguments, EX_USAGE, "socket aaa");
    assert_true(harness_stop(&h));
}

static void test_mode(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        mode_t mode;
    } rows[] = {{"", 0660}, {"socket_mode = 0600\n", 0600}, {"socket_mode = 666\n", 0666}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct harness h;
        struct stat status;
        start(&h, rows[i].config);
        assert_int_equal(stat(h.socket, &status), 0);
        assert_true(S_ISSOCK(status.st_mode));
        assert_int_equal(status.st_mode & 0777, rows[i].mode);
        assert_true(harness_stop(&h));
    }
}

static void test_own_socket_only(void **state)
{
    (void)state;
    struct harness h;
    char text[16];
    start(&h, "");
    unlink(h.socket);
    write_file(h.socket, "new");
    assert_int_equal(harness_kill(&h, SIGTERM), 0);
    assert_int_equal(read_file(h.socket, text, sizeof text), 3); /* not ours to delete */
    assert_true(harness_stop(&h));
}

/* ---- the lock beside it ---- */

static void lock_path(const struct harness *h, char *path, size_t size)
{
    snprintf(path, size, "%s.lock", h->socket);
}

static void test_lock_goes_too(void **state)
{
    (void)state;
    struct harness h;
    char path[HARNESS_PATH + 8];
    start(&h, "");
    lock_path(&h, path, sizeof path);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(harness_kill(&h, SIGTERM), 0);
    assert_int_not_equal(access(path, F_OK), 0);

    write_file(h.socket, "precious");
    expect_refused_start(h.socket, "something that is no socket");
    assert_int_not_equal(access(path, F_OK), 0);
    assert_true(harness_stop(&h));
}

/* Who finds the lock held and nobody listening is told why. */
static void test_lock_without_socket(void **state)
{
    (void)state;
    struct harness h;
    char removed[96], ending[96], lock[HARNESS_PATH + 8];
    Shuf__Slice slice;
    Shuf__Permute endless = wire_endless(&slice);
    start(&h, "drain_timeout_ms = 3600000\n");
    struct wire *w = wire_greet(&h);
    snprintf(removed, sizeof removed, "pid %d, uid %d, runs without its socket", (int)h.pid,
             (int)getuid());
    snprintf(ending, sizeof ending, "pid %d, uid %d, is ending (draining); try again", (int)h.pid,
             (int)getuid());
    lock_path(&h, lock, sizeof lock);
    wire_send_permute(w, &endless);
    wire_await_queued(&h, 1);
    unlink(h.socket);
    expect_refused_start(h.socket, removed);
    kill(h.pid, SIGTERM);
    await_text(lock, "ending");
    expect_refused_start(h.socket, ending);
    expect_exit_code(harness_kill(&h, SIGTERM), EX_TEMPFAIL);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* In a child that gives root up: whether shufd then says whose the lock is. */
static _Noreturn void meet_foreign_lock(const char *socket)
{
    enum { SOMEBODY = 12345, NOT_EXECUTED = 127 };
    const char *arguments[] = {"--socket", socket, "--backend", "cpu", NULL};
    char output[1024];
    if (geteuid() != 0 || setgid(SOMEBODY) != 0 || setuid(SOMEBODY) != 0)
        _exit(HARNESS_SKIP);
    int status = harness_run(arguments, output, sizeof output);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_EXECUTED)
        _exit(HARNESS_SKIP); /* it stands where only root may go */
    fprintf(stderr, "%s", output);
    _exit(WIFEXITED(status) && WEXITSTATUS(status) == EX_CANTCREAT &&
                  strstr(output, "a file of uid 0; remove it if no shufd runs there")
              ? EX_OK
              : EX_SOFTWARE);
}

static int wait_for_child(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void expect_good_or_skip(int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == HARNESS_SKIP)
        skip(); /* not root, or in a container that forbids it */
    expect_exit_code(status, EX_OK);
}

static void test_foreign_lock(void **state)
{
    (void)state;
    struct harness h;
    char path[HARNESS_PATH + 8];
    assert_true(harness_prepare(&h, backend, NULL));
    lock_path(&h, path, sizeof path);
    write_file(path, "1 serving\n");
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(chmod(h.directory, 0777), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        meet_foreign_lock(h.socket);
    int status = wait_for_child(pid);
    assert_true(harness_restart(&h)); /* who may open it finds that nobody holds it */
    assert_true(harness_stop(&h));
    expect_good_or_skip(status);
}

/* In a child with a /run of its own, where there is no /run/shufd. */
static _Noreturn void serve_in_own_run(void)
{
    struct stat status;
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "/run", "tmpfs", 0, NULL) != 0)
        _exit(HARNESS_SKIP);
    struct harness h = {.backend = backend, .socket = SHUF__SYSTEM_SOCKET, .log = "/run/log"};
    bool good = harness_restart(&h) && stat("/run/shufd", &status) == 0 &&
                (status.st_mode & 0777) == 0755 && harness_kill(&h, SIGTERM) == 0;
    _exit(good ? EX_OK : EX_SOFTWARE);
}

static void test_default_directory(void **state)
{
    (void)state;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        serve_in_own_run();
    expect_good_or_skip(wait_for_child(pid));
}

/* ---- the configuration ---- */

static void test_config_errors(void **state)
{
    (void)state;
    static const struct {
        const char *config, *text;
    } rows[] = {
        {"queue = 8\nsokcet = /tmp/s\n", "conf:2: sokcet: no such key"},
        {"queue = 0\n", "conf:1: queue 0: expected 1 to 1000000"},
        {"\n\nqueue = many\n", "conf:3: queue many: expected a whole number"},
        {"queue = -1\n", "conf:1: queue -1: is negative"},
        {"queue = 1.5\n", "conf:1: queue 1.5: is not whole"},
        {"host_memory = 1e30\n", "conf:1: host_memory 1e30: is too large"},
        {"queue = 1\nclients = 2\nqueue = 3\n", "conf:3: queue 3: given in line 1 already"},
        {"socket_mode = 0888\n", "conf:1: socket_mode 0888: expected octal permissions"},
        {"socket_mode =\n", "conf:1: socket_mode '': expected octal permissions"},
        {"log_level = loud\n", "conf:1: log_level loud: expected error, warning, info or debug"},
        {"backend =\n", "conf:1: backend '': 0 bytes, expected 1 to 107"},
        {"queue = 1\nnonsense\n", "conf:2: expected a line KEY = VALUE"},
        {"[daemon]\nqueue = 1\n", "conf:2: [daemon]: expected no sections"},
    };
    struct harness h;
    char path[HARNESS_PATH + 8];
    const char *arguments[] = {"--config", path, "--print-config", NULL};
    assert_true(harness_prepare(&h, backend, NULL));
    snprintf(path, sizeof path, "%s/conf", h.directory);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_file(path, rows[i].config);
        expect_exit(arguments, EX_CONFIG, rows[i].text);
    }
    unlink(path);
    expect_exit(arguments, EX_CONFIG, strerror(ENOENT));
    assert_true(harness_stop(&h));
}

static void test_shipped_config(void **state)
{
    (void)state;
    static char printed[16384], shipped[16384], again[16384];
    const char *defaults[] = {"--print-config", NULL};
    const char *of_file[] = {"--config", SHUFD_CONF, "--print-config", NULL};
    assert_int_equal(harness_run(defaults, printed, sizeof printed), 0);
    read_file(SHUFD_CONF, shipped, sizeof shipped);
    assert_string_equal(printed, shipped);
    assert_int_equal(harness_run(of_file, again, sizeof again), 0);
    assert_string_equal(again, shipped);
}

static void test_print_config_in_force(void **state)
{
    (void)state;
    struct harness h;
    char path[HARNESS_PATH + 8];
    const char *arguments[] = {"--config", path, "--socket", "/x/y", "--print-config", NULL};
    assert_true(harness_prepare(&h, backend, NULL));
    snprintf(path, sizeof path, "%s/conf", h.directory);
    write_file(path, "device_memory = 8Gi\nsocket = /a/b\nsocket_mode = 600\n");
    expect_exit(arguments, EX_OK, "\ndevice_memory = 8589934592\n");
    expect_exit(arguments, EX_OK, "\nsocket = /x/y\n");
    expect_exit(arguments, EX_OK, "\nsocket_mode = 0600\n");
    assert_true(harness_stop(&h));
}

static void test_command_line(void **state)
{
    (void)state;
    const char *version[] = {"--version", NULL};
    const char *help[] = {"--help", NULL};
    const char *unknown[] = {"--nonsense", NULL};
    const char *extra[] = {"argument", NULL};
    const char *no_backend[] = {"--backend", "abacus", "--socket", "/tmp/none", "--check", NULL};
    const char *check[] = {"--backend", backend, "--socket", "/tmp/none", "--check", NULL};
    expect_exit(version, EX_OK, "shufd ");
    expect_exit(help, EX_OK, "--print-config");
    expect_exit(unknown, EX_USAGE, "nonsense");
    expect_exit(extra, EX_USAGE, "argument: expected no such argument");
    expect_exit(no_backend, EX_USAGE, "backend abacus: expected auto, cpu or cuda");
    expect_exit(check, EX_OK, backend);
}

/* With and without --check a bad value ends it the same way. */
static void expect_bad_config(const char *path, const char *socket, int code, const char *text)
{
    const char *check[] = {"--config", path, "--socket", socket, "--check", NULL};
    const char *start[] = {"--config", path, "--socket", socket, NULL};
    expect_exit(check, code, text);
    expect_exit(start, code, text);
}

static void test_check(void **state)
{
    (void)state;
    struct harness h;
    char path[HARNESS_PATH + 8], missing[HARNESS_PATH + 16];
    assert_true(harness_prepare(&h, backend, NULL));
    snprintf(path, sizeof path, "%s/conf", h.directory);
    snprintf(missing, sizeof missing, "%s/none/s", h.directory);
    write_file(path, "socket_group = no-such-group\n");
    expect_bad_config(path, h.socket, EX_CONFIG, "socket_group no-such-group: no such group");
    write_file(path, "backend = cpu:abacus\n");
    expect_bad_config(path, h.socket, EX_CONFIG, "backend cpu:abacus: expected");
    write_file(path, "backend = cpu\n");
    expect_bad_config(path, missing, EX_CANTCREAT, "/none: ");
    write_file(h.socket, "precious");
    expect_bad_config(path, h.socket, EX_CANTCREAT, "something that is no socket");
    assert_true(harness_stop(&h));
}

/* A pipe may never come, and a device may never end. */
static void test_config_is_a_file(void **state)
{
    (void)state;
    struct harness h;
    char pipe[HARNESS_PATH + 8];
    const char *of_pipe[] = {"--config", pipe, "--print-config", NULL};
    const char *of_device[] = {"--config", "/dev/zero", "--print-config", NULL};
    const char *of_directory[] = {"--config", "/", "--print-config", NULL};
    assert_true(harness_prepare(&h, backend, NULL));
    snprintf(pipe, sizeof pipe, "%s/pipe", h.directory);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    expect_exit(of_pipe, EX_CONFIG, "pipe: not a regular file");
    expect_exit(of_device, EX_CONFIG, "/dev/zero: not a regular file");
    expect_exit(of_directory, EX_CONFIG, "/: not a regular file");
    assert_true(harness_stop(&h));
}

static void test_full_output(void **state)
{
    (void)state;
    static const char *const commands[] = {
        SHUFD_PATH " --print-config >/dev/full",
        SHUFD_PATH " --backend cpu --socket /tmp/none --check >/dev/full",
    };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        expect_exit_code(system(commands[i]), EX_IOERR);
}

static void test_memory_limit(void **state)
{
    (void)state;
    struct harness h;
    enum { MI = 1 << 20 };
    start(&h, "host_memory = 16Mi\ndevice_memory = 16Mi\n");
    struct wire *w = wire_greet(&h);
    Shuf__Permute permute = wire_permutation(5 * MI, SHUF__TRANSPORT__TRANSPORT_INLINE);
    wire_send_permute(w, &permute);
    wire_expect(w, SHUF_NO_MEMORY,
                "block of 20971520 bytes: expected at most 16777216, all that results "
                "may hold (");
    wire_check_alive(w); /* which leaves a block of 2 MiB behind */
    assert_int_equal(wire_status(&h).memory_limit, 16 * MI);

    /* More than half of it, twice: the second fits when the first is read. */
    struct wire *other = wire_greet(&h);
    permute.n = 10 * MI / 4;
    wire_send_permute(w, &permute);
    uint64_t bytes = wire_expect(w, SHUF_OK, "")->bulk_bytes;
    permute.seed++;
    wire_send_permute(other, &permute);
    wire_expect(other, SHUF_BUSY, "block of 10485760 bytes: 12582912 of 16777216 are in use by ");
    read_whole(w, bytes, permute.n);
    wire_await_memory_free(&h);
    wire_send_permute(other, &permute);
    wire_expect(other, SHUF_OK, "");
    assert_int_equal(wire_status(&h).memory_used, 12 * MI); /* in its block */
    wire_close(other);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void send_gauss(struct wire *w)
{
    Shuf__Stream stream = SHUF__STREAM__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    stream.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS;
    stream.seed = 7;
    stream.stream = 3;
    stream.offset = 5;
    stream.count = 10;
    stream.mean = -0.5;
    stream.std = 2;
    stream.dtype = SHUF__DTYPE__DTYPE_F32;
    request.body_case = SHUF__REQUEST__BODY_STREAM;
    request.stream = &stream;
    wire_send(w, &request);
}

static void test_debug_log(void **state)
{
    (void)state;
    struct harness h;
    char log[8192];
    Shuf__Permute permute = wire_permutation(10, SHUF__TRANSPORT__TRANSPORT_INLINE);
    start(&h, "log_level = debug\n");
    struct wire *w = wire_greet(&h);
    wire_send_permute(w, &permute);
    read_whole(w, wire_expect(w, SHUF_OK, "")->bulk_bytes, permute.n);
    read_file(h.log, log, sizeof log);
    assert_non_null(strstr(log, ": request 2: permute n 10, primefold, seed 7, epoch 0, 1 x 10 "
                                "values, 40 bytes, inline\n"));
    assert_non_null(strstr(log, ": request 2: n 10, primefold, 40 bytes, "));
    send_gauss(w);
    wire_expect(w, SHUF_OK, "");
    read_file(h.log, log, sizeof log);
    assert_non_null(strstr(log, ": request 3: gauss, f32, stream 3, seed 7, 10 values from 5, mean "
                                "-0.5, std 2, 40 bytes, none\n"));
    assert_non_null(strstr(log, ": request 3: gauss, f32, stream 3, 40 bytes, "));
    wire_close(w);
    assert_true(harness_stop(&h));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_idle_drain_is_quick),
        cmocka_unit_test(test_second_signal),
        cmocka_unit_test(test_drain_timeout),
        cmocka_unit_test(test_hangup),
        cmocka_unit_test(test_stale_socket),
        cmocka_unit_test(test_live_daemon),
        cmocka_unit_test(test_live_stranger),
        cmocka_unit_test(test_no_socket_there),
        cmocka_unit_test(test_mode),
        cmocka_unit_test(test_own_socket_only),
        cmocka_unit_test(test_lock_goes_too),
        cmocka_unit_test(test_lock_without_socket),
        cmocka_unit_test(test_foreign_lock),
        cmocka_unit_test(test_default_directory),
        cmocka_unit_test(test_config_errors),
        cmocka_unit_test(test_shipped_config),
        cmocka_unit_test(test_print_config_in_force),
        cmocka_unit_test(test_command_line),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_config_is_a_file),
        cmocka_unit_test(test_full_output),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_debug_log),
    };
    backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
