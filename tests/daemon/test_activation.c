/* SPDX-License-Identifier: MIT
 *
 * A daemon that a service manager has started for a socket. The daemon serves that socket and does
 * not touch its file. While no daemon runs, connections wait in the backlog.
 */
#include "support/bystander.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/command.h"
#include "support/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

/* The configuration file of the tests that need one. */
static char config_path[] = "/tmp/shuf-activation-XXXXXX";

static int make_config(void **state)
{
    (void)state;
    const int fd = mkstemp(config_path);
    return fd < 0 || close(fd) != 0;
}

static int remove_config(void **state)
{
    (void)state;
    return unlink(config_path);
}

/* Binds the socket and makes its file, as a service manager does. */
static void bind_socket(struct harness *h, int type, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_true(harness_prepare(h, "cpu", NULL));
    snprintf(address.sun_path, sizeof address.sun_path, "%s", h->socket);
    h->passed.name = name;
    h->passed.fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    assert_true(h->passed.fd >= 0);
    assert_int_equal(bind(h->passed.fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(chmod(h->socket, 0604), 0);
}

static void listen_as(struct harness *h, const char *name)
{
    bind_socket(h, SOCK_STREAM, name);
    assert_int_equal(listen(h->passed.fd, SOMAXCONN), 0);
}

static struct stat socket_stat(const struct harness *h)
{
    struct stat status;
    assert_int_equal(lstat(h->socket, &status), 0);
    assert_true(S_ISSOCK(status.st_mode));
    return status;
}

static void expect_values(struct wire *w)
{
    struct shuf__result_message permute = wire_permutation(1000, SHUF__TRANSPORT__TRANSPORT_INLINE);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_OK, "");
    wire_read_permutation(w, 4000, 1000);
}

static void expect_log(const struct harness *h, const char *text)
{
    char log[4096];
    shufd_await(h->log, log, sizeof log, text);
}

/* The text with the path of the configuration file between both parts; valid until the next call.
 */
static const char *with_path(const char *before, const char *after)
{
    static char text[512];
    snprintf(text, sizeof text, "%s%s%s", before, config_path, after);
    return text;
}

static void stop(struct harness *h)
{
    close(h->passed.fd);
    assert_true(harness_stop(h));
}

static bool kernel_refuses_descriptors(void)
{
    const int allowed = 0, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool refuses = setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &allowed, sizeof allowed) == 0;
    close(fd);
    return refuses;
}

/* ---- Tests ---- */

/* Also one that connected before the daemon started. */
static void test_accepted_client_sends_no_descriptors(void **state)
{
    struct harness h;
    (void)state;
    if (!kernel_refuses_descriptors())
        skip();
    listen_as(&h, "shufd");
    struct wire *w = wire_open(&h);
    assert_true(harness_restart(&h));
    wire_send_hello(w, SHUF__PROTOCOL_VERSION);
    wire_expect(w, SHUF_OK, "");
    assert_int_equal(wire_try_descriptors(w->fd, "\x40", 1, (int[]){STDERR_FILENO}, 1, 0), -1);
    assert_int_equal(errno, EPERM);
    expect_values(w);
    wire_close(w);
    stop(&h);
}

/* Before the daemon accepts them, clients can send descriptors on every kernel. These are sockets
 * whose close() takes long. The daemon reads some of them, and others are unread at its end. */
static void test_descriptors_sent_before_the_start(void **state)
{
    enum { CLIENTS = 20, SOON_S = 20 };
    struct harness h;
    struct wire *clients[CLIENTS];
    const time_t start = time(NULL);
    (void)state;
    listen_as(&h, "shufd");
    for (int i = 0; i < CLIENTS; i++) {
        const int fd = lingering_make();
        clients[i] = wire_open(&h);
        if (i % 2)
            wire_send_hello(clients[i], SHUF__PROTOCOL_VERSION);
        lingering_arm(fd);
        assert_int_equal(wire_try_descriptors(clients[i]->fd, "\x40", 1, &fd, 1, 0), 1);
        close(fd);
    }
    assert_true(harness_restart(&h));
    for (int i = 0; i < CLIENTS; i++) {
        wire_expect(clients[i], SHUF_PROTOCOL, "bytes with descriptors: expected bytes alone");
        wire_close(clients[i]);
    }
    struct wire *w = wire_greet(&h);
    expect_values(w);
    wire_close(w);
    assert_int_equal(harness_kill(&h, SIGTERM), 0);
    assert_true(time(NULL) - start < SOON_S);
    lingering_end_all();
    stop(&h);
}

