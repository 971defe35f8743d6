/* SPDX-License-Identifier: MIT
 *
 * The end of shufctl without a daemon: the exit code of each status, and the command that shufctl
 * proposes to start a daemon.
 */
#include "connect.h"
#include "exit.h"
#include "identity.h"
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Users rely on these numbers, which docs/man/shufctl.1.scd lists. */
static void each_status_has_its_exit_code(void **state)
{
    (void)state;
    static const int codes[] = {
        [SHUF_OK] = 0,        [SHUF_INVALID] = 64,   [SHUF_NO_DAEMON] = 69, [SHUF_BUSY] = 75,
        [SHUF_DENIED] = 77,   [SHUF_NO_MEMORY] = 71, [SHUF_DEVICE] = 71,    [SHUF_VERSION] = 76,
        [SHUF_PROTOCOL] = 76, [SHUF_TIMEOUT] = 75,   [SHUF_CANCELLED] = 75, [SHUF_IO] = 74,
        [SHUF_INTERNAL] = 70,
    };
    static const shuf_status all[] = {
#define X(name, number, message) SHUF_##name,
        SHUF_STATUS_MAP(X)
#undef X
    };
    assert_int_equal(sizeof codes / sizeof *codes, sizeof all / sizeof *all);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(shuf__exit_code(all[i]), codes[all[i]]);
    /* an unknown status, as of a newer daemon */
    assert_int_equal(shuf__exit_code((shuf_status)4711), 70);
}

static char directory[] = "/tmp/shuf-exit-XXXXXX";

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

/* Expects that shufctl proposes a command for DIRECTORY/name that ends with `end`. NULL: expects no
 * command. */
static void expect_command(const char *name, const char *end)
{
    char path[108], command[SHUF__START_COMMAND];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    bool has_command = shuf__start_command(path, path, command);
    assert_int_equal(has_command, end != NULL);
    if (!has_command)
        return;
    char expected[SHUF__START_COMMAND];
    snprintf(expected, sizeof expected, "shufd --socket %s%s%s &", *end == '\'' ? "'" : "",
             directory, *end == '\'' ? end + 1 : end);
    assert_string_equal(command, expected);
}

static void proposed_command_is_quoted(void **state)
{
    (void)state;
    char name[80], quoted[400] = "'/";
    expect_command("s", "/s");
    expect_command("a b", "'/a b'");
    expect_command("$(x)", "'/$(x)'");
    expect_command("it's", "'/it'\\''s'");
    memset(name, '\'', sizeof name);
    name[sizeof name - 1] = '\0';
    for (size_t i = 0; i < sizeof name - 1; i++)
        strcat(quoted, "'\\''");
    expect_command(name, strcat(quoted, "'"));
}

static void make_stale_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strcpy(address.sun_path, path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

/* shufctl proposes a command only if shufd would accept the path. */
static void command_is_proposed_only_if_it_works(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "%s/s", directory);
    expect_command("missing/s", NULL);
    assert_int_equal(mkdir(path, 0700), 0);
    expect_command("s", NULL);
    assert_int_equal(rmdir(path), 0);
    fclose(fopen(path, "we"));
    expect_command("s", NULL);
    expect_command("s/s", NULL);
    assert_int_equal(unlink(path), 0);
    make_stale_socket(path);
    expect_command("s", "/s");
    assert_int_equal(unlink(path), 0);
}

/* The command does not name the default path, because shufd has the same default. It names a path
 * from $SHUFD_SOCKET, because the daemon's environment may not have this variable. */
static void default_socket_is_omitted(void **state)
{
    (void)state;
    char path[64], command[SHUF__START_COMMAND], named[96];
    snprintf(path, sizeof path, "%s/s", directory);
    snprintf(named, sizeof named, "shufd --socket %s &", path);
    setenv("XDG_RUNTIME_DIR", directory, 1);
    unsetenv("SHUFD_SOCKET");
    assert_true(shuf__start_command(path, NULL, command));
    assert_string_equal(command, "shufd &");
    setenv("SHUFD_SOCKET", path, 1);
    assert_true(shuf__start_command(path, NULL, command));
    assert_string_equal(command, named);
    unsetenv("SHUFD_SOCKET");
    unsetenv("XDG_RUNTIME_DIR"); /* without this variable, only root's daemon has a default path */
    if (geteuid() == 0)
        assert_int_equal(seteuid(65534), 0);
    assert_true(shuf__start_command(path, NULL, command));
    assert_string_equal(command, "export SHUFD_SOCKET=~/shufd.sock; shufd &");
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
}

static void make_file(const char *root, const char *path)
{
    char command[512];
    snprintf(command, sizeof command, "mkdir -p \"$(dirname %s%s)\" && : >%s%s", root, path, root,
             path);
    assert_int_equal(system(command), 0);
}

