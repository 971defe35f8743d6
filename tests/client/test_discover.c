/* SPDX-License-Identifier: MIT
 *
 * The daemon that a client finds if it names no socket: by the current CUDA context (a fake
 * libcuda), or by CUDA_VISIBLE_DEVICES. The daemons are real, in a directory that replaces
 * /run/shufd.
 */
#include "fake/cuda.h"
#include "shuf.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/command.h"
#include "support/harness.h"
#include "support/wire.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { DAEMONS = 3 };

/* Two daemons with the GPUs of fake/cuda.c, and a third one without a GPU. */
static struct harness daemons[DAEMONS];
static char directory[64], sockets[DAEMONS][128], gpus[80], closed_gpus[80];
static const char *const names[DAEMONS] = {FAKE_ID_0, FAKE_ID_1, "shufd"};

/* ---- The machine ---- */

static const char hidden_minor[] = "Device Minor: \t 4000000\n"; /* its device file is not there */

static void write_gpu(const char *folder, const char *place, const char *id, const char *minor)
{
    char path[160], text[192];
    snprintf(path, sizeof path, "%s/%s", folder, place);
    assert_int_equal(mkdir(path, 0755), 0);
    strcat(path, "/information");
    snprintf(text, sizeof text, "Model: \t\t Fake\nGPU UUID: \t %s\nBus Type: \t PCIe\n%s", id,
             minor);
    shufd_write(path, text);
}

static int start(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/shuf-discover-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(gpus, sizeof gpus, "%s/gpus", directory);
    snprintf(closed_gpus, sizeof closed_gpus, "%s/closed", directory);
    assert_int_equal(mkdir(gpus, 0755), 0);
    assert_int_equal(mkdir(closed_gpus, 0755), 0);
    write_gpu(gpus, "0000:1a:00.0", "GPU-of-another-job", hidden_minor);
    write_gpu(gpus, "0000:3b:00.0", names[1], ""); /* not the order of CUDA */
    write_gpu(gpus, "0000:86:00.0", names[0], "");
    write_gpu(closed_gpus, "0000:3b:00.0", names[1], hidden_minor);
    write_gpu(closed_gpus, "0000:86:00.0", names[0], hidden_minor);
    for (int i = 0; i < DAEMONS; i++) {
        assert_true(harness_start(&daemons[i], "cpu", NULL));
        snprintf(sockets[i], sizeof sockets[i], "%s/%s.sock", directory, names[i]);
        assert_int_equal(symlink(daemons[i].socket, sockets[i]), 0);
    }
    setenv("SHUFD_RUNTIME_DIR", directory, 1);
    unsetenv("SHUFD_SOCKET");
    unsetenv("XDG_RUNTIME_DIR");
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_DEVICE_ORDER");
    setenv("SHUFD_GPUS", gpus, 1);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    const char *const argv[] = {"rm", "-r", directory, NULL};
    struct command command;
    bool stopped = true;
    for (int i = 0; i < DAEMONS; i++)
        stopped &= harness_stop(&daemons[i]);
    assert_int_equal(command_run(&command, 0, argv), 0);
    command_free(&command);
    return stopped ? 0 : -1;
}

/* A search for a daemon. A child process makes it, because its environment and its loaded libraries
 * must not affect later searches. */
struct attempt {
    const char *visible, *order; /* CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER; NULL: not set */
    int device;                  /* of the current context; -1: none; -2: no libcuda */
    int hidden;                  /* bits of sockets that are missing */
    int expected;                /* number of the expected daemon; -1: none */
    const char *words;           /* part of the error */
};

static void set_variable(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
}

static void make_context(int ordinal)
{
    int device;
    void *context, *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    int (*const get)(int *device, int ordinal) = dlsym(library, "cuDeviceGet");
    int (*const retain)(void **context, int device) = dlsym(library, "cuDevicePrimaryCtxRetain");
    int (*const push)(void *context) = dlsym(library, "cuCtxPushCurrent_v2");
    assert_true(get && retain && push);
    if (ordinal >= 0)
        assert_true(get(&device, ordinal) == 0 && retain(&context, device) == 0 &&
                    push(context) == 0);
}

