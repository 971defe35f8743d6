/* SPDX-License-Identifier: MIT
 *
 * The syntax of shufd's configuration and command line, the error of every mistake, and the effect
 * of some keys.
 */
#include "config/config.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/command.h"
#include "support/wire.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- The file ---- */

static void test_config_errors(void **state)
{
    (void)state;
    static const struct {
        const char *config, *text;
    } rows[] = {
        {"queue = 8\nsokcet = /tmp/s\n", "conf:2: sokcet: no such key"},
        {"sokcet = /tmp/s\n", "sokcet: no such key; did you mean socket?"},
        {"colour = red\n", "colour: no such key; shufd --print-config lists them"},
        {"queue = 10m\n",
         "queue 10m: expected a whole number such as 1000, 1e9, 10M or 64Ki; did you mean 10M?"},
        {"cache_time = 10m\n", "cache_time 10m: expected a duration such as 10min, 5s or 50us"},
        {"cache_time = 10m # a comment\n", "us, ms, s, min and h; did you mean 10min?"},
        {"cache_time = -1s\n", "cache_time -1s: expected 0 to 87600h"},
        {"device_cache = lots\n",
         "device_cache lots: expected a whole number below 2^63, such as 2e9 or 8Gi, or whole "
         "percent, 0% to 100%"},
        {"host_memory = 12.5%\n", "host_memory 12.5%: expected a whole number below 2^63"},
        {"host_warm = 10m\n", "or whole percent, 0% to 100%; did you mean 10M?"},
        {"metrics_file = shufd.prom\n",
         "conf:1: metrics_file shufd.prom: expected an absolute path that ends in .prom"},
        {"metrics_file = /tmp/shufd.txt\n", "expected an absolute path that ends in .prom"},
        {"metrics_file = /.prom/x\n", "expected an absolute path that ends in .prom"},
        {"frame_timeout = 5000\n", "frame_timeout 5000: expected 1ms to 1h"},
        {"queue = 0\n", "conf:1: queue 0: expected 1 to 1000000"},
        {"\n\nqueue = many\n", "conf:3: queue many: expected a whole number"},
        {"queue = -1\n", "conf:1: queue -1: expected 1 to 1000000"},
        {"queue = 1.5\n", "conf:1: queue 1.5: expected a whole number, 1 to 1000000"},
        {"host_memory = 1e30\n", "conf:1: host_memory 1e30: expected a whole number below 2^63"},
        {"queue = 1\nclients = 2\nqueue = 3\n", "conf:3: queue 3: given in line 1 already"},
        {"socket_mode = 0888\n", "conf:1: socket_mode 0888: expected octal permissions"},
        {"socket_mode =\n", "conf:1: socket_mode '': expected octal permissions"},
        {"socket_mode = 0\n", "conf:1: socket_mode 0: without permission to write nobody could"},
        {"socket_mode = 0555\n", "expected 0600, 0660, 0666 or another mode with it"},
        {"host_memory = 4Gi# x\n", "conf:1: host_memory 4Gi# x: expected a whole number below"},
        {"host_memory = 4Gi# x\n", "; a comment needs a blank before its '#'"},
        {"cache_time = 5s;x\n", "; a comment needs a blank before its ';'"},
        {"host_memory = \"4Gi\"\n", "host_memory \"4Gi\": expected the value without quotes"},
        {"socket = '/tmp/s'\n", "socket '/tmp/s': expected the value without quotes"},
        {"log_level = loud\n", "conf:1: log_level loud: expected error, warning, info or debug"},
        {"backend =\n", "conf:1: backend '': 0 bytes, expected 1 to 107"},
        {"backend =;cpu\n", "conf:1: backend ;cpu: expected no '#' or ';' at the beginning"},
        {"backend =#cpu\n", "conf:1: backend #cpu: expected no '#' or ';' at the beginning"},
        {"queue = 1\nnonsense\n", "conf:2: expected a line KEY = VALUE"},
        {"[daemon]\nqueue = 1\n", "conf:1: [daemon]: expected no sections"},
        {"queue = 1\n\n  [daemon] # one\n\nqueue = 1\n", "conf:3: [daemon]: expected no sections"},
        {"queue = 1\n[daemon]\n", "conf:2: [daemon]: expected no sections"},
        {"\xEF\xBB\xBF[daemon]\nqueue = 1\n", "conf:1: [daemon]: expected no sections"},
    };
    struct harness h;
    char path[HARNESS_PATH + 8];
    const char *arguments[] = {"--config", path, "--print-config", NULL};
    assert_true(harness_prepare(&h, harness_backend, NULL));
    snprintf(path, sizeof path, "%s/conf", h.directory);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        shufd_write(path, rows[i].config);
        shufd_expect_exit(arguments, EX_CONFIG, rows[i].text);
    }
    unlink(path);
    shufd_expect_exit(arguments, EX_CONFIG, strerror(ENOENT));
    assert_true(harness_stop(&h));
}

static void expect_file(const char *path, const char *bytes, size_t size, int code,
                        const char *text)
{
    const char *arguments[] = {"--config", path, "--print-config", NULL};
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    shufd_expect_exit(arguments, code, text);
}

