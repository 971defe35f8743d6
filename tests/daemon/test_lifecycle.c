/* SPDX-License-Identifier: MIT
 *
 * The start and the end of shufd: which sockets and locks it replaces, and that it replies to all
 * accepted requests before it ends.
 */
#include "shuf.h"
#include "socket.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

static struct harness h; /* the daemon of the present test */

static int stop(void **state)
{
    (void)state;
    return harness_stop(&h) ? 0 : -1;
}

static void await_text(const char *path, const char *text)
{
    char content[8192] = "";
    for (int waited = 0; !strstr(content, text); waited += 5) {
        assert_true(waited < HARNESS_WAIT_MS);
        usleep(5000);
        shufd_read(path, content, sizeof content);
    }
}

static void lock_path(char *path, size_t size)
{
    snprintf(path, size, "%s.lock", h.socket);
}

static void expect_refused_start(const char *socket, const char *text)
{
    const char *arguments[] = {"--socket", socket, "--backend", harness_backend, NULL};
    shufd_expect_exit(arguments, EX_CANTCREAT, text);
}

/* ---- Daemons of a child that cannot start ---- */

/* Runs in a child. Checks that shufd ends with `code` and says `text`. */
static _Noreturn void fail_to_start(const char *socket, int code, const char *text)
{
    enum { NOT_EXECUTED = 127 };
    const char *arguments[] = {"--no-config", "--socket", socket, "--backend", "cpu", NULL};
    char output[1024];
    int status = harness_run(arguments, output, sizeof output);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_EXECUTED)
        _exit(HARNESS_SKIP); /* the daemon is in a folder that only root can enter */
    fprintf(stderr, "%s", output);
    _exit(WIFEXITED(status) && WEXITSTATUS(status) == code && strstr(output, text) ? EX_OK
                                                                                   : EX_SOFTWARE);
}

enum { SOMEBODY = 12345 };

static _Noreturn void fail_to_start_as_somebody(const char *socket, const char *text)
{
    if (geteuid() != 0 || setgid(SOMEBODY) != 0 || setuid(SOMEBODY) != 0)
        _exit(HARNESS_SKIP);
    fail_to_start(socket, EX_CANTCREAT, text);
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
    shufd_expect_code(status, EX_OK);
}

/* ---- The end ---- */

static void test_drain(void **state)
{
    (void)state;
    enum { N = 5 << 20 }; /* 20 MiB, far more than the buffers of a socket */
    char byte;
    struct shuf__result_message permute = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_INLINE);
    wire_start(&h, harness_backend, "drain_read_timeout = 1h\n");
    struct wire *half_read = wire_greet(&h), *in_flight = wire_greet(&h), *idle = wire_greet(&h);
    wire_send_result(half_read, &permute);
    wire_expect(half_read, SHUF_OK, "");
    wire_send_result(in_flight, &permute);
    while (recv(in_flight->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           wire_status(&h).queued == 0)
        continue; /* until the daemon has accepted the request, and perhaps replied */
    kill(h.pid, SIGTERM);
    wire_await_end_of_listening(&h);
    wire_expect_end(idle);
    wire_read_permutation(half_read, 4 * (uint64_t)N, N);
    wire_expect_end(half_read);
    wire_expect(in_flight, SHUF_OK, "");
    wire_read_permutation(in_flight, 4 * (uint64_t)N, N);
    wire_expect_end(in_flight);
    shufd_expect_code(harness_kill(&h, 0), EX_OK);
    wire_close(half_read);
    wire_close(in_flight);
    wire_close(idle);
    assert_true(access(h.socket, F_OK) != 0);
}