static void connect_as_attempt(int channel, void *context)
{
    const struct attempt *attempt = context;
    uint64_t daemon = DAEMONS;
    shuf *handle;
    (void)channel;
    set_variable("CUDA_VISIBLE_DEVICES", attempt->visible);
    set_variable("CUDA_DEVICE_ORDER", attempt->order);
    for (int i = 0; i < DAEMONS; i++)
        if (attempt->hidden >> i & 1)
            unlink(sockets[i]);
    if (attempt->device > -2)
        make_context(attempt->device);
    const shuf_status status = shuf_connect(&handle, NULL);
    for (uint64_t i = 0; i < DAEMONS; i++)
        if (strcmp(shuf_socket(handle), sockets[i]) == 0)
            daemon = i;
    const char *hint = strstr(shuf_message(handle), "; start a daemon with shufd(8)");
    if (attempt->expected >= 0)
        assert_true(status == SHUF_OK && (int)daemon == attempt->expected);
    else if (status != SHUF_NO_DAEMON || !strstr(shuf_message(handle), attempt->words))
        fail_msg("%s: %s", shuf_status_name(status), shuf_message(handle));
    else if ((hint != NULL) != (strstr(shuf_message(handle), "/GPU-*.sock (none)") != NULL))
        fail_msg("a hint to start a daemon although others run, or none: %s", shuf_message(handle));
    assert_true((dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY) != NULL) ==
                (attempt->device > -2)); /* the call does not load libcuda */
    shuf_close(handle);
}

static void check_attempt(struct attempt attempt)
{
    const struct child child = child_start(connect_as_attempt, &attempt);
    child_join(&child);
    for (int i = 0; i < DAEMONS; i++)
        if (attempt.hidden >> i & 1)
            assert_int_equal(symlink(daemons[i].socket, sockets[i]), 0);
}

enum { NO_CONTEXT = -1, NO_CUDA = -2, SYSTEM = 2, NONE = -1, HIDE_SYSTEM = 4, HIDE_ALL = 7 };

static void current_context_selects_daemon(void **state)
{
    (void)state;
    check_attempt((struct attempt){.device = 0, .expected = 0});
    check_attempt((struct attempt){.device = 1, .expected = 1});
    check_attempt((struct attempt){/* The context goes before the variable. */
                                   .device = 1,
                                   .visible = names[0],
                                   .expected = 1});
    check_attempt((struct attempt){.device = NO_CONTEXT, .expected = SYSTEM});
    check_attempt((struct attempt){.device = NO_CUDA, .expected = SYSTEM});
    /* This GPU has no instance. */
    check_attempt((struct attempt){.device = 1, .hidden = 2, .expected = SYSTEM});
}

static void visible_devices_select_daemon(void **state)
{
    (void)state;
    char list[128], part[16];
    const int device = NO_CUDA;
    snprintf(list, sizeof list, "%s,%s", names[1], names[0]);
    snprintf(part, sizeof part, "%.8s", names[1]);
    check_attempt((struct attempt){.device = device, .visible = names[0], .expected = 0});
    check_attempt((struct attempt){.device = device, .visible = list, .expected = 1});
    check_attempt((struct attempt){.device = device, .visible = part, .expected = 1});
    check_attempt((struct attempt){
        .device = device, .visible = "GPU-", .expected = SYSTEM}); /* the prefix matches two GPUs */
    check_attempt((struct attempt){.device = device, .visible = "", .expected = SYSTEM});
    check_attempt((struct attempt){.device = device, .visible = "MIG-1", .expected = SYSTEM});
    check_attempt((struct attempt){.device = NO_CONTEXT, .visible = names[1], .expected = 1});
}

/* GPU 1 comes first in the order of the PCI bus. An index in CUDA's own order selects no GPU,
 * because the client does not know that order. */
static void indexes_select_daemon_in_pci_order(void **state)
{
    (void)state;
    const char *const order = "PCI_BUS_ID";
    const int device = NO_CUDA;
    check_attempt(
        (struct attempt){.device = device, .visible = "0", .order = order, .expected = 1});
    check_attempt(
        (struct attempt){.device = device, .visible = "1,0", .order = order, .expected = 0});
    check_attempt(
        (struct attempt){.device = device, .visible = "7", .order = order, .expected = SYSTEM});
    check_attempt((struct attempt){.device = device, .visible = "0", .expected = SYSTEM});
    check_attempt((struct attempt){
        .device = device, .visible = "0", .order = "FASTEST_FIRST", .expected = SYSTEM});
    setenv("SHUFD_GPUS", "/nowhere", 1);
    check_attempt(
        (struct attempt){.device = device, .visible = "0", .order = order, .expected = SYSTEM});
    setenv("SHUFD_GPUS", closed_gpus, 1); /* all GPUs count for a process that may use none */
    check_attempt(
        (struct attempt){.device = device, .visible = "0", .order = order, .expected = 1});
    setenv("SHUFD_GPUS", gpus, 1);
}