/* The bytes of a file: blanks at the begin of a line, long lines, NUL bytes, ends of lines. */
static void test_config_bytes(void **state)
{
    (void)state;
    static const char indented[] = "queue = 5\n \t clients = 6\n\t# comment\n   ",
                      with_nul[] = "queue = 5\nclients = 5\0\n", binary[] = "\1\2\0",
                      windows[] = "\xEF\xBB\xBFqueue = 5\r\nclients = 6\r\n",
                      cut[] = "queue = 5\nclients = 6 ; and no end",
                      hashes[] = "queue = 5 # five\nclients = 6\t#six\nsocket = /a#b # c";
    static char long_line[600];
    struct harness h;
    char path[HARNESS_PATH + 8];
    assert_true(harness_prepare(&h, harness_backend, NULL));
    snprintf(path, sizeof path, "%s/conf", h.directory);
    expect_file(path, indented, sizeof indented - 1, EX_OK, "\nqueue = 5\n");
    expect_file(path, indented, sizeof indented - 1, EX_OK, "\nclients = 6\n");
    expect_file(path, windows, sizeof windows - 1, EX_OK, "\nclients = 6\n");
    expect_file(path, cut, sizeof cut - 1, EX_OK, "\nclients = 6\n");
    expect_file(path, hashes, sizeof hashes - 1, EX_OK, "\nqueue = 5\n");
    expect_file(path, hashes, sizeof hashes - 1, EX_OK, "\nclients = 6\n");
    expect_file(path, hashes, sizeof hashes - 1, EX_OK, "\nsocket = /a#b\n");
    expect_file(path, with_nul, sizeof with_nul - 1, EX_CONFIG,
                "conf:2: a NUL byte: expected text");
    expect_file(path, binary, sizeof binary - 1, EX_CONFIG, "conf:1: a NUL byte: expected text");
    memset(long_line, 'x', sizeof long_line);
    memcpy(long_line, "\n # ", 4);
    memcpy(long_line + 500, "\nclients = 6\n", 13);
    expect_file(path, long_line, 513, EX_OK, "\nclients = 6\n");
    memcpy(long_line, "\nqueue = ", 9);
    expect_file(path, long_line, 513, EX_CONFIG, "conf:2: line of 199 bytes or more");
    memset(long_line, ' ', 300);
    memcpy(long_line + 290, "queue = 7\n", 10);
    expect_file(path, long_line, 300, EX_OK, "\nqueue = 7\n");
    assert_true(harness_stop(&h));
}

static void test_shipped_config(void **state)
{
    (void)state;
    static char printed[16384], shipped[16384], again[16384];
    const char *defaults[] = {"--print-config", NULL};
    const char *of_file[] = {"--config", SHUFD_CONF, "--print-config", NULL};
    assert_int_equal(harness_run(defaults, printed, sizeof printed), 0);
    shufd_read(SHUFD_CONF, shipped, sizeof shipped);
    assert_string_equal(printed, shipped);
    assert_int_equal(harness_run(of_file, again, sizeof again), 0);
    assert_string_equal(again, shipped);
}

static void test_printed_config_is_in_force(void **state)
{
    (void)state;
    struct harness h;
    char path[HARNESS_PATH + 8];
    const char *arguments[] = {"--config", path, "--socket", "/x/y", "--print-config", NULL};
    assert_true(harness_prepare(&h, harness_backend, NULL));
    snprintf(path, sizeof path, "%s/conf", h.directory);
    shufd_write(path, "device_memory = 8GiB\nhost_memory = 10M\nsocket = /a/b\nsocket_mode = 600\n"
                      "cache_time = 90\nspin_time = 0.5ms\ndrain_timeout = 120s\n");
    shufd_expect_exit(arguments, EX_OK, "\ndevice_memory = 8Gi\n");
    shufd_expect_exit(arguments, EX_OK, "\nhost_memory = 10000000\n");
    shufd_expect_exit(arguments, EX_OK, "\ncache_time = 90s\n");
    shufd_expect_exit(arguments, EX_OK, "\nspin_time = 500us\n");
    shufd_expect_exit(arguments, EX_OK, "\ndrain_timeout = 2min\n");
    shufd_expect_exit(arguments, EX_OK, "\nsocket = /x/y\n");
    shufd_expect_exit(arguments, EX_OK, "\nsocket_mode = 0600\n");
    assert_true(harness_stop(&h));
}

/* A read from a pipe could wait forever, and a read from a device could never end. */
static void test_config_must_be_a_file(void **state)
{
    (void)state;
    struct harness h;
    char pipe[HARNESS_PATH + 8], large[HARNESS_PATH + 8];
    const char *of_pipe[] = {"--config", pipe, "--print-config", NULL};
    const char *of_device[] = {"--config", "/dev/zero", "--print-config", NULL};
    const char *of_directory[] = {"--config", "/", "--print-config", NULL};
    const char *of_large[] = {"--config", large, "--print-config", NULL};
    assert_true(harness_prepare(&h, harness_backend, NULL));
    snprintf(pipe, sizeof pipe, "%s/pipe", h.directory);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    shufd_expect_exit(of_pipe, EX_CONFIG, "pipe: not a regular file");
    shufd_expect_exit(of_device, EX_CONFIG, "/dev/zero: not a regular file");
    shufd_expect_exit(of_directory, EX_CONFIG, "/: not a regular file");
    snprintf(large, sizeof large, "%s/conf", h.directory);
    shufd_write(large, "# log\n");
    assert_int_equal(truncate(large, 2 << 20), 0);
    shufd_expect_exit(of_large, EX_CONFIG, "/conf: larger than 1 MiB, expected a few lines");
    assert_true(harness_stop(&h));
}