/* The daemon does not keep the signal mask of its parent. */
static void test_blocked_signals_end_the_daemon(void **state)
{
    (void)state;
    sigset_t blocked, before;
    sigfillset(&blocked);
    assert_int_equal(sigprocmask(SIG_SETMASK, &blocked, &before), 0);
    wire_start(&h, harness_backend, "");
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

static void test_idle_drain_is_quick(void **state)
{
    (void)state;
    wire_start(&h, harness_backend, "drain_timeout = 1h\n");
    struct wire *w = wire_greet(&h);
    shufd_expect_code(harness_kill(&h, SIGINT), EX_OK);
    wire_expect_end(w);
    wire_close(w);
}

/* Sends SIGSTOP before the bytes and SIGTERM, so the daemon sees the signal before it reads the
 * bytes. */
static void send_before_signal(struct wire *w, const void *bytes, size_t size)
{
    assert_int_equal(kill(h.pid, SIGSTOP), 0);
    wire_send_bytes(w, bytes, size);
    assert_int_equal(kill(h.pid, SIGTERM), 0);
    assert_int_equal(kill(h.pid, SIGCONT), 0);
}

static void test_drain_does_not_wait_for_half_a_request(void **state)
{
    (void)state;
    wire_start(&h, harness_backend, "drain_timeout = 1h\nframe_timeout = 1h\n");
    struct wire *w = wire_greet(&h);
    send_before_signal(w, "\x04\0\0", 3);
    shufd_expect_code(harness_kill(&h, 0), EX_OK);
    wire_expect_end(w);
    wire_close(w);
}

/* The daemon reads a request of this size in several turns. */
static void test_drain_answers_unread_request(void **state)
{
    (void)state;
    enum { POSITIONS = 7000 };
    static uint64_t at[POSITIONS];
    Shuf__Request request = SHUF__REQUEST__INIT;
    Shuf__Index index = SHUF__INDEX__INIT;
    Shuf__Permutation permutation = SHUF__PERMUTATION__INIT;
    wire_start(&h, harness_backend, "drain_timeout = 1h\n");
    struct wire *w = wire_greet(&h);
    request.body_case = SHUF__REQUEST__BODY_INDEX;
    request.index = &index;
    permutation.n = 1;
    index.permutation = &permutation;
    index.n_at = POSITIONS;
    index.at = at;
    send_before_signal(w, w->frame, wire_pack(w, &request, w->frame, sizeof w->frame));
    assert_int_equal(wire_expect(w, SHUF_OK, "")->index->n_value, POSITIONS);
    wire_expect_end(w);
    shufd_expect_code(harness_kill(&h, 0), EX_OK);
    wire_close(w);
}

static void test_second_signal_ends_drain(void **state)
{
    (void)state;
    struct shuf__result_message endless = wire_endless_permutation();
    wire_start(&h, harness_backend, "drain_timeout = 1h\n");
    struct wire *w = wire_greet(&h);
    wire_send_result(w, &endless);
    wire_await_queued(&h, 1);
    kill(h.pid, SIGTERM);
    wire_await_end_of_listening(&h);
    shufd_expect_code(harness_kill(&h, SIGTERM), EX_TEMPFAIL);
    wire_expect_end(w);
    wire_close(w);
}

/* Each signal after the first may come at any moment of the end. */
static void end_with_signals(unsigned gap_us, unsigned count)
{
    char log[8192], lock[sizeof h.socket + 8];
    wire_start(&h, harness_backend, "drain_timeout = 1h\n");
    for (unsigned i = 0; i < count; i++) {
        kill(h.pid, SIGTERM);
        usleep(gap_us);
    }
    shufd_expect_code(harness_kill(&h, 0), EX_OK);
    shufd_read(h.log, log, sizeof log);
    assert_non_null(strstr(log, " info: ended, "));
    lock_path(lock, sizeof lock);
    assert_true(access(lock, F_OK) != 0);
    assert_true(harness_stop(&h));
}

static void test_more_signals_do_not_cut_the_end(void **state)
{
    (void)state;
    for (unsigned gap_us = 0; gap_us <= 30000; gap_us += 1000)
        end_with_signals(gap_us, 2);
    for (int i = 0; i < 3; i++)
        end_with_signals(50, 1000);
}

static void test_drain_timeout_ends_drain(void **state)
{
    (void)state;
    char log[8192];
    struct shuf__result_message endless = wire_endless_permutation();
    wire_start(&h, harness_backend, "drain_timeout = 100ms\n");
    struct wire *w = wire_greet(&h);
    wire_send_result(w, &endless);
    wire_await_queued(&h, 1);
    shufd_expect_code(harness_kill(&h, SIGTERM), EX_TEMPFAIL);
    shufd_read(h.log, log, sizeof log);
    assert_non_null(strstr(log,
                           " error: terminated abnormally: the time to drain is over, 1 client "
                           "cut off\n"));
    wire_close(w);
}

/* Blocks that nobody uses are freed after the time to drain too. */
static void test_idle_cache_does_not_fail_the_end(void **state)
{
    (void)state;
    enum { N = 4 << 20, RESULTS = 8 };
    wire_start(&h, harness_backend, "drain_timeout = 0\n");
    struct wire *w = wire_greet(&h);
    for (uint64_t seed = 0; seed < RESULTS; seed++)
        wire_lease(w, N, seed, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    shufd_expect_code(harness_kill(&h, SIGTERM), EX_OK);
    wire_close(w);
}

/* A client that does not read its reply delays the end of the daemon only for a short time. The
 * exit status is 0 after either deadline: of the read, or of the drain. */
static void test_unread_reply_delays_end_briefly(void **state)
{
    (void)state;
    static const char *const configs[] = {
        "drain_timeout = 1h\ndrain_read_timeout = 100ms\n",
        "drain_timeout = 100ms\ndrain_read_timeout = 1h\n",
    };
    enum { N = 5 << 20 };
    struct shuf__result_message permute = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_INLINE);
    for (int i = 0; i < 2; i++) {
        char log[8192];
        wire_start(&h, harness_backend, configs[i]);
        struct wire *w = wire_greet(&h);
        wire_send_result(w, &permute);
        wire_expect(w, SHUF_OK, "");
        shufd_expect_code(harness_kill(&h, SIGTERM), EX_OK);
        shufd_read(h.log, log, sizeof log);
        assert_non_null(strstr(log, " served, 1 client cut off\n"));
        assert_int_equal(i == 0, strstr(log, "cut off: it read 0 bytes in ") != NULL);
        wire_close(w);
        assert_true(harness_stop(&h));
    }
}

enum { DRIP = 32 << 10 };

/* A client that reads a result in parts of DRIP bytes, with pauses. */
struct reader {
    struct harness h;
    uint64_t n;
    useconds_t pause_us;
};

static void read_slowly(int channel, void *context)
{
    static char bytes[DRIP];
    const struct reader *reader = context;
    uint64_t total = 0;
    struct shuf__result_message permute =
        wire_permutation(reader->n, SHUF__TRANSPORT__TRANSPORT_INLINE);
    struct wire *w = wire_greet(&reader->h);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_OK, "");
    child_send(channel, 0);
    for (ssize_t got; (got = read(w->fd, bytes, sizeof bytes)) > 0; total += (uint64_t)got)
        usleep(reader->pause_us);
    child_send(channel, total);
}