static void ambiguous_instances_are_an_error(void **state)
{
    (void)state;
    check_attempt((struct attempt){
        .device = NO_CUDA, .hidden = HIDE_SYSTEM | 1, .expected = 1}); /* the only instance */
    check_attempt(
        (struct attempt){.device = NO_CUDA,
                         .visible = "1",
                         .hidden = HIDE_SYSTEM,
                         .expected = NONE,
                         .words = "not set), CUDA context (none), CUDA_VISIBLE_DEVICES (index 1, "
                                  "which names a GPU only with CUDA_DEVICE_ORDER=PCI_BUS_ID), "});
    check_attempt((struct attempt){
        .device = NO_CUDA,
        .hidden = HIDE_SYSTEM,
        .expected = NONE,
        .words = "/GPU-*.sock (several: choose one by CUDA_VISIBLE_DEVICES=UUID or "
                 "SHUFD_SOCKET)"});
    check_attempt((struct attempt){
        .device = NO_CUDA, .hidden = HIDE_ALL, .expected = NONE, .words = "/GPU-*.sock (none)"});
}

/* A daemon that could not start has lost its socket; the daemons of two other GPUs answer. */
static void missing_daemon_of_named_gpu_is_named(void **state)
{
    (void)state;
    static const char lost[] = "/GPU-*.sock (several, but no daemon of this GPU: ";
    char other[128], unknown[160];
    snprintf(other, sizeof other, "%.60s/GPU-other.sock", directory);
    assert_int_equal(symlink(daemons[2].socket, other), 0);
    snprintf(unknown, sizeof unknown, "CUDA_VISIBLE_DEVICES (index 0: %s), ", names[1]);
    const int hidden = HIDE_SYSTEM | 2;
    check_attempt((struct attempt){.device = 1, .hidden = hidden, .expected = NONE, .words = lost});
    check_attempt((struct attempt){
        .device = NO_CUDA, .visible = names[1], .hidden = hidden, .expected = NONE, .words = lost});
    check_attempt((struct attempt){.device = NO_CUDA,
                                   .visible = "0",
                                   .order = "PCI_BUS_ID",
                                   .hidden = hidden,
                                   .expected = NONE,
                                   .words = unknown});
    check_attempt((struct attempt){.device = NO_CUDA,
                                   .visible = "9",
                                   .order = "PCI_BUS_ID",
                                   .hidden = hidden,
                                   .expected = NONE,
                                   .words = "(index 9: no such GPU; this process may use 2)"});
    check_attempt((struct attempt){.device = NO_CUDA,
                                   .visible = "GPU-",
                                   .hidden = hidden,
                                   .expected = NONE,
                                   .words = "(several: choose one by "});
    assert_int_equal(unlink(other), 0);
}

/* One of two GPUs is broken, and only the other's daemon runs. A client that names the broken GPU
 * must not get the daemon of the other one. */
static void only_daemon_does_not_serve_other_gpus(void **state)
{
    (void)state;
    static const char lost[] = "/GPU-*.sock (one, but no daemon of this GPU: ",
                      perhaps[] = "/GPU-*.sock (one, perhaps of another GPU: ",
                      order[] = "PCI_BUS_ID";
    char by_uuid[128], by_index[128], by_context[128];
    const int hidden = HIDE_SYSTEM | 2;
    snprintf(by_uuid, sizeof by_uuid, "CUDA_VISIBLE_DEVICES (%s), ", names[1]);
    snprintf(by_index, sizeof by_index, "CUDA_VISIBLE_DEVICES (index 0: %s), ", names[1]);
    snprintf(by_context, sizeof by_context, "CUDA context (%s), ", names[1]);
    const struct attempt rows[] = {
        {.device = NO_CUDA, .visible = names[1], .words = by_uuid},
        {.device = NO_CUDA, .visible = names[1], .words = lost},
        {.device = NO_CUDA, .visible = "0", .order = order, .words = by_index},
        {.device = NO_CUDA, .visible = "0", .order = order, .words = lost},
        {.device = NO_CUDA, .visible = "9", .order = order, .words = "(index 9: no such GPU; "},
        {.device = NO_CUDA, .visible = "1", .words = "(index 1, which names a GPU only with "},
        {.device = NO_CUDA, .visible = "1", .words = perhaps},
        {.device = 1, .words = by_context},
        {.device = 1, .words = lost},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct attempt attempt = rows[i];
        attempt.hidden = hidden;
        attempt.expected = NONE;
        check_attempt(attempt);
    }
    check_attempt(
        (struct attempt){.device = NO_CUDA, .visible = names[0], .hidden = hidden, .expected = 0});
    check_attempt((struct attempt){.device = 0, .hidden = hidden, .expected = 0});
}

/* ---- shufctl ---- */

static void expect_status(int code, const char *const *words, const char *option)
{
    const char *const argv[] = {SHUFCTL_PATH, "status", option, NULL};
    struct command command;
    if (command_run(&command, 0, argv) != code)
        fail_msg("status %d: %s", command.status, command.err.bytes);
    for (; *words; words++)
        if (!strstr(command.out.bytes, *words))
            fail_msg("no \"%s\" in:\n%s", *words, command.out.bytes);
    command_free(&command);
}

/* Makes a socket that no process serves. */
static void make_dead_socket(char path[128])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(path, 128, "%.100s/dead", directory);
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