/* ---- The command line ---- */

static void test_command_line(void **state)
{
    (void)state;
    const char *version[] = {"--version", NULL};
    const char *help[] = {"--help", NULL};
    const char *short_help[] = {"-h", NULL};
    const char *short_version[] = {"-V", NULL};
    const char *mistyped[] = {"--sokcet", "/tmp/s", NULL};
    const char *gpu[] = {"--gpu", "0", NULL};
    const char *unknown[] = {"--nonsense", NULL};
    const char *extra[] = {"argument", NULL};
    const char *no_backend[] = {"--backend", "abacus", "--socket", "/tmp/none", "--check", NULL};
    const char *check[] = {"--backend", harness_backend, "--socket", "/tmp/none", "--check", NULL};
    /* no socket can be at these paths */
    const char *no_socket[] = {"--backend", "cpu", "--socket", "/dev/null", "--check", NULL};
    const char *service[] = {"--backend", "cpu", "--socket", "/dev/null", "--check-service", NULL};
    shufd_expect_exit(version, EX_OK, "shufd ");
    shufd_expect_exit(help, EX_OK, "--print-config");
    shufd_expect_exit(short_help, EX_OK, "--print-config");
    shufd_expect_exit(short_version, EX_OK, "shufd ");
    shufd_expect_exit(mistyped, EX_USAGE, "unrecognized option '--sokcet'; did you mean --socket?");
    shufd_expect_exit(gpu, EX_USAGE, "unrecognized option '--gpu'; did you mean --backend?");
    shufd_expect_exit(unknown, EX_USAGE, "nonsense");
    shufd_expect_exit(extra, EX_USAGE, "argument 'argument': expected only options");
    shufd_expect_exit(no_backend, EX_USAGE, "backend abacus: expected auto, cpu or cuda");
    shufd_expect_exit(check, EX_OK, harness_backend);
    shufd_expect_exit(no_socket, EX_CANTCREAT, "socket /dev/null: the file is not a socket");
    shufd_expect_exit(service, EX_OK, "cpu");
}

/* Every key of the file is also an option of the command line. */
static void test_key_options(void **state)
{
    (void)state;
    const char *given[] = {"--no-config", "--host-cache",  "3Gi",   "--cache-time",
                           "90",          "--socket-mode", "600",   "-b",
                           "cpu",         "--log-level",   "debug", "--print-config",
                           NULL};
    const char *wrong[] = {"--queue", "0", "--print-config", NULL};
    const char *help[] = {"--help", NULL};
    shufd_expect_exit(given, EX_OK, "\nhost_cache = 3Gi\n");
    shufd_expect_exit(given, EX_OK, "\ncache_time = 90s\n");
    shufd_expect_exit(given, EX_OK, "\nsocket_mode = 0600\n");
    shufd_expect_exit(given, EX_OK, "\nbackend = cpu\n");
    shufd_expect_exit(given, EX_OK, "\nlog_level = debug\n");
    shufd_expect_exit(wrong, EX_USAGE, "queue 0: expected 1 to 1000000");
    shufd_expect_exit(help, EX_OK, "--device-cache=SIZE");
}

/* shufd finds these mistakes of the command line. An empty or missing value does not select a
 * default. */
static void test_wrong_arguments_are_refused(void **state)
{
    (void)state;
    const char *empty_socket[] = {"--socket", "", "--check", NULL};
    const char *no_keys[] = {"--backend", "cpu",      "--socket", "/tmp/none",
                             "--keys",    "/nowhere", "--check",  NULL};
    const char *no_file[] = {"--config", "/nowhere/conf", "--check", NULL};
    const char *no_value[] = {"--config", NULL};
    shufd_expect_exit(empty_socket, EX_USAGE, "--socket '': expected the path of a socket");
    shufd_expect_exit(no_keys, EX_CONFIG, "keys /nowhere: No such file or directory");
    shufd_expect_exit(no_file, EX_CONFIG,
                      "configuration /nowhere/conf: No such file or directory; expected a file ");
    shufd_expect_exit(no_value, EX_USAGE, "requires an argument; expected --config FILE");
}

/* Each key of a number, a size or a time says what 0 means, if it accepts 0. */
static void test_zeros_are_documented(void **state)
{
    (void)state;
    static struct shuf__config config;
    struct shuf__error error;
    unsigned zeros = 0;
    for (int key = 0; key < SHUF__CONFIG_KEYS; key++) {
        const struct shuf__config_help help = shuf__config_help((enum shuf__config_key)key);
        shuf__config_init(&config);
        const bool counts = strcmp(help.value, "NUMBER") == 0 || strcmp(help.value, "SIZE") == 0 ||
                            strcmp(help.value, "TIME") == 0;
        const bool accepts = counts && shuf__config_set(&config, help.name, "0", &error) == SHUF_OK;
        if (accepts != (strstr(help.text, "0: ") != NULL))
            fail_msg("%s: %s", help.name, help.text);
        zeros += accepts;
    }
    assert_true(zeros > 0);
}