/* Ends the daemon while the client reads. Returns the bytes of the result that the client got. */
static uint64_t end_while_reading(struct reader *reader, char *log, size_t size)
{
    wire_start(&reader->h, harness_backend, "drain_timeout = 1h\ndrain_read_timeout = 1s\n");
    const struct child child = child_start(read_slowly, reader);
    child_receive(child.channel);
    shufd_expect_code(harness_kill(&reader->h, SIGTERM), EX_OK);
    const uint64_t total = child_receive(child.channel);
    child_join(&child);
    shufd_read(reader->h.log, log, size);
    assert_true(harness_stop(&reader->h));
    return total;
}

/* At the rate of this client, 0.6 MiB/s, the result would take half a minute. */
static void test_slow_reader_delays_end_briefly(void **state)
{
    struct reader reader = {.n = 5 << 20, .pause_us = 50000};
    char log[8192];
    (void)state;
    assert_in_range(end_while_reading(&reader, log, sizeof log), 0, 4 * reader.n - 1);
    assert_non_null(strstr(log, " ms, expected 1 MiB/s\n"));
}

/* At most 3 MiB/s. A busy machine may leave the reader without a processor for so long that the
 * reader is too slow. */
static void test_fast_reader_gets_its_reply(void **state)
{
    enum { ATTEMPTS = 3 };
    struct reader reader = {.n = 2 << 20, .pause_us = 10000};
    char log[8192];
    uint64_t got = 0;
    (void)state;
    for (int attempt = 0; attempt < ATTEMPTS && got < 4 * reader.n; attempt++)
        got = end_while_reading(&reader, log, sizeof log);
    assert_int_equal(got, 4 * reader.n);
    assert_null(strstr(log, "expected 1 MiB/s"));
}

/* ---- The socket ---- */