static void test_passed_socket_is_served(void **state)
{
    struct harness h;
    char lock[HARNESS_PATH + 8], line[HARNESS_PATH + 64];
    (void)state;
    listen_as(&h, "shufd");
    const struct stat before = socket_stat(&h);
    assert_true(harness_restart(&h));
    struct wire *w = wire_greet(&h);
    expect_values(w);
    wire_close(w);
    snprintf(line, sizeof line, "listening on %s (passed by the service manager)\n", h.socket);
    expect_log(&h, line);
    snprintf(lock, sizeof lock, "%s.lock", h.socket);
    assert_int_equal(access(lock, F_OK), -1);
    shufd_expect_code(harness_kill(&h, SIGTERM), EX_OK);
    const struct stat after = socket_stat(&h);
    assert_int_equal(after.st_ino, before.st_ino);
    assert_int_equal(after.st_mode, before.st_mode);
    stop(&h);
}

/* PassCredentials= and PassSecurity= of the socket's unit. */
static void test_options_of_the_socket_do_not_matter(void **state)
{
    struct harness h;
    (void)state;
    listen_as(&h, "shufd");
    for (int option = 0; option < 2; option++)
        assert_int_equal(setsockopt(h.passed.fd, SOL_SOCKET, option ? SO_PASSSEC : SO_PASSCRED,
                                    &(int){1}, sizeof(int)),
                         0);
    assert_true(harness_restart(&h));
    struct wire *w = wire_greet(&h);
    expect_values(w);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* The daemon cannot make the file of the service manager again. */
static void test_removed_file_is_told(void **state)
{
    struct harness h;
    (void)state;
    listen_as(&h, "shufd");
    assert_true(harness_restart(&h));
    unlink(h.socket);
    expect_log(&h, "restart the unit of the socket, such as shufd.socket");
    assert_int_not_equal(access(h.socket, F_OK), 0);
    stop(&h);
}

/* The harness finds the daemon by the new name of the file. */
static void test_file_removed_before_the_start_is_told(void **state)
{
    struct harness h;
    char bound[HARNESS_PATH];
    (void)state;
    listen_as(&h, "shufd");
    snprintf(bound, sizeof bound, "%s", h.socket);
    snprintf(h.socket, sizeof h.socket, "%.80s.moved", bound);
    assert_int_equal(rename(bound, h.socket), 0);
    assert_true(harness_restart(&h));
    expect_log(&h, "restart the unit of the socket, such as shufd.socket");
    stop(&h);
}

/* Connections in the backlog survive the end of a daemon, by SIGTERM and by SIGKILL. */
static void test_backlog_survives_restart(void **state)
{
    static const int signals[] = {SIGTERM, SIGKILL};
    struct harness h;
    (void)state;
    listen_as(&h, "shufd");
    for (int i = 0; i < 2; i++) {
        assert_true(harness_restart(&h));
        harness_kill(&h, signals[i]);
        struct wire *w = wire_open(&h);
        wire_send_hello(w, SHUF__PROTOCOL_VERSION);
        assert_true(harness_restart(&h));
        wire_expect(w, SHUF_OK, "");
        expect_values(w);
        wire_close(w);
        shufd_expect_code(harness_kill(&h, SIGTERM), EX_OK);
    }
    stop(&h);
}

static void expect_refusal(struct harness *h, const char *text)
{
    assert_false(harness_restart(h)); /* prints the log */
    expect_log(h, text);
    stop(h);
}

static void test_wrong_descriptors_are_refused(void **state)
{
    struct harness h;
    (void)state;
    bind_socket(&h, SOCK_STREAM, "metrics");
    expect_refusal(&h,
                   "LISTEN_FDNAMES: no descriptor is named shufd; expected FileDescriptorName=");
    bind_socket(&h, SOCK_STREAM, "shufd:shufd");
    expect_refusal(&h, "LISTEN_FDNAMES: 2 sockets are named shufd, expected one: in the socket's "
                       "unit, write an empty ListenStream= before the new one");
    bind_socket(&h, SOCK_DGRAM, "shufd");
    expect_refusal(&h, "descriptor 3, named shufd: expected a listening Unix stream socket");
    bind_socket(&h, SOCK_STREAM, "shufd");
    expect_refusal(&h, "descriptor 3, named shufd: expected a listening Unix stream socket");
}

/* A daemon that a user starts by hand does not take the socket from the service manager. */
static void test_second_daemon_is_refused(void **state)
{
    struct harness h;
    (void)state;
    listen_as(&h, "shufd");
    assert_true(harness_restart(&h));
    const char *arguments[] = {"--socket", h.socket, "--backend", "cpu", NULL};
    shufd_expect_exit(arguments, EX_CANTCREAT, "in use by test_activation");
    socket_stat(&h);
    stop(&h);
}

/* The keys of a socket that the daemon does not make have no effect. */
static void test_unused_keys_are_named(void **state)
{
    static const char *const files[] = {"socket_mode = 0660\nsocket_group = nosuchgrp\n",
                                        "socket_mode = 0666\nsocket_group =\n"};
    struct harness h;
    char log[4096];
    (void)state;
    for (int i = 0; i < 2; i++) {
        shufd_write(config_path, files[i]);
        listen_as(&h, "shufd");
        h.extra[0] = "--config";
        h.extra[1] = config_path;
        assert_true(harness_restart(&h));
        expect_log(
            &h, with_path(
                    "warning: ",
                    i ? ":1: socket_mode 0666: has no effect, because the service manager passes"
                      : ":2: socket_group nosuchgrp: has no effect, because the service manager "
                        "passes the socket; set SocketGroup= by systemctl edit shufd.socket, then "
                        "restart that unit\n"));
        shufd_expect_code(harness_kill(&h, SIGTERM), EX_OK);
        shufd_read(h.log, log, sizeof log);
        assert_null(strstr(log, i ? "socket_group" : "socket_mode")); /* its default value */
        assert_non_null(strstr(log, "warning: socket /"));
        stop(&h);
    }
}

/* A reload does not promise that a restart of the daemon would change the passed socket. */
static void test_reload_names_unused_keys(void **state)
{
    struct harness h;
    char log[4096];
    (void)state;
    shufd_write(config_path, "clients = 7\n");
    listen_as(&h, "shufd");
    h.extra[0] = "--config";
    h.extra[1] = config_path;
    assert_true(harness_restart(&h));
    shufd_write(config_path, "clients = 7\nsocket_mode = 0666\nthreads = 2\n");
    kill(h.pid, SIGHUP);
    expect_log(&h, "warning: reload: socket_mode = 0666: even after a restart it has no effect, "
                   "because the service manager passes the socket; set SocketMode= by systemctl "
                   "edit shufd.socket, then restart that unit\n");
    expect_log(&h, "warning: reload: threads = 2 takes effect only after a restart, now 0\n");
    shufd_read(h.log, log, sizeof log);
    assert_null(strstr(log, "socket_mode = 0666 takes effect"));
    stop(&h);
}

/* systemd must know of a reload of its unit. */
static void test_memory_limit_names_the_unit(void **state)
{
    struct harness h;
    (void)state;
    shufd_write(config_path, "host_memory = 16Mi\n");
    listen_as(&h, "shufd");
    h.extra[0] = "--config";
    h.extra[1] = config_path;
    assert_true(harness_restart(&h));
    struct wire *w = wire_greet(&h);
    struct shuf__result_message permute =
        wire_permutation(5 << 20, SHUF__TRANSPORT__TRANSPORT_INLINE);
    wire_send_result(w, &permute);
    wire_expect(
        w, SHUF_NO_MEMORY,
        with_path("raise host_memory in ", ", then systemctl reload shufd.service, as root"));
    wire_close(w);
    stop(&h);
}

/* Starts a daemon that cannot start with the passed socket. Returns its exit status. */
static int start_in_vain(const struct harness *h, const char *option, const char *value,
                         const char *reason)
{
    static const char script[] = "export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=shufd\n"
                                 "exec \"$@\" 3<&\"$0\"";
    char descriptor[16];
    struct command c;
    const int inherited = fcntl(h->passed.fd, F_DUPFD, 5); /* not closed by exec */
    assert_in_range(inherited, 5, 9);                      /* the shell takes only one digit */
    snprintf(descriptor, sizeof descriptor, "%d", inherited);
    const char *const argv[] = {"sh", "-c", script, descriptor, SHUFD_PATH, option, value, NULL};
    const int code = command_run(&c, 0, argv);
    assert_non_null(strstr(c.err.bytes, reason));
    command_free(&c);
    close(inherited);
    return code;
}

static void test_wrong_number_is_named(void **state)
{
    static const char script[] = "export LISTEN_PID=$$ LISTEN_FDS=abc; exec \"$@\"";
    const char *const argv[] = {"sh",       "-c",          script,      "sh",
                                SHUFD_PATH, "--no-config", "--backend", "cpu",
                                "--socket", "/tmp/none",   NULL};
    struct command c;
    (void)state;
    assert_int_equal(command_run(&c, 0, argv), EX_CONFIG);
    assert_non_null(strstr(c.err.bytes, "LISTEN_FDS abc, LISTEN_PID "));
    assert_null(strstr(c.err.bytes, "LISTEN_FDNAMES"));
    command_free(&c);
}

/* A script without exec gets the socket in the place of shufd. With a path, shufd serves there. */
static void test_other_process_is_named(void **state)
{
    static const char script[] = "unset SHUFD_SOCKET; export LISTEN_PID=$$ LISTEN_FDS=1 "
                                 "SHUFD_RUNTIME_DIR=/none XDG_RUNTIME_DIR=/none\n"
                                 "\"$@\"; exit $?";
    const char *const argv[] = {"sh",          "-c",        script, "sh", SHUFD_PATH,
                                "--no-config", "--backend", "cpu",  NULL};
    struct command c;
    struct harness h;
    (void)state;
    assert_int_equal(command_run(&c, 0, argv), EX_CONFIG);
    assert_non_null(strstr(c.err.bytes, "error: LISTEN_PID "));
    assert_non_null(strstr(c.err.bytes, "; start shufd by exec"));
    command_free(&c);
    assert_true(harness_prepare(&h, "cpu", NULL));
    setenv("LISTEN_PID", "1", 1);
    setenv("LISTEN_FDS", "1", 1);
    const bool started = harness_restart(&h);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    assert_true(started);
    expect_log(&h, "warning: LISTEN_PID 1: ");
    stop(&h);
}

/* The waiting clients get the reason, and none is left, for which systemd would start the daemon
 * again. */
static void expect_told(const char *option, const char *value, int code, const char *logged,
                        const char *reason)
{
    struct harness h;
    struct wire *clients[3];
    char text[256];
    snprintf(text, sizeof text, "the daemon cannot start: %s", reason);
    listen_as(&h, "shufd");
    for (int i = 0; i < 3; i++) {
        clients[i] = wire_open(&h);
        wire_send_hello(clients[i], SHUF__PROTOCOL_VERSION);
    }
    assert_int_equal(start_in_vain(&h, option, value, logged), code);
    struct pollfd waiting = {.fd = h.passed.fd, .events = POLLIN};
    assert_int_equal(poll(&waiting, 1, 0), 0);
    for (int i = 0; i < 3; i++) {
        wire_expect(clients[i], SHUF_DEVICE, text);
        wire_close(clients[i]);
    }
    stop(&h);
}

static void test_missing_device_is_told_to_clients(void **state)
{
    (void)state;
    expect_told("--backend", "cuda:GPU-none", EX_UNAVAILABLE, "backend cuda", "backend cuda");
}

static void connect_without_end(int channel, void *context)
{
    const struct harness *h = context;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", h->socket);
    child_send(channel, 1);
    for (;;) { /* also while the backlog is full */
        const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(fd, (struct sockaddr *)&address, sizeof address);
        close(fd);
    }
}

/* Clients that connect again and again cannot hold such a daemon. */
static void test_flood_does_not_hold_a_daemon_that_cannot_start(void **state)
{
    enum { CHILDREN = 3, SOON_S = 20 };
    struct harness h;
    struct child children[CHILDREN];
    (void)state;
    listen_as(&h, "shufd");
    const time_t start = time(NULL);
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = child_start(connect_without_end, &h);
        assert_int_equal(child_receive(children[i].channel), 1);
    }
    assert_int_equal(start_in_vain(&h, "--backend", "cuda:GPU-none", "backend cuda"),
                     EX_UNAVAILABLE);
    assert_true(time(NULL) - start < SOON_S);
    for (int i = 0; i < CHILDREN; i++)
        child_kill(&children[i]);
    stop(&h);
}