static void test_full_output_is_an_error(void **state)
{
    (void)state;
    static const char *const commands[] = {
        SHUFD_PATH " --print-config >/dev/full",
        SHUFD_PATH " --backend cpu --socket /tmp/none --check >/dev/full",
        SHUFD_PATH " --help >/dev/full",
        SHUFD_PATH " --print-config >&-",
    };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        shufd_expect_code(system(commands[i]), EX_IOERR);
}

/* shufd starts with closed standard streams. No file or socket of the daemon gets their descriptor
 * numbers. */
static void test_closed_streams(void **state)
{
    (void)state;
    struct harness h;
    struct command c;
    char target[64] = "", link[64];
    const char *const argv[] = {"sh",
                                "-c",
                                "exec \"$@\" <&- >&- 2>&-",
                                "sh",
                                SHUFD_PATH,
                                "--no-config",
                                "--socket",
                                h.socket,
                                "--backend",
                                harness_backend,
                                NULL};
    snprintf(h.socket, sizeof h.socket, "/tmp/shuf-closed-%d", (int)getpid());
    command_start(&c, 0, argv);
    for (int waited = 0, fd = -1; (fd = harness_connect(h.socket)) < 0 || close(fd); waited++) {
        assert_true(waited < HARNESS_WAIT_MS);
        usleep(1000);
    }
    struct wire *w = wire_greet(&h);
    for (int fd = 0; fd <= 2; fd++) {
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)c.pid, fd);
        const ssize_t length = readlink(link, target, sizeof target - 1);
        assert_true(length > 0);
        target[length] = '\0';
        assert_string_equal(target, "/dev/null");
    }
    wire_check_alive(w);
    wire_close(w);
    kill(c.pid, SIGTERM);
    command_finish(&c);
    assert_int_equal(c.status, 0);
    command_free(&c);
}

/* ---- Warnings ---- */

static bool start_warns(const char *memory, const char *warning)
{
    struct harness h;
    char log[4096];
    const char *options[] = {"--host-memory", memory, NULL};
    assert_true(harness_start(&h, "cpu", options));
    shufd_await(h.log, log, sizeof log, "listening on ");
    assert_true(harness_stop(&h));
    return strstr(log, warning);
}

/* A limit below one block would fail with the first request, so shufd warns at its start. */
static void test_small_budget_warns(void **state)
{
    (void)state;
    const char *check[] = {"--backend",     "cpu", "--socket", "/tmp/none",
                           "--host-memory", "1Mi", "--check",  NULL};
    shufd_expect_exit(check, EX_OK, "host_memory 1Mi: below 2 MiB only small results fit");
    assert_true(start_warns("1Mi", ": below 2 MiB "));
    assert_true(start_warns("0%", ": below 2 MiB "));
    assert_false(start_warns("2Mi", ": below 2 MiB "));
}

static void test_small_user_memory_warns(void **state)
{
    (void)state;
    const char *check[] = {"--backend",     "cpu", "--socket", "/tmp/none",
                           "--user-memory", "50",  "--check",  NULL};
    char text[1024];
    shufd_expect_exit(check, EX_OK, "user_memory 50: below 2 MiB a user has only");
    static const char *const intended[] = {"50%", "0", "2Mi"};
    for (size_t i = 0; i < sizeof intended / sizeof intended[0]; i++) {
        check[5] = intended[i];
        assert_int_equal(harness_run(check, text, sizeof text), 0);
        assert_null(strstr(text, "user_memory"));
    }
}

static void test_missing_directory_of_metrics_warns(void **state)
{
    (void)state;
    const char *check[] = {
        "--backend",          "cpu",     "--socket", "/tmp/none", "--metrics-file",
        "/nowhere/%i/a.prom", "--check", NULL};
    char text[2048];
    shufd_expect_exit(check, EX_OK,
                      "metrics_file /nowhere/%i/a.prom: directory /nowhere/none: No such file");
    check[5] = geteuid() == 0 ? "/a.prom" : "/tmp/a.prom";
    assert_int_equal(harness_run(check, text, sizeof text), 0);
    assert_null(strstr(text, "metrics"));
}

/* A warning about a value of the file names its line. */
static void test_warnings_name_the_line(void **state)
{
    (void)state;
    char file[] = "/tmp/shufd-warning-XXXXXX", expected[128];
    const int fd = mkstemp(file);
    assert_true(fd >= 0 && dprintf(fd, "\nhost_memory = 1Mi\n") > 0);
    close(fd);
    const char *check[] = {"--backend", "cpu", "--socket", "/tmp/none",
                           "--config",  file,  "--check",  NULL};
    snprintf(expected, sizeof expected,
             "%s:2: host_memory 1Mi: below 2 MiB only small results fit; expected 2Mi or more, or "
             "a part such as 25%%",
             file);
    shufd_expect_exit(check, EX_OK, expected);
    unlink(file);
}