static void test_stale_socket_is_replaced(void **state)
{
    (void)state;
    wire_start(&h, harness_backend, "");
    assert_int_equal(WTERMSIG(harness_kill(&h, SIGKILL)), SIGKILL);
    assert_int_equal(access(h.socket, F_OK), 0);
    assert_true(harness_restart(&h));
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    wire_close(w);
}

static void test_socket_of_live_daemon_is_refused(void **state)
{
    (void)state;
    char text[64];
    wire_start(&h, harness_backend, "");
    snprintf(text, sizeof text, "in use by shufd, pid %d, uid %d", (int)h.pid, (int)getuid());
    expect_refused_start(h.socket, text);
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    wire_close(w);
}

/* Another program than shufd listens at the socket. There is no lock. */
static void test_socket_of_other_program_is_refused(void **state)
{
    (void)state;
    char text[64];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_true(harness_prepare(&h, harness_backend, NULL));
    snprintf(address.sun_path, sizeof address.sun_path, "%s", h.socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 5), 0);
    snprintf(text, sizeof text, "pid %d", (int)getpid());
    expect_refused_start(h.socket, text);
    assert_int_equal(access(h.socket, F_OK), 0);
    close(fd);
    assert_true(harness_restart(&h));
}

static void test_path_that_is_no_socket_is_refused(void **state)
{
    (void)state;
    char text[64];
    assert_true(harness_prepare(&h, harness_backend, NULL));
    shufd_write(h.socket, "precious");
    expect_refused_start(h.socket, "the file is not a socket");
    assert_int_equal(shufd_read(h.socket, text, sizeof text), 8);
    assert_string_equal(text, "precious");
    unlink(h.socket);

    char missing[HARNESS_PATH + 16];
    snprintf(missing, sizeof missing, "%s/none/s", h.directory);
    char directory[HARNESS_PATH + 32];
    snprintf(directory, sizeof directory, "directory %s/none: %s: make it", h.directory,
             strerror(ENOENT));
    expect_refused_start(missing, directory);
    char endless[200];
    memset(endless, 'a', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    const char *arguments[] = {"--socket", endless, NULL};
    shufd_expect_exit(arguments, EX_USAGE, "socket aaa");
}

static void test_socket_mode(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        mode_t mode;
    } rows[] = {{"", 0660}, {"socket_mode = 0600\n", 0600}, {"socket_mode = 666\n", 0666}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct stat status;
        wire_start(&h, harness_backend, rows[i].config);
        assert_int_equal(stat(h.socket, &status), 0);
        assert_true(S_ISSOCK(status.st_mode));
        assert_int_equal(status.st_mode & 0777, rows[i].mode);
        assert_true(harness_stop(&h));
    }
}

static void test_only_own_socket_is_removed(void **state)
{
    (void)state;
    char text[16];
    wire_start(&h, harness_backend, "");
    unlink(h.socket);
    shufd_write(h.socket, "new");
    assert_int_equal(harness_kill(&h, SIGTERM), 0);
    /* Shufd has not deleted the file. */
    assert_int_equal(shufd_read(h.socket, text, sizeof text), 3);
}