static void write_file(const char *root, const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s", root, path);
    make_file(root, path);
    FILE *file = fopen(full, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void expect_unit_command(const char *start)
{
    char command[SHUF__START_COMMAND];
    assert_true(shuf__start_command("/run/shufd/shufd.sock", "/run/shufd/shufd.sock", command));
    if (strncmp(command, start, strlen(start)) != 0)
        fail_msg("%s: expected %s", command, start);
}

/* The units start the daemon, whatever folder of systemd they are installed in. */
static void command_of_units(void **state)
{
    (void)state;
    static const char *const folders[] = {"/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"};
    char root[96], unit[128], command[128];
    snprintf(root, sizeof root, "%s/root", directory);
    snprintf(command, sizeof command, "rm -r %s", root);
    setenv("SHUFD_UNITS", root, 1);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(unit, sizeof unit, "%s/systemd/system/shufd.target", folders[i]);
        make_file(root, unit);
        assert_int_equal(shuf__is_of_units("/run/shufd/shufd.sock"), i == 1); /* no systemd runs */
        make_file(root, "/run/systemd/system/x");
        assert_true(shuf__is_of_units("/run/shufd/shufd.sock"));
        assert_false(shuf__is_of_units("/tmp/shufd.sock"));
        expect_unit_command("systemd-sysusers; systemctl enable --now shufd.target, as root");
        write_file(root, "/etc/passwd", "root:x:0:0::/:/bin/sh\nshufd:x:997:997::/:/bin/false\n");
        expect_unit_command("systemd-sysusers; ");
        write_file(root, "/etc/group", "shufd:x:997:\n");
        expect_unit_command("systemctl enable --now shufd.target, as root");
        make_file(root, "/etc/systemd/system/multi-user.target.wants/shufd.target");
        expect_unit_command("systemctl restart shufd.target, as root; if it fails, shufctl doctor");
        snprintf(unit, sizeof unit, "%s/run/systemd/system/shufd.socket", root);
        assert_int_equal(symlink("/dev/null", unit), 0);
        expect_unit_command("systemctl unmask shufd.socket shufd.service; systemctl restart");
        assert_int_equal(system(command), 0);
    }
    unsetenv("SHUFD_UNITS");
}

/* Only root can start the units. Another user can start a daemon of its own, except on the socket
 * of the units. */
static void users_first_start_their_own_daemon(void **state)
{
    (void)state;
    static const char path[] = "/run/shufd/shufd.sock",
                      units[] = "systemctl enable --now shufd.target, as root";
    char root[96], remove[128], command[SHUF__START_COMMAND];
    snprintf(root, sizeof root, "%s/root", directory);
    snprintf(remove, sizeof remove, "rm -r %s", root);
    write_file(root, "/etc/passwd", "shufd:x:997:997::/:/bin/false\n");
    write_file(root, "/etc/group", "shufd:x:997:\n");
    make_file(root, "/usr/lib/systemd/system/shufd.target");
    make_file(root, "/run/systemd/system/x");
    setenv("SHUFD_UNITS", root, 1);
    setenv("XDG_RUNTIME_DIR", directory, 1);
    assert_int_equal(chmod(directory, 0755), 0);
    if (geteuid() == 0) {
        expect_unit_command(units);
        assert_int_equal(seteuid(65534), 0);
    }
    assert_true(shuf__start_command(path, NULL, command));
    assert_string_equal(command,
                        "shufd &, or for all users systemctl enable --now shufd.target, as root");
    expect_unit_command(units); /* --socket names the socket of the units */
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
    unsetenv("XDG_RUNTIME_DIR");
    unsetenv("SHUFD_UNITS");
    assert_int_equal(system(remove), 0);
}

/* A signal works only for the daemon's user and root, and systemd must know of a reload of its
 * units. */
static void command_of_reload_works_for_its_reader(void **state)
{
    (void)state;
    char root[96], command[SHUF__START_COMMAND], expected[64];
    shuf_daemon daemon = {.pid = (uint64_t)getpid(), .pid_namespace = shuf__pid_namespace()};
    snprintf(root, sizeof root, "%s/root", directory);
    snprintf(expected, sizeof expected, "kill -HUP %d", (int)getpid());
    shuf__reload_command("/tmp/shufd.sock", &daemon, command);
    assert_string_equal(command, expected);
    if (geteuid() == 0) {
        assert_int_equal(setresuid(65534, 65534, 0), 0);
        daemon.pid = 1;
        shuf__reload_command("/tmp/shufd.sock", &daemon, command);
        assert_int_equal(setresuid(0, 0, 0), 0);
        assert_string_equal(command, "kill -HUP 1, as root or as the user who runs it");
    }
    daemon.pid_namespace++; /* another one: here the PID may be of any process */
    shuf__reload_command("/tmp/shufd.sock", &daemon, command);
    assert_string_equal(command, "send SIGHUP to shufd in its container");
    daemon.pid_namespace = 0;
    shuf__reload_command("/tmp/shufd.sock", &daemon, command);
    assert_string_equal(command, "send SIGHUP to shufd in its container");
    make_file(root, "/run/systemd/system/x");
    make_file(root, "/lib/systemd/system/shufd.target");
    setenv("SHUFD_UNITS", root, 1);
    shuf__reload_command("/run/shufd/shufd.sock", &daemon, command);
    assert_string_equal(command, "systemctl reload shufd.service, as root");
    shuf__reload_command("/run/shufd/GPU-1.sock", &daemon, command);
    assert_string_equal(command, "systemctl reload shufd@GPU-1.service, as root");
    unsetenv("SHUFD_UNITS");
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_status_has_its_exit_code),
        cmocka_unit_test(proposed_command_is_quoted),
        cmocka_unit_test(command_is_proposed_only_if_it_works),
        cmocka_unit_test(default_socket_is_omitted),
        cmocka_unit_test(command_of_units),
        cmocka_unit_test(users_first_start_their_own_daemon),
        cmocka_unit_test(command_of_reload_works_for_its_reader),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