static void test_budget_beyond_machine_warns(void **state)
{
    (void)state;
    const char *check[] = {"--backend",     "cpu",   "--socket", "/tmp/none",
                           "--host-memory", "100Ti", "--check",  NULL};
    shufd_expect_exit(check, EX_OK,
                      "host_memory 100Ti: more than the machine or the control group has, ");
    check[5] = "102400Gi";
    shufd_expect_exit(check, EX_OK,
                      "host_memory 102400Gi (100 TiB): more than the machine or the control group");
    assert_true(start_warns("100Ti", "host_memory 100Ti: more than the machine "));
    assert_false(start_warns("100%", ": more than "));
}

static void test_too_many_threads_warn(void **state)
{
    (void)state;
    static const char warning[] = "threads 4096: more than the ";
    char text[4096];
    const char *many[] = {"--backend", "cpu",  "--socket", "/tmp/none",
                          "--threads", "4096", "--check",  NULL};
    const char *one[] = {"--backend", "cpu", "--socket", "/tmp/none",
                         "--threads", "1",   "--check",  NULL};
    if (sysconf(_SC_NPROCESSORS_ONLN) >= 4096)
        skip();
    shufd_expect_exit(many, EX_OK, warning);
    assert_int_equal(harness_run(one, text, sizeof text), 0);
    assert_null(strstr(text, "threads 1: "));
}

/* Not every OpenMP binds a process before main(), so this process binds itself. */
static void test_binding_of_openmp_warns(void **state)
{
    (void)state;
    char text[4096];
    const char *check[] = {"--backend", "cpu", "--socket", "/tmp/none", "--check", NULL};
    cpu_set_t all, first;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2 || !CPU_ISSET(0, &all))
        skip();
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    assert_int_equal(sched_setaffinity(0, sizeof first, &first), 0);
    setenv("OMP_PROC_BIND", "true", 1);
    shufd_expect_exit(check, EX_OK, "$OMP_PROC_BIND is true: OpenMP binds shufd to 1 of ");
    setenv("OMP_PROC_BIND", "false", 1);
    assert_int_equal(harness_run(check, text, sizeof text), 0);
    assert_null(strstr(text, "OMP_PROC_BIND"));
    unsetenv("OMP_PROC_BIND");
    sched_setaffinity(0, sizeof all, &all);
}

/* --check warns of a pool that exceeds the memory limit, because the daemon could never fill it. */
static void test_large_pool_warns(void **state)
{
    (void)state;
    const char *check[] = {"--backend",   "cpu",  "--socket", "/tmp/none",
                           "--host-warm", "99Ti", "--check",  NULL};
    const char *fits[] = {"--backend",   "cpu", "--socket", "/tmp/none",
                          "--host-warm", "25%", "--check",  NULL};
    char text[1024];
    shufd_expect_exit(check, EX_OK, "host_warm 99Ti: more than host_memory = 25% (");
    assert_int_equal(harness_run(fits, text, sizeof text), 0);
    assert_null(strstr(text, "host_warm"));
    /* a quarter of the memory, divided by the number of daemons, is 64 MiB for each */
    check[5] = "128Mi";
    snprintf(text, sizeof text, "%ld", sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGE_SIZE) >> 28);
    setenv("SHUFD_INSTANCES", text, 1);
    shufd_expect_exit(check, EX_OK, "host_warm 128Mi: more than host_memory = 25% (");
    unsetenv("SHUFD_INSTANCES");
}

/* ---- The socket and the backend ---- */

/* The line of an empty `socket =` is not the cause. */
static void expect_no_line_of_empty_socket(void)
{
    struct harness h;
    char conf[HARNESS_PATH + 8];
    const char *const arguments[] = {"--config", conf, "--backend", "cpu", NULL};
    assert_true(harness_prepare(&h, harness_backend, NULL));
    snprintf(conf, sizeof conf, "%s/conf", h.directory);
    shufd_write(conf, "socket =\n");
    shufd_expect_exit(arguments, EX_CANTCREAT, "error: socket /nowhere/s: ");
    assert_true(harness_stop(&h));
}

static void test_socket_variable_is_named(void **state)
{
    (void)state;
    static const char *const arguments[] = {"--no-config", "--backend", "cpu", NULL};
    static const char *const named[] = {"--no-config", "--backend",  "cpu",
                                        "--socket",    "/nowhere/s", NULL};
    char text[4096], too_long[200];
    memset(too_long, 'x', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    setenv("SHUFD_SOCKET", "/nowhere/s", 1);
    shufd_expect_exit(arguments, EX_CANTCREAT, "; $SHUFD_SOCKET sets this path");
    assert_int_not_equal(harness_run(named, text, sizeof text), 0);
    assert_null(strstr(text, "SHUFD_SOCKET"));
    expect_no_line_of_empty_socket();
    setenv("SHUFD_SOCKET", too_long, 1);
    shufd_expect_exit(arguments, EX_CONFIG, "; $SHUFD_SOCKET sets this path");
    unsetenv("SHUFD_SOCKET");
}

static void test_wrong_instances_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"zero", "0", "-1", "", "1e9"};
    const char *check[] = {"--backend", "cpu", "--socket", "/tmp/none", "--check", NULL};
    const char *start[] = {"--backend", "cpu", "--socket", "/tmp/none", NULL};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[128];
        setenv("SHUFD_INSTANCES", wrong[i], 1);
        snprintf(text, sizeof text, "SHUFD_INSTANCES %s: expected the number of daemons",
                 *wrong[i] ? wrong[i] : "''");
        shufd_expect_exit(check, EX_CONFIG, text);
        shufd_expect_exit(start, EX_CONFIG, text);
    }
    unsetenv("SHUFD_INSTANCES");
}