/* Calls a daemon that makes its socket again within two seconds. */
static void expect_socket_again(void)
{
    shuf *handle = NULL;
    struct stat status;
    const shuf_request p = {.permutation = {.n = 1000, .seed = 7}};
    uint32_t values[1000];
    for (int i = 0; i < 3000 && shuf_connect(&handle, h.socket) == SHUF_NO_DAEMON; i++) {
        shuf_close(handle);
        usleep(10000);
    }
    assert_int_equal(shuf_copy(handle, &p, values, sizeof values, NULL), SHUF_OK);
    shuf_close(handle);
    assert_int_equal(stat(h.socket, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
}

static void test_removed_socket_is_made_again(void **state)
{
    (void)state;
    char lock[HARNESS_PATH + 8], text[16];
    wire_start(&h, harness_backend, "socket_mode = 0640\n");
    lock_path(lock, sizeof lock);
    struct wire *w = wire_greet(&h); /* its connection stays */
    unlink(h.socket);
    expect_socket_again();
    await_text(h.log, "its file was removed or replaced; made a new one");

    unlink(lock);
    unlink(h.socket);
    expect_socket_again();
    assert_int_equal(access(lock, F_OK), 0);

    unlink(h.socket);
    shufd_write(h.socket, "new");
    await_text(h.log, "no client finds this daemon: socket ");
    await_text(h.log, "the file is not a socket");
    assert_int_equal(shufd_read(h.socket, text, sizeof text), 3);
    unlink(h.socket);
    expect_socket_again();
    wire_close(w);
    assert_int_equal(harness_kill(&h, SIGTERM), 0);
    assert_int_not_equal(access(h.socket, F_OK), 0);
}

/* Others could move files there while the daemon makes its socket. */
static void test_socket_is_not_made_again_among_others(void **state)
{
    (void)state;
    wire_start(&h, harness_backend, "socket_mode = 0640\n");
    assert_int_equal(chmod(h.directory, 0777), 0);
    unlink(h.socket);
    await_text(h.log, "other users may change directory ");
    assert_int_not_equal(access(h.socket, F_OK), 0);
    assert_int_equal(chmod(h.directory, 0700), 0);
    expect_socket_again();
}

/* Runs in a child with its own /run, which has no /run/shufd. */
static _Noreturn void serve_in_own_run(void)
{
    struct stat status;
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "/run", "tmpfs", 0, NULL) != 0)
        _exit(HARNESS_SKIP);
    h = (struct harness){
        .backend = harness_backend, .socket = SHUF__SYSTEM_SOCKET, .log = "/run/log"};
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

/* ---- The lock of the socket ---- */

static void test_lock_file_is_removed(void **state)
{
    (void)state;
    char path[HARNESS_PATH + 8];
    wire_start(&h, harness_backend, "");
    lock_path(path, sizeof path);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(harness_kill(&h, SIGTERM), 0);
    assert_int_not_equal(access(path, F_OK), 0);

    shufd_write(h.socket, "precious");
    expect_refused_start(h.socket, "the file is not a socket");
    assert_int_not_equal(access(path, F_OK), 0);
}

/* Another process holds the lock, but nobody listens at the socket. The error says so. */
static void test_lock_without_socket_is_refused(void **state)
{
    (void)state;
    char removed[96], ending[96], lock[HARNESS_PATH + 8];
    struct shuf__result_message endless = wire_endless_permutation();
    wire_start(&h, harness_backend, "drain_timeout = 1h\n");
    struct wire *w = wire_greet(&h);
    snprintf(removed, sizeof removed, "pid %d, uid %d, runs without its socket", (int)h.pid,
             (int)getuid());
    snprintf(ending, sizeof ending, "pid %d, uid %d, is ending (draining); try again", (int)h.pid,
             (int)getuid());
    lock_path(lock, sizeof lock);
    wire_send_result(w, &endless);
    wire_await_queued(&h, 1);
    kill(h.pid, SIGSTOP); /* else it makes a new socket */
    unlink(h.socket);
    expect_refused_start(h.socket, removed);
    kill(h.pid, SIGCONT);
    kill(h.pid, SIGTERM);
    await_text(lock, "ending");
    expect_refused_start(h.socket, ending);
    shufd_expect_code(harness_kill(&h, SIGTERM), EX_TEMPFAIL);
    wire_close(w);
}

/* mode: of the directory. In a sticky one, only root can remove the lock. */
static void expect_foreign_lock(mode_t mode, const char *text)
{
    char path[HARNESS_PATH + 8];
    assert_true(harness_prepare(&h, harness_backend, NULL));
    lock_path(path, sizeof path);
    shufd_write(path, "1 serving\n");
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(chmod(h.directory, mode), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        fail_to_start_as_somebody(h.socket, text);
    int status = wait_for_child(pid);
    /* If shufd can open the lock file, it finds that nobody holds the lock. */
    assert_true(harness_restart(&h));
    assert_true(harness_stop(&h));
    expect_good_or_skip(status);
}

static void test_foreign_lock_names_its_owner(void **state)
{
    (void)state;
    expect_foreign_lock(0777, "a file of uid 0; remove it if no shufd runs there");
    expect_foreign_lock(01777, "a file of uid 0; ask root to remove it if no shufd runs there");
}

/* In a directory such as /tmp, shufd goes on at a foreign lock, and then finds the socket. */
static void test_foreign_socket_names_its_owner(void **state)
{
    (void)state;
    assert_true(harness_prepare(&h, harness_backend, NULL));
    assert_true(harness_restart(&h));
    assert_int_equal(chmod(h.directory, 01777), 0);
    const bool given = chown(h.directory, 65534, (gid_t)-1) == 0; /* or: this is not root */
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        fail_to_start_as_somebody(
            h.socket,
            "a socket of uid 0, which uid 12345 may not use; choose another path with --socket");
    int status = wait_for_child(pid);
    assert_true(!given || chown(h.directory, geteuid(), (gid_t)-1) == 0);
    assert_true(harness_stop(&h));
    expect_good_or_skip(status);
}

/* Another process holds the lock, and its text names a process that does not exist here, as one of
 * another PID namespace. The loop does not wait for its end: it goes on to answer. */
static void test_foreign_lock_does_not_hold_the_loop(void **state)
{
    (void)state;
    struct timespec begun, now;
    char lock[HARNESS_PATH + 8];
    wire_start(&h, harness_backend, "");
    struct wire *w = wire_greet(&h);
    lock_path(lock, sizeof lock);
    kill(h.pid, SIGSTOP); /* else it makes a lock between the two lines */
    unlink(lock);
    unlink(h.socket);
    shufd_write(lock, "4194305 serving 1\n"); /* above the largest PID */
    const int fd = open(lock, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    kill(h.pid, SIGCONT);
    await_text(h.log, "pid 4194305 of another PID namespace, uid ");
    await_text(h.log, "runs without its socket, which was removed; its log says");
    for (int i = 0; i < 60; i++) { /* for three seconds, and so beside a look of the daemon */
        clock_gettime(CLOCK_MONOTONIC, &begun);
        wire_ask_status(w);
        clock_gettime(CLOCK_MONOTONIC, &now);
        assert_true(now.tv_sec - begun.tv_sec < 4); /* it would wait for 5 seconds */
        usleep(50000);
    }
    close(fd);
    wire_close(w);
    assert_true(harness_stop(&h));
    unlink(lock);
}

/* ---- The lock, if another user made it ---- */

enum { LOCK_HOLDER = 65534, VICTIM = 12345 };

static void hold_foreign_lock(int channel, void *context)
{
    char path[HARNESS_PATH + 8];
    (void)context;
    lock_path(path, sizeof path);
    shufd_write(path, "1 serving\n");
    assert_int_equal(chmod(path, 0666), 0);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    child_send(channel, 0);
    child_receive(channel);
}

/* Serves while another user holds the lock. `has_lock`: this process has the right to replace the
 * lock file. */
static void serve_despite_held_lock(bool has_lock)
{
    static const char *const version[] = {"--version", NULL};
    struct stat file;
    char path[HARNESS_PATH + 8], log[4096];
    lock_path(path, sizeof path);
    if (harness_run(version, log, sizeof log) != 0)
        _exit(HARNESS_SKIP); /* the daemon is in a folder that only root can enter */
    assert_true(harness_restart(&h));
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_uid, has_lock ? geteuid() : LOCK_HOLDER);
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    wire_close(w);
    shufd_expect_code(harness_kill(&h, SIGTERM), EX_OK);
    shufd_read(h.log, log, sizeof log);
    assert_int_equal(strstr(log, "a file of uid 65534; continuing without a lock") == NULL,
                     has_lock);
    assert_non_null(strstr(log, "(set by --socket)\n"));
}

static void serve_without_root(int channel, void *context)
{
    (void)channel;
    (void)context;
    serve_despite_held_lock(false);
}

static void test_lock_held_by_other_user(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    for (int as_root = 0; as_root < 2; as_root++) {
        assert_true(harness_prepare(&h, harness_backend, NULL));
        assert_int_equal(chmod(h.directory, 01777), 0);
        const struct child lock_holder = child_start_as(LOCK_HOLDER, hold_foreign_lock, NULL);
        child_receive(lock_holder.channel);
        if (as_root) {
            serve_despite_held_lock(true);
        } else {
            const struct child victim = child_start_as(VICTIM, serve_without_root, NULL);
            close(victim.channel);
            const int status = wait_for_child(victim.pid);
            if (!WIFEXITED(status) || WEXITSTATUS(status) != HARNESS_SKIP)
                shufd_expect_code(status, EX_OK);
        }
        child_send(lock_holder.channel, 0);
        child_join(&lock_holder);
        assert_true(harness_stop(&h));
    }
}

/* ---- Limits of the process ---- */

/* Starts a daemon with this limit. */
static void expect_limit_to_be_explained(int resource, rlim_t value, const char *text)
{
    const struct rlimit few = {value, value};
    assert_true(harness_prepare(&h, harness_backend, NULL));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        closefrom(STDERR_FILENO + 1); /* a daemon counts its inherited descriptors */
        if (setrlimit(resource, &few) != 0)
            _exit(EX_OSERR);
        fail_to_start(h.socket, EX_OSERR, text);
    }
    int status = wait_for_child(pid);
    assert_true(harness_restart(&h));
    assert_true(harness_stop(&h));
    shufd_expect_code(status, EX_OK);
}

static void test_low_limits_are_explained(void **state)
{
    (void)state;
    expect_limit_to_be_explained(RLIMIT_NOFILE, 20,
                                 "open files: the limit is 20, but shufd needs at least 50; raise "
                                 "it with ulimit -n");
    expect_limit_to_be_explained(RLIMIT_STACK, 64 << 10,
                                 "stack: the limit is 64 KiB, but shufd needs at least 1024; raise "
                                 "it with ulimit -s");
}

/* Stacks of this size are too small for the threads of OpenMP. */
static void test_stacks_of_the_environment_are_ignored(void **state)
{
    (void)state;
    setenv("OMP_STACKSIZE", "16k", 1);
    setenv("GOMP_STACKSIZE", "16", 1);
    wire_start(&h, harness_backend, "");
    unsetenv("OMP_STACKSIZE");
    unsetenv("GOMP_STACKSIZE");
    struct wire *w = wire_greet(&h);
    wire_lease(w, 10000000, 7, wire_backend_transport(harness_backend));
    wire_close(w);
}

/* Starts a daemon with the limit of the size of files, and reads its warning. The second limit is
 * only a soft one, which the daemon raises. */
static void serve_with_file_size(int channel, void *context)
{
    static const char warning[] = "file size: the limit is 8 MiB, so larger results fail";
    static const char *const arguments[] = {"--no-config", "--backend", "cpu", "--socket",
                                            "/tmp/none",   "--check",   NULL};
    static const char *const extra[] = {"--host-memory", "64Mi", NULL};
    const bool is_hard = *(const bool *)context;
    char log[4096];
    struct rlimit size;
    (void)channel;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &size), 0);
    size.rlim_cur = 8 << 20;
    size.rlim_max = is_hard ? size.rlim_cur : size.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &size), 0);
    assert_true(harness_start(&h, harness_backend, extra));
    assert_true(harness_run(arguments, log, sizeof log) == 0);
    assert_int_equal(strstr(log, warning) != NULL, is_hard);
    shufd_expect_code(harness_kill(&h, SIGTERM), EX_OK);
    shufd_read(h.log, log, sizeof log);
    assert_int_equal(strstr(log, warning) != NULL, is_hard);
    assert_true(harness_stop(&h));
}

