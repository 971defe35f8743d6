/* SPDX-License-Identifier: MIT
 *
 * The default path of the socket. Each case has its own process, because the path depends on the
 * environment and the user.
 */
#include "socket.h"

#include "support/cmocka_all.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static char runtime[] = "/tmp/shuf-socket-XXXXXX"; /* a directory with a file shufd.sock in it */

struct row {
    const char *path, *shufd_socket, *service, *xdg; /* NULL: not set */
    uid_t uid;                                       /* 0: root; any other number: another user */
    enum shuf__socket_side side;
    const char *expected; /* the path, or a part of the error */
    shuf_status status;
};

static void set_variable(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* Returns 0 if the row holds. */
static int check_row(const struct row *row)
{
    struct sockaddr_un address;
    struct shuf__error error = {0};
    set_variable("SHUFD_SOCKET", row->shufd_socket);
    set_variable("RUNTIME_DIRECTORY", row->service);
    set_variable("XDG_RUNTIME_DIR", row->xdg);
    if (row->uid != 0 && geteuid() == 0 && seteuid(row->uid) != 0)
        return 1;
    shuf_status status = shuf__socket_address(row->path, row->side, &address, &error);
    const char *got = status == SHUF_OK ? address.sun_path : error.text;
    bool right =
        status == SHUF_OK ? strcmp(got, row->expected) == 0 : strstr(got, row->expected) != NULL;
    if (status == row->status && right)
        return 0;
    fprintf(stderr, "%s: '%s', expected %s: '%s'\n", shuf_status_name(status), got,
            shuf_status_name(row->status), row->expected);
    return 1;
}

static int check_row_in_child(const struct row *row)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(check_row(row));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define SERVE SHUF__SOCKET_SERVE
#define CONNECT SHUF__SOCKET_CONNECT
#define SYSTEM "/run/shufd/shufd.sock"

static void socket_paths_match(void **state)
{
    (void)state;
    static char xdg_socket[64], too_long[200];
    snprintf(xdg_socket, sizeof xdg_socket, "%s/shufd.sock", runtime);
    memset(too_long, 'x', sizeof too_long - 1);
    const struct row rows[] = {
        {"/a", "/b", "/c", runtime, 0, SERVE, "/a", SHUF_OK},
        {"", "/b", "/c", runtime, 0, SERVE, "/b", SHUF_OK},
        {NULL, "/b", NULL, runtime, NOBODY, CONNECT, "/b", SHUF_OK},
        {NULL, "", "/c", runtime, NOBODY, SERVE, "/c/shufd.sock", SHUF_OK},
        {NULL, NULL, "/c:/d", runtime, NOBODY, SERVE, "/c/shufd.sock", SHUF_OK},
        {NULL, NULL, "/c", runtime, NOBODY, CONNECT, xdg_socket,
         SHUF_OK}, /* the variable of a service
                    * does not affect a client */
        {NULL, NULL, NULL, runtime, 0, SERVE, SYSTEM, SHUF_OK},
        {NULL, NULL, NULL, runtime, 0, CONNECT, SYSTEM, SHUF_OK},
        {NULL, NULL, NULL, runtime, NOBODY, SERVE, xdg_socket, SHUF_OK},
        {NULL, NULL, NULL, "/nowhere", NOBODY, SERVE, "/nowhere/shufd.sock", SHUF_OK},
        {NULL, NULL, NULL, "/nowhere", NOBODY, CONNECT, SYSTEM, SHUF_OK},
        {NULL, NULL, NULL, NULL, NOBODY, CONNECT, SYSTEM, SHUF_OK},
        {NULL, NULL, NULL, NULL, NOBODY, SERVE, "XDG_RUNTIME_DIR is not set", SHUF_INVALID},
        {too_long, NULL, NULL, NULL, 0, SERVE, "199 bytes, expected at most 107", SHUF_INVALID},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (geteuid() == 0 || rows[i].uid != 0) /* only root can run the rows of root */
            assert_int_equal(check_row_in_child(&rows[i]), 0);
}

/* This too runs in a process of its own. */
static int check_origins(void)
{
    static const char named[] = "/run/user/7/shufd.sock", system[] = SYSTEM;
    const char *origin;
    int wrong = 0;
#define EXPECT(path, side, text)              \
    origin = shuf__socket_origin(path, side); \
    wrong += !origin || strcmp(origin, text) != 0;
    set_variable("RUNTIME_DIRECTORY", "/run/user/7");
    set_variable("XDG_RUNTIME_DIR", "/run/user/7");
    set_variable("SHUFD_SOCKET", named);
    EXPECT(named, CONNECT, "$SHUFD_SOCKET")
    wrong += shuf__socket_origin(system, CONNECT) != NULL;
    set_variable("SHUFD_SOCKET", NULL);
    EXPECT(named, SERVE, "$RUNTIME_DIRECTORY")
    set_variable("RUNTIME_DIRECTORY", "/run/user/7:/run/user/8");
    EXPECT(named, SERVE, "$RUNTIME_DIRECTORY")
    if (geteuid() == 0) {
        EXPECT(system, SERVE, "the default of root")
        wrong += shuf__socket_origin(named, CONNECT) != NULL || seteuid(NOBODY) != 0;
    }
    EXPECT(named, CONNECT, "$XDG_RUNTIME_DIR")
    EXPECT(system, CONNECT, "the default of the machine")
    wrong += shuf__socket_origin("/run/user/7/x.sock", CONNECT) != NULL;
    set_variable("SHUFD_RUNTIME_DIR", "/srv");
    EXPECT("/srv/shufd.sock", CONNECT, "$SHUFD_RUNTIME_DIR")
#undef EXPECT
    return wrong;
}

static void origins_of_socket_paths_match(void **state)
{
    (void)state;
    int status;
    const pid_t child = fork();
    if (child == 0)
        _exit(check_origins());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A relative path keeps its meaning after a change of the directory. A path of 108 bytes or more
 * would not fit, and stays relative. */
static void relative_path_becomes_absolute(void **state)
{
    (void)state;
    char expected[64], before[4096], fits[108];
    const struct {
        const char *path, *expected;
    } rows[] = {{"s", expected}, {fits, fits}};
    struct sockaddr_un address;
    struct shuf__error error;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(runtime), 0);
    snprintf(expected, sizeof expected, "%s/s", runtime);
    memset(fits, 'x', sizeof fits - 1);
    fits[sizeof fits - 1] = '\0';
    for (int side = SERVE; side <= CONNECT; side++)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            assert_int_equal(shuf__socket_address(rows[i].path, side, &address, &error), SHUF_OK);
            assert_string_equal(address.sun_path, rows[i].expected);
        }
    assert_int_equal(chdir(before), 0);
}

static int make_runtime(void **state)
{
    (void)state;
    char path[64];
    if (!mkdtemp(runtime) || chmod(runtime, 0755) != 0)
        return -1;
    snprintf(path, sizeof path, "%s/shufd.sock", runtime);
    FILE *file = fopen(path, "we");
    return file ? fclose(file) : -1;
}

static int remove_runtime(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "%s/shufd.sock", runtime);
    return unlink(path) | rmdir(runtime);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(socket_paths_match),
                                       cmocka_unit_test(origins_of_socket_paths_match),
                                       cmocka_unit_test(relative_path_becomes_absolute)};
    return cmocka_run_group_tests(tests, make_runtime, remove_runtime) != 0;
}