/* shufd reports a wrong option first, even if a running daemon uses the socket. */
static void test_wrong_backend_beside_running_daemon(void **state)
{
    (void)state;
    struct harness h;
    assert_true(harness_start(&h, "cpu", NULL));
    const char *unknown[] = {"--socket", h.socket, "--backend", "gpu", NULL};
    const char *level[] = {"--socket", h.socket, "--backend", "cpu:abacus", NULL};
    const char *right[] = {"--socket", h.socket, "--backend", "cpu", NULL};
    shufd_expect_exit(unknown, EX_USAGE, "backend gpu: expected auto, cpu or cuda");
    shufd_expect_exit(level, EX_USAGE, "backend cpu:abacus: expected");
    shufd_expect_exit(right, EX_CANTCREAT, "in use");
    assert_true(harness_stop(&h));
}

/* ---- --check ---- */

/* A bad value has the same error with and without --check. */
static void expect_bad_config(const char *path, const char *socket, int code, const char *text)
{
    const char *check[] = {"--config", path, "--socket", socket, "--check", NULL};
    const char *start[] = {"--config", path, "--socket", socket, NULL};
    shufd_expect_exit(check, code, text);
    shufd_expect_exit(start, code, text);
}

/* The file and the option both have a bad value. The option overrides the file, so the error names
 * the option. */
static void expect_option_error(const char *path, const char *socket)
{
    const char *arguments[] = {"--config", path,    "--socket", socket,
                               "--keys",   "/none", "--check",  NULL};
    char text[1024];
    shufd_write(path, "keys = /nowhere\n");
    harness_run(arguments, text, sizeof text);
    assert_non_null(strstr(text, "keys /none: No such file or directory"));
    assert_null(strstr(text, "conf:"));
}

static void test_check(void **state)
{
    (void)state;
    struct harness h;
    char path[HARNESS_PATH + 8], missing[HARNESS_PATH + 16];
    assert_true(harness_prepare(&h, harness_backend, NULL));
    snprintf(path, sizeof path, "%s/conf", h.directory);
    snprintf(missing, sizeof missing, "%s/none/s", h.directory);
    shufd_write(path, "socket_group = no-such-group\n");
    expect_bad_config(path, h.socket, EX_CONFIG,
                      "/conf:1: socket_group no-such-group: no such group; expected");
    shufd_write(path, "queue = 9\nbackend = cpu:abacus\n");
    expect_bad_config(path, h.socket, EX_CONFIG, "/conf:2: backend cpu:abacus: expected");
    shufd_write(path, "\nkeys = /nowhere\n");
    expect_bad_config(path, h.socket, EX_CONFIG,
                      "/conf:2: keys /nowhere: No such file or directory");
    expect_option_error(path, h.socket);
    shufd_write(path, "backend = cpu\n");
    expect_bad_config(path, missing, EX_CANTCREAT, "/none: ");
    shufd_write(h.socket, "precious");
    expect_bad_config(path, h.socket, EX_CANTCREAT, "the file is not a socket");
    assert_true(harness_stop(&h));
}

/* Runs shufd as root without CAP_CHOWN, or as the user of the test. */
static void expect_refused_group(const char *conf, const char *socket, const char *option)
{
    struct command c;
    const char *const argv[] = {
        "setpriv",  "--bounding-set", "-chown",    SHUFD_PATH, "--config", conf,
        "--socket", socket,           "--backend", "cpu",      option,     NULL};
    assert_int_equal(command_run(&c, 0, geteuid() == 0 ? argv : argv + 3), EX_CONFIG);
    if (!strstr(c.err.bytes, "conf:1: socket_group nogroup: user ") ||
        !strstr(c.err.bytes, "expected a group with this user as a member, or CAP_CHOWN"))
        fail_msg("%s", c.err.bytes);
    command_free(&c);
}

static void test_user_must_be_in_socket_group(void **state)
{
    (void)state;
    struct harness h;
    char conf[HARNESS_PATH + 8];
    if (!getgrnam("nogroup"))
        skip();
    assert_true(harness_prepare(&h, harness_backend, NULL));
    snprintf(conf, sizeof conf, "%s/conf", h.directory);
    shufd_write(conf, "socket_group = nogroup\n");
    expect_refused_group(conf, h.socket, "--check");
    expect_refused_group(conf, h.socket, NULL);
    assert_true(harness_stop(&h));
}