static void test_file_size_is_raised_or_named(void **state)
{
    (void)state;
    for (int is_hard = 0; is_hard < 2; is_hard++) {
        const struct child child = child_start(serve_with_file_size, &(bool){is_hard});
        child_join(&child);
    }
}

/* A user of whom no other test has processes. */
enum { USER_WITH_FEW_PROCESSES = 12359, FEW_PROCESSES = 6 };

static void start_with_few_processes(int channel, void *context)
{
    static const char text[] = "threads 4: 11 more threads cannot be started: Resource temporarily "
                               "unavailable; raise the limits of processes (ulimit -u, pids.max";
    const char *arguments[] = {"--no-config", "--backend", "cpu",     "--threads", "4",
                               "--socket",    context,     "--check", NULL};
    static const char *const version[] = {"--version", NULL};
    const struct rlimit few = {FEW_PROCESSES, FEW_PROCESSES};
    char output[1024];
    (void)channel;
    if (harness_run(version, output, sizeof output) != 0)
        return; /* the daemon is in a folder that only root can enter */
    assert_int_equal(setrlimit(RLIMIT_NPROC, &few), 0);
    shufd_expect_exit(arguments, EX_OSERR, text);
    arguments[7] = NULL;
    shufd_expect_exit(arguments, EX_OSERR, text);
}