static void status_lists_all_daemons(void **state)
{
    (void)state;
    const char *const table[] = {"SOCKET", names[0], names[1], "shufd.sock", NULL};
    const char *const json[] = {"\"daemons\": [", sockets[0], sockets[1], sockets[2], NULL};
    const char *const one[] = {"daemon ", sockets[1], NULL};
    char dead[128];
    const char *const absent[] = {names[1], "shufd.sock  ", "no answer: socket ", NULL};
    expect_status(0, table, NULL);
    expect_status(0, json, "--json");
    unlink(sockets[0]);
    assert_int_equal(symlink("/nowhere", sockets[0]), 0); /* no socket: not listed */
    unlink(sockets[2]);
    expect_status(0, one, NULL);
    make_dead_socket(dead);
    assert_int_equal(symlink(dead, sockets[2]), 0);
    expect_status(69, absent, NULL);
    assert_int_equal(unlink(sockets[2]), 0);
    unlink(dead);
    assert_int_equal(unlink(sockets[0]), 0);
    assert_int_equal(symlink(daemons[0].socket, sockets[0]), 0);
    assert_int_equal(symlink(daemons[2].socket, sockets[2]), 0);
}

static void make_folder(const char *parent, const char *name)
{
    char path[240];
    snprintf(path, sizeof path, "%s/%s", parent, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static void make_link(const char *units, const char *name, const char *target)
{
    char path[240];
    snprintf(path, sizeof path, "%s/%s", units, name);
    assert_int_equal(symlink(target, path), 0);
}

static void status_lists_wanted_sockets(void **state)
{
    (void)state;
    static const char unit[] = "/usr/lib/systemd/system/shufd@.socket";
    const char *const all[] = {"GPU-lost.sock ", "no answer: socket ", names[0], "shufd.sock ",
                               NULL};
    const char *const json[] = {"/GPU-lost.sock\"", "\"error\": ", NULL};
    const char *const found[] = {names[0], NULL};
    char root[100], units[140];
    snprintf(root, sizeof root, "%s/root", directory);
    snprintf(units, sizeof units, "%s/etc/systemd/system", root);
    make_folder(directory, "root");
    make_folder(root, "etc");
    make_folder(root, "etc/systemd");
    make_folder(root, "etc/systemd/system");
    make_folder(units, "shufd.target.wants");
    make_folder(units, "multi-user.target.wants");
    setenv("SHUFD_UNITS", root, 1);
    make_link(units, "shufd.target.wants/shufd@GPU-lost.socket", unit);
    expect_status(0, found, NULL); /* the target is not enabled */
    make_link(units, "multi-user.target.wants/shufd.target", unit);
    expect_status(69, all, NULL);
    expect_status(69, json, "--json");
    make_link(units, "shufd@GPU-lost.socket", "/dev/null");    /* masked */
    make_link(units, "shufd.target.wants/shufd.socket", unit); /* its socket is there */
    make_link(units, "shufd.target.wants/other.service", unit);
    expect_status(0, found, NULL);
    unsetenv("SHUFD_UNITS");
}

/* No daemon is missing, so shufctl names no command that starts or restarts one. */
static void shufctl_asks_for_a_choice(void **state)
{
    (void)state;
    struct command command;
    const char *const doctor[] = {SHUFCTL_PATH, "doctor", NULL};
    const char *const drop[] = {SHUFCTL_PATH, "drop", "--all", NULL};
    unlink(sockets[2]);
    assert_int_equal(command_run(&command, 0, doctor), 69);
    assert_non_null(strstr(command.out.bytes, "-> GPUs have daemons of their own, so name one: "
                                              "for s in "));
    assert_null(strstr(command.out.bytes, "start one"));
    command_free(&command);
    assert_int_equal(command_run(&command, 0, drop), 69);
    assert_non_null(strstr(command.err.bytes, "several: choose one by CUDA_VISIBLE_DEVICES"));
    assert_null(strstr(command.err.bytes, "start one"));
    command_free(&command);
    assert_int_equal(symlink(daemons[2].socket, sockets[2]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(current_context_selects_daemon),
        cmocka_unit_test(visible_devices_select_daemon),
        cmocka_unit_test(indexes_select_daemon_in_pci_order),
        cmocka_unit_test(ambiguous_instances_are_an_error),
        cmocka_unit_test(missing_daemon_of_named_gpu_is_named),
        cmocka_unit_test(only_daemon_does_not_serve_other_gpus),
        cmocka_unit_test(status_lists_all_daemons),
        cmocka_unit_test(status_lists_wanted_sockets),
        cmocka_unit_test(shufctl_asks_for_a_choice),
    };
    if (getuid() != 0)
        return HARNESS_SKIP; /* another user's default is not in the directory */
    return cmocka_run_group_tests(tests, start, stop);
}