/* Runs the check, and expects that it warns of the file, or does not. */
static void expect_warning_of_root(const char *const *arguments, const char *words, bool warns)
{
    char text[4096];
    assert_int_equal(harness_run(arguments, text, sizeof text), 0);
    if ((strstr(text, words) != NULL) != warns)
        fail_msg("%s%s in:\n%s", warns ? "no " : "", words, text);
}

static void test_key_files_of_root_warn(void **state)
{
    (void)state;
    struct harness h;
    char keys[HARNESS_PATH + 8], key[HARNESS_PATH + 16], words[HARNESS_PATH + 64];
    const char *const arguments[] = {"--no-config", "--keys", keys,      "--socket", h.socket,
                                     "--backend",   "cpu",    "--check", NULL};
    if (geteuid() != 0)
        skip();
    assert_true(harness_prepare(&h, harness_backend, NULL));
    snprintf(keys, sizeof keys, "%s/keys", h.directory);
    snprintf(key, sizeof key, "%s/keys/a", h.directory);
    assert_int_equal(mkdir(keys, 0700), 0);
    shufd_write(key, "000102030405060708090a0b0c0d0e0f");
    assert_int_equal(chmod(key, 0600), 0);
    snprintf(words, sizeof words, "key file %s: only root can read it, mode 0600; the", key);
    expect_warning_of_root(arguments, words, true);
    expect_warning_of_root(arguments, "/keys: only root can read this directory, mode 0700", true);
    assert_int_equal(chmod(keys, 0755) | chown(key, 65534, 65534), 0);
    expect_warning_of_root(arguments, words, false);
    expect_warning_of_root(arguments, "/keys: only root can read this directory", false);
    unlink(key);
    rmdir(keys);
    assert_true(harness_stop(&h));
}

static void test_file_and_directory_of_root_warn(void **state)
{
    (void)state;
    struct harness h;
    char conf[HARNESS_PATH + 8], words[HARNESS_PATH + 64];
    const char *const arguments[] = {"--config",  conf,  "--socket", h.socket,
                                     "--backend", "cpu", "--check",  NULL};
    static const char of_file[] = "/conf: only root can read it, mode 0600; the service's ";
    if (geteuid() != 0)
        skip();
    assert_true(harness_prepare(&h, harness_backend, NULL));
    snprintf(conf, sizeof conf, "%s/conf", h.directory);
    snprintf(words, sizeof words, "/conf: only root can search its directory %s, mode 0750",
             h.directory);
    shufd_write(conf, "queue = 9\n");
    assert_int_equal(chmod(conf, 0600) | chmod(h.directory, 0750), 0);
    expect_warning_of_root(arguments, of_file, true);
    expect_warning_of_root(arguments, words, true);
    assert_int_equal(chmod(conf, 0644) | chmod(h.directory, 0711), 0);
    expect_warning_of_root(arguments, "only root can read it", false);
    expect_warning_of_root(arguments, words, false);
    assert_true(harness_stop(&h));
}

/* ---- Who can raise a limit of memory ---- */

/* After a reload, a warning names the line of the new file. */
static void test_reloaded_key_has_its_new_line(void **state)
{
    (void)state;
    static struct shuf__config config, reloaded;
    struct shuf__error error = {0};
    shuf__config_init(&config);
    shuf__config_init(&reloaded);
    snprintf(config.file, sizeof config.file, "conf");
    config.line[SHUF__CONFIG_clients] = 1;
    reloaded.line[SHUF__CONFIG_clients] = 5;
    shuf__config_update(&config, &reloaded);
    shuf__fail(&error, SHUF_INVALID, "clients 5000: only 137 fit");
    assert_string_equal(shuf__config_locate(&config, &error), "conf:5: clients 5000: only 137 fit");
}

static void test_memory_limit_names_the_key(void **state)
{
    (void)state;
    struct harness h;
    enum { MI = 1 << 20 };
    wire_start(&h, harness_backend, "host_memory = 16Mi\ndevice_memory = 16Mi\n");
    struct wire *w = wire_greet(&h);
    struct shuf__result_message permute =
        wire_permutation(5 * MI, SHUF__TRANSPORT__TRANSPORT_INLINE);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_NO_MEMORY, "/conf (then reload shufd by SIGHUP) or start ");
    wire_check_alive(w); /* leaves an idle block */
    assert_int_equal(wire_status(&h).memory_limit, 16 * MI);

    /* Two results, each of more than half of the memory. The second fits after the client has read
     * the first. */
    struct wire *other = wire_greet(&h);
    permute.permutation.n = 10 * MI / 4;
    wire_send_result(w, &permute);
    uint64_t bytes = wire_expect(w, SHUF_OK, "")->payload_bytes;
    permute.permutation.seed++;
    wire_send_result(other, &permute);
    wire_expect(other, SHUF_BUSY, "memory, 10 MiB of 16 MiB are held by this user's own ");
    wire_read_permutation(w, bytes, permute.permutation.n);
    wire_await_memory_free(&h);
    wire_send_result(other, &permute);
    wire_expect(other, SHUF_OK, "");
    /* The second result reuses the block of the first. */
    assert_in_range(wire_status(&h).memory_used, 10 * MI + 1, 12 * MI);
    wire_close(other);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* Another user can neither write the file nor send the signal. */