static void test_few_processes_are_explained(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_true(harness_prepare(&h, "cpu", NULL));
    assert_int_equal(chmod(h.directory, 01777), 0);
    const struct child child =
        child_start_as(USER_WITH_FEW_PROCESSES, start_with_few_processes, h.socket);
    child_join(&child);
}

/* ---- The first process of a PID namespace ---- */

/* Nobody reads its output, so shufd stays in its start. */
static _Noreturn void print_to_full_pipe(void)
{
    int out[2];
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the test fails */
    if (pipe2(out, O_NONBLOCK) != 0)
        _exit(EX_OSERR);
    while (write(out[1], "", 1) > 0)
        continue;
    fcntl(out[1], F_SETFL, 0);
    dup2(out[1], STDOUT_FILENO);
    execl(SHUFD_PATH, SHUFD_PATH, "--no-config", "--print-config", (char *)NULL);
    _exit(EX_UNAVAILABLE);
}

static void end_first_process(int channel, void *context)
{
    const int number = *(const int *)context;
    int status;
    (void)channel;
    if (unshare(CLONE_NEWPID) != 0)
        return; /* in a container without this right */
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        print_to_full_pipe();
    for (unsigned waited = 0; waitpid(pid, &status, WNOHANG) == 0;) {
        kill(pid, number);
        wire_wait(&waited, "the end of the first process");
    }
    shufd_expect_code(status, 128 + number);
}