static void expect_file_told(const char *text, const char *logged, const char *reason)
{
    shufd_write(config_path, text);
    expect_told("--config", config_path, EX_CONFIG, logged, reason);
}

/* The name of a named key is secret. */
static void test_mistake_is_told_to_clients(void **state)
{
    char keys[] = "/tmp/shuf-keys-XXXXXX", key[64], text[96];
    (void)state;
    static const char *const rows[][2] = {
        {"backend = cpu\nhost_memory = 8Go\n", ":2: host_memory 8Go: expected"},
        {"backend = gpu\n", ":1: backend gpu: expected auto"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_file_told(rows[i][0], with_path("", rows[i][1]), with_path("", rows[i][1]));
    expect_told("--host-memory", "8Go", EX_USAGE, "host_memory 8Go: ", "host_memory 8Go: ");
    assert_non_null(mkdtemp(keys));
    snprintf(key, sizeof key, "%s/secret", keys);
    shufd_write(key, "no key");
    snprintf(text, sizeof text, "backend = cpu\nkeys = %s\n", keys);
    expect_file_told(text, "secret", "keys: a named key cannot be loaded; the log of the daemon");
    unlink(key);
    rmdir(keys);
}

static void test_wrong_options_are_told_to_clients(void **state)
{
    static const char *const rows[][3] = {
        {"--host-memroy", "1Gi",
         "unrecognized option '--host-memroy'; did you mean --host-memory?"},
        {"--host-memory", NULL, "option '--host-memory' requires an argument; expected "},
        {"host-memory", "1Gi", "argument 'host-memory': expected only options"},
        {"--host", "1Gi", "option '--host' is ambiguous"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_told(rows[i][0], rows[i][1], EX_USAGE, rows[i][2],
                    i != 2 ? rows[i][2] : "options: a mistake on the command line; the log of ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted_client_sends_no_descriptors),
        cmocka_unit_test(test_descriptors_sent_before_the_start),
        cmocka_unit_test(test_passed_socket_is_served),
        cmocka_unit_test(test_options_of_the_socket_do_not_matter),
        cmocka_unit_test(test_removed_file_is_told),
        cmocka_unit_test(test_file_removed_before_the_start_is_told),
        cmocka_unit_test(test_backlog_survives_restart),
        cmocka_unit_test(test_wrong_descriptors_are_refused),
        cmocka_unit_test(test_wrong_number_is_named),
        cmocka_unit_test(test_other_process_is_named),
        cmocka_unit_test(test_second_daemon_is_refused),
        cmocka_unit_test(test_unused_keys_are_named),
        cmocka_unit_test(test_reload_names_unused_keys),
        cmocka_unit_test(test_memory_limit_names_the_unit),
        cmocka_unit_test(test_missing_device_is_told_to_clients),
        cmocka_unit_test(test_flood_does_not_hold_a_daemon_that_cannot_start),
        cmocka_unit_test(test_mistake_is_told_to_clients),
        cmocka_unit_test(test_wrong_options_are_told_to_clients),
    };
    return cmocka_run_group_tests(tests, make_config, remove_config);
}