static void expect_advice_for_others(int channel, void *context)
{
    const struct harness *h = context;
    struct wire *w = wire_greet(h);
    struct shuf__result_message permute =
        wire_permutation(5 << 20, SHUF__TRANSPORT__TRANSPORT_INLINE);
    (void)channel;
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_NO_MEMORY, ": let uid 0, who runs shufd, raise ");
    wire_close(w);
}

static void test_memory_limit_names_who_can_raise_it(void **state)
{
    (void)state;
    struct harness h;
    if (geteuid() != 0)
        skip();
    wire_start(&h, harness_backend,
               "host_memory = 16Mi\ndevice_memory = 16Mi\nsocket_mode = 0666\n");
    assert_int_equal(chmod(h.directory, 0755), 0);
    const struct child child = child_start_as(CHILD_NOBODY, expect_advice_for_others, &h);
    child_join(&child);
    assert_true(harness_stop(&h));
}

/* A program can start a daemon and set its limits. The error then names the argument of that
 * program, not a configuration file. */
static void test_memory_limit_names_the_starter(void **state)
{
    (void)state;
    struct harness h;
    setenv("SHUFD_STARTER", "shufd.serve()", 1);
    wire_start(&h, harness_backend, "host_memory = 16Mi\ndevice_memory = 16Mi\n");
    unsetenv("SHUFD_STARTER");
    struct wire *w = wire_greet(&h);
    struct shuf__result_message permute =
        wire_permutation(5 << 20, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_NO_MEMORY,
                "the limit is 16 MiB: pass a larger host_memory to shufd.serve(), which started");
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* ---- The log ---- */

static void send_gauss(struct wire *w)
{
    struct shuf__result_message stream =
        wire_result(SHUF__RESULT__WHAT_STREAM, SHUF__TRANSPORT__TRANSPORT_NONE);
    stream.stream.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS;
    stream.stream.seed = 7;
    stream.stream.stream = 3;
    stream.stream.offset = 5;
    stream.stream.count = 10;
    stream.stream.mean = -0.5;
    stream.stream.std = 2;
    stream.stream.dtype = SHUF__DTYPE__DTYPE_F32;
    wire_send_result(w, &stream);
}

static void test_debug_log(void **state)
{
    (void)state;
    struct harness h;
    char log[8192];
    struct shuf__result_message permute = wire_permutation(10, SHUF__TRANSPORT__TRANSPORT_INLINE);
    wire_start(&h, harness_backend, "log_level = debug\n");
    struct wire *w = wire_greet(&h);
    wire_send_result(w, &permute);
    wire_read_permutation(w, wire_expect(w, SHUF_OK, "")->payload_bytes, permute.permutation.n);
    send_gauss(w);
    wire_expect(w, SHUF_OK, "");
    shufd_await(h.log, log, sizeof log, ": request 2.3: stream, n 10, 10 values, OK, ");
    assert_non_null(strstr(log, ": request 3: gauss, f32, stream 3, seed 7, 10 values from 5, mean "
                                "-0.5, std 2, 40 bytes, none\n"));
    assert_non_null(strstr(log, ": request 2: permute n 10, primefold, seed 7, epoch 0, 1 x 10 "
                                "values, 40 bytes, inline\n"));
    assert_non_null(strstr(log, ": request 2.2: permute, n 10, 10 values, OK, "));
    assert_non_null(strstr(log, " ms: queue 0."));
    wire_close(w);
    assert_true(harness_stop(&h));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_errors),
        cmocka_unit_test(test_config_bytes),
        cmocka_unit_test(test_shipped_config),
        cmocka_unit_test(test_printed_config_is_in_force),
        cmocka_unit_test(test_config_must_be_a_file),
        cmocka_unit_test(test_command_line),
        cmocka_unit_test(test_key_options),
        cmocka_unit_test(test_wrong_arguments_are_refused),
        cmocka_unit_test(test_zeros_are_documented),
        cmocka_unit_test(test_full_output_is_an_error),
        cmocka_unit_test(test_closed_streams),
        cmocka_unit_test(test_small_budget_warns),
        cmocka_unit_test(test_small_user_memory_warns),
        cmocka_unit_test(test_missing_directory_of_metrics_warns),
        cmocka_unit_test(test_warnings_name_the_line),
        cmocka_unit_test(test_budget_beyond_machine_warns),
        cmocka_unit_test(test_too_many_threads_warn),
        cmocka_unit_test(test_binding_of_openmp_warns),
        cmocka_unit_test(test_large_pool_warns),
        cmocka_unit_test(test_socket_variable_is_named),
        cmocka_unit_test(test_wrong_instances_are_refused),
        cmocka_unit_test(test_wrong_backend_beside_running_daemon),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_user_must_be_in_socket_group),
        cmocka_unit_test(test_key_files_of_root_warn),
        cmocka_unit_test(test_file_and_directory_of_root_warn),
        cmocka_unit_test(test_reloaded_key_has_its_new_line),
        cmocka_unit_test(test_memory_limit_names_the_key),
        cmocka_unit_test(test_memory_limit_names_who_can_raise_it),
        cmocka_unit_test(test_memory_limit_names_the_starter),
        cmocka_unit_test(test_debug_log),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