/* ThreadSanitizer runs a handler only when the process enters the next call that it knows, and
 * shufd may wait in one that it does not know. */
static void test_signals_end_the_start_of_the_first_process(void **state)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    (void)state;
    if (TEST_THREAD_SANITIZED)
        skip();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct child child = child_start(end_first_process, (void *)&numbers[i]);
        child_join(&child);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_drain, stop),
        cmocka_unit_test_teardown(test_blocked_signals_end_the_daemon, stop),
        cmocka_unit_test_teardown(test_idle_drain_is_quick, stop),
        cmocka_unit_test_teardown(test_drain_does_not_wait_for_half_a_request, stop),
        cmocka_unit_test_teardown(test_drain_answers_unread_request, stop),
        cmocka_unit_test_teardown(test_second_signal_ends_drain, stop),
        cmocka_unit_test(test_more_signals_do_not_cut_the_end),
        cmocka_unit_test_teardown(test_drain_timeout_ends_drain, stop),
        cmocka_unit_test_teardown(test_idle_cache_does_not_fail_the_end, stop),
        cmocka_unit_test(test_unread_reply_delays_end_briefly),
        cmocka_unit_test(test_slow_reader_delays_end_briefly),
        cmocka_unit_test(test_fast_reader_gets_its_reply),
        cmocka_unit_test_teardown(test_stale_socket_is_replaced, stop),
        cmocka_unit_test_teardown(test_socket_of_live_daemon_is_refused, stop),
        cmocka_unit_test_teardown(test_socket_of_other_program_is_refused, stop),
        cmocka_unit_test_teardown(test_path_that_is_no_socket_is_refused, stop),
        cmocka_unit_test(test_socket_mode),
        cmocka_unit_test_teardown(test_only_own_socket_is_removed, stop),
        cmocka_unit_test_teardown(test_removed_socket_is_made_again, stop),
        cmocka_unit_test_teardown(test_socket_is_not_made_again_among_others, stop),
        cmocka_unit_test(test_default_directory),
        cmocka_unit_test_teardown(test_lock_file_is_removed, stop),
        cmocka_unit_test_teardown(test_lock_without_socket_is_refused, stop),
        cmocka_unit_test(test_foreign_lock_names_its_owner),
        cmocka_unit_test(test_foreign_socket_names_its_owner),
        cmocka_unit_test(test_foreign_lock_does_not_hold_the_loop),
        cmocka_unit_test(test_lock_held_by_other_user),
        cmocka_unit_test(test_low_limits_are_explained),
        cmocka_unit_test_teardown(test_stacks_of_the_environment_are_ignored, stop),
        cmocka_unit_test(test_file_size_is_raised_or_named),
        cmocka_unit_test_teardown(test_few_processes_are_explained, stop),
        cmocka_unit_test(test_signals_end_the_start_of_the_first_process),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
