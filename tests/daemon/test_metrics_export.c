/* SPDX-License-Identifier: MIT
 *
 * Metrics by HTTP and in a file. The test checks the output, and that HTTP clients of any kind do
 * not disturb the clients of the daemon.
 */
#include "export/export.h"
#include "support/child.h"
#include "support/client.h"
#include "support/command.h"
#include "support/shufctl.h"
#include "support/wire.h"

#include "support/cmocka_all.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* ---- A daemon with HTTP ---- */

static struct harness h;
static unsigned port;

/* Expects in the status where metrics are published, and a part of the text why not. */
static void expect_published(const char *places, const char *fault)
{
    struct wire *w = wire_greet(&h);
    const Shuf__StatusReply *status = wire_ask_status(w);
    assert_string_equal(status->metrics, places);
    assert_non_null(strstr(status->metrics_fault, fault));
    shutdown(w->fd, SHUT_WR);
    wire_expect_end(w); /* so the metrics do not count this connection */
    wire_close(w);
}

/* Binds a socket to a free port of this machine. */
static int bind_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    port = ntohs(address.sin_port);
    return fd;
}

static void start_http(void)
{
    char config[64], place[64];
    close(bind_port());
    snprintf(config, sizeof config, "metrics = 127.0.0.1:%u\n", port);
    snprintf(place, sizeof place, "127.0.0.1:%u", port);
    wire_start(&h, harness_backend, config);
    expect_published(place, "");
}

/* Runs curl; the caller frees the output. */
static int curl(struct command *c, const char *more, const char *url)
{
    char script[512];
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    snprintf(script, sizeof script, "curl -sS --noproxy '*' --max-time 60 %s http://127.0.0.1:%u%s",
             more, port, url);
    return command_run(c, 0, argv);
}

static void expect_page(const char *more, const char *url, const char *expected)
{
    struct command c;
    assert_int_equal(curl(&c, more, url), 0);
    if (!strstr(c.out.bytes, expected))
        print_message("curl %s %s: %s\n", more, url, c.out.bytes);
    assert_non_null(strstr(c.out.bytes, expected));
    command_free(&c);
}

static void skip_without_curl(void)
{
    struct command c;
    const char *const argv[] = {"/bin/sh", "-c", "command -v curl", NULL};
    const int status = command_run(&c, 0, argv);
    command_free(&c);
    if (status != 0) {
        print_message("skipped: there is no curl\n");
        skip();
    }
}

static void http_pages_are_served(void **state)
{
    (void)state;
    skip_without_curl();
    start_http();
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    wire_close(w);
    expect_page("", "/metrics", "\nshufd_requests_total{kind=\"permute\",status=\"OK\"} 1\n");
    expect_page("-D-", "/metrics", "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
    expect_page("-D- -H 'Accept: application/openmetrics-text'", "/metrics",
                "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n");
    expect_page("-H 'Accept: application/openmetrics-text'", "/metrics", "# EOF\n");
    expect_page("-I", "/metrics", "HTTP/1.1 200 ");
    expect_page("-D-", "/", "HTTP/1.1 404 ");
    expect_page("-D- -d text", "/metrics", "HTTP/1.1 405 ");
    assert_true(harness_stop(&h));
}

/* Any process of the machine may connect to a port. */
static void http_has_no_rows_of_users(void **state)
{
    (void)state;
    struct command c;
    skip_without_curl();
    start_http();
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    assert_int_equal(curl(&c, "", "/metrics"), 0);
    assert_non_null(strstr(c.out.bytes, "\nshufd_clients 1\n"));
    assert_null(strstr(c.out.bytes, "uid="));
    command_free(&c);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* A daemon that is killed leaves connections behind that still close. */
static void port_is_used_again(void **state)
{
    (void)state;
    skip_without_curl();
    start_http();
    expect_page("", "/metrics", "shufd_clients 0\n");
    harness_kill(&h, SIGKILL);
    assert_true(harness_restart(&h));
    expect_page("", "/metrics", "shufd_clients 0\n");
    assert_true(harness_stop(&h));
}

/* If the port is in use, the daemon serves without metrics and logs a warning. */
static void port_in_use_is_logged(void **state)
{
    (void)state;
    char config[64], log[4096];
    const int fd = bind_port();
    assert_int_equal(listen(fd, 1), 0);
    snprintf(config, sizeof config, "metrics = 127.0.0.1:%u\n", port);
    setenv("INVOCATION_ID", "0123456789abcdef0123456789abcdef", 1);
    wire_start(&h, harness_backend, config);
    unsetenv("INVOCATION_ID");
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    wire_close(w);
    shufd_await(
        h.log, log, sizeof log,
        ": Address already in use; another program listens there, so choose another port; serving "
        "without HTTP");
    expect_published("", ": Address already in use");
    char *status = shufctl_succeed(NULL, "--socket %s status", h.socket);
    assert_non_null(strstr(status, "\nfault       metrics 127.0.0.1:"));
    snprintf(config, sizeof config, "\nconfig      %.40s/conf\n", h.directory);
    assert_non_null(strstr(status, config));
    free(status);
    assert_non_null(strstr(log, "warning: metrics 127.0.0.1:"));
    assert_true(harness_stop(&h));
    close(fd);
}

static void wrong_addresses_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "0.0.0.0:9477",  "9477", "unix:/x",         "127.0.0.1:%i", "127.0.0.1:0",   "127.0.0.1",
        "192.168.0.1:1", "on",   "127.0.0.1:65536", "[::2]:9477",   "localhost:9477"};
    char conf[64] = "/tmp/shuf-metrics-XXXXXX", text[128], expected[192];
    const int fd = mkstemp(conf);
    assert_true(fd >= 0);
    close(fd);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *const arguments[] = {"--config", conf, "--print-config", NULL};
        snprintf(text, sizeof text, "leases = 1\nmetrics = %s\n", wrong[i]);
        snprintf(expected, sizeof expected,
                 "%s:2: metrics %s: expected off, 127.0.0.1:PORT or [::1]:PORT", conf, wrong[i]);
        shufd_write(conf, text);
        shufd_expect_exit(arguments, 78, expected);
    }
    unlink(conf);
}

/* ---- Hostile clients ---- */

enum { BRIEFLY_MS = 20 };

/* Returns a socket that does not block, or -1 if the daemon's backlog stays full for this time. */
static int connect_http(int wait_ms)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((in_port_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct pollfd connected = {fd, POLLOUT, 0};
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ||
        (errno == EINPROGRESS && poll(&connected, 1, wait_ms) == 1 &&
         !(connected.revents & (POLLERR | POLLHUP))))
        return fd;
    close(fd);
    return -1;
}

enum { HOSTILE = 200 };

/* Each client sends the head of a request byte by byte, and starts again when the daemon closes its
 * connection. */
static void run_slow_clients(int channel, void *context)
{
    static const char head[] = "GET /metrics HTTP/1.1\r\nHost: x\r\nX-Header: 0123456789abcdef\r\n";
    int fd[HOSTILE];
    size_t sent[HOSTILE] = {0};
    (void)context;
    for (int i = 0; i < HOSTILE; i++)
        fd[i] = -1;
    child_send(channel, 1);
    for (;; usleep(100000))
        for (int i = 0; i < HOSTILE; i++) {
            const bool was_open = fd[i] >= 0;
            if (!was_open)
                sent[i] = 0;
            if (!was_open && (fd[i] = connect_http(BRIEFLY_MS)) < 0)
                continue;
            if (send(fd[i], &head[sent[i]++ % (sizeof head - 1)], 1, MSG_NOSIGNAL) < 0 &&
                errno != EAGAIN) {
                close(fd[i]);
                fd[i] = -1;
            }
        }
}

/* Each client sends requests as fast as it can, and reads no reply completely. */
static void run_greedy_clients(int channel, void *context)
{
    static const char head[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    char bytes[512];
    (void)context;
    child_send(channel, 1);
    for (;;) {
        int fd = connect_http(BRIEFLY_MS);
        if (fd < 0)
            continue;
        send(fd, head, sizeof head - 1, MSG_NOSIGNAL);
        struct pollfd reply = {fd, POLLIN, 0};
        poll(&reply, 1, 20);
        if (recv(fd, bytes, sizeof bytes, 0) < 0)
            errno = 0;
        close(fd);
    }
}

/* Returns the mean time of small requests to the daemon's own socket. */
static double request_ms(unsigned count)
{
    struct wire *w = wire_greet(&h);
    const uint64_t start = harness_now_ms();
    for (unsigned i = 0; i < count; i++)
        wire_check_alive(w);
    wire_close(w);
    return (double)(harness_now_ms() - start) / count;
}

static void check_attack_is_survived(void (*attack)(int channel, void *context))
{
    struct child hostile[2];
    skip_without_curl();
    start_http();
    request_ms(200);
    for (int i = 0; i < 2; i++) {
        hostile[i] = child_start(attack, NULL);
        assert_int_equal(child_receive(hostile[i].channel), 1);
    }
    sleep(2);
    assert_true(request_ms(200) < 100);
    expect_page("--retry 20 --retry-delay 1 --retry-all-errors", "/metrics", "shufd_clients ");
    for (int i = 0; i < 2; i++)
        child_kill(&hostile[i]);
    expect_page("--retry 20 --retry-delay 1 --retry-all-errors", "/metrics", "shufd_clients 0\n");
    assert_true(harness_stop(&h));
}

static void slow_clients_are_survived(void **state)
{
    (void)state;
    check_attack_is_survived(run_slow_clients);
}

static void greedy_clients_are_survived(void **state)
{
    (void)state;
    check_attack_is_survived(run_greedy_clients);
}

static void expect_whole_reply(const char *text)
{
    const char *length = strstr(text, "Content-Length: "), *body = strstr(text, "\r\n\r\n");
    assert_memory_equal(text, "HTTP/1.1 200 OK\r\n", 17);
    assert_non_null(length);
    assert_non_null(body);
    assert_int_equal(strlen(body + 4), strtoul(length + 16, NULL, 10));
    assert_non_null(strstr(body, "\nshufd_clients "));
}

/* A client that sends more than its request gets the whole reply. */
static void late_bytes_lose_no_reply(void **state)
{
    enum { CLIENTS = 100 };
    static const char head[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    static char text[1 << 18];
    (void)state;
    start_http();
    for (int i = 0; i < CLIENTS; i++) {
        const int fd = connect_http(HARNESS_WAIT_MS);
        size_t size = 0;
        assert_int_equal(send(fd, head, sizeof head - 1, MSG_NOSIGNAL), sizeof head - 1);
        for (;;) { /* until the end, or a reset after it */
            const ssize_t got = recv(fd, text + size, sizeof text - 1 - size, 0);
            if (got == 0 || (got < 0 && errno != EAGAIN))
                break;
            size += got > 0 ? (size_t)got : 0;
            (void)!send(fd, head, sizeof head - 1, MSG_NOSIGNAL);
            usleep(200);
        }
        text[size] = '\0';
        expect_whole_reply(text);
        close(fd);
    }
    assert_true(harness_stop(&h));
}

/* The daemon closes a connection at its deadline, even if the client still sends. */
static void connection_is_closed_at_deadline(void **state)
{
    (void)state;
    start_http();
    const uint64_t start = harness_now_ms();
    const int fd = connect_http(HARNESS_WAIT_MS);
    assert_true(fd >= 0);
    while (send(fd, "G", 1, MSG_NOSIGNAL) == 1) {
        assert_true(harness_now_ms() - start < HARNESS_WAIT_MS);
        usleep(200000);
    }
    assert_true(errno == EPIPE || errno == ECONNRESET);
    assert_true(harness_now_ms() - start >= 4000);
    close(fd);
    assert_true(harness_stop(&h));
}

/* Sends a header with a value of `size` bytes. Returns the reply in `text`, or "". */
static void send_large(size_t size, char *text, size_t room)
{
    char *header = malloc(size);
    const int fd = connect_http(HARNESS_WAIT_MS);
    const struct timeval limit = {.tv_sec = HARNESS_WAIT_MS / 1000};
    assert_true(fd >= 0);
    memset(header, 'a', size);
    memcpy(header, "GET /metrics HTTP/1.1\r\nX: ", 26);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    for (size_t sent = 0; sent < size;) {
        struct pollfd room_for_more = {fd, POLLOUT, 0};
        if (poll(&room_for_more, 1, HARNESS_WAIT_MS) != 1)
            break;
        const ssize_t part = send(fd, header + sent, size - sent, MSG_NOSIGNAL);
        if (part < 0)
            break;
        sent += (size_t)part;
    }
    struct pollfd reply = {fd, POLLIN, 0};
    assert_int_equal(poll(&reply, 1, HARNESS_WAIT_MS), 1);
    const ssize_t got = recv(fd, text, room - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    close(fd);
    free(header);
}

static void large_headers_are_refused(void **state)
{
    (void)state;
    char reply[256];
    start_http();
    for (size_t size = 17 << 10; size <= 64 << 20; size *= 64) {
        send_large(size, reply, sizeof reply);
        if (*reply)
            assert_memory_equal(reply, "HTTP/1.1 4", 10);
    }
    if (!TEST_SANITIZED)
        assert_true(wire_private_bytes(h.pid) < 64 << 20);
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* ---- Beside a flood of the daemon's own socket ---- */

/* Sends requests without a pause, and reads all replies. */
static void run_flood(int channel, void *context)
{
    struct wire *w = wire_greet(&h);
    (void)context;
    child_send(channel, 1);
    for (;;)
        wire_check_alive(w);
}

/* The scrape of a monitoring system, which tries only once. */
static bool is_scraped(void)
{
    struct command c;
    const bool is_answered =
        curl(&c, "", "/metrics") == 0 && strstr(c.out.bytes, "\nshufd_clients ");
    command_free(&c);
    return is_answered;
}

static void scrapes_beside_a_flood_are_answered(void **state)
{
    enum { FLOODS = 8, SCRAPES = 20, LEAST = 18 };
    struct child flood[FLOODS];
    unsigned answered = 0;
    (void)state;
    skip_without_curl();
    start_http();
    for (int i = 0; i < FLOODS; i++) {
        flood[i] = child_start(run_flood, NULL);
        assert_int_equal(child_receive(flood[i].channel), 1);
    }
    for (int i = 0; i < SCRAPES; i++)
        answered += is_scraped();
    for (int i = 0; i < FLOODS; i++)
        child_kill(&flood[i]);
    assert_in_range(answered, LEAST, SCRAPES);
    assert_true(harness_stop(&h));
}

/* ---- The file ---- */

static char path[HARNESS_PATH + 16];

static char conf[HARNESS_PATH + 8];

static void write_conf(const char *folder, const char *interval)
{
    char text[256];
    snprintf(text, sizeof text, "metrics_file = %s%s/%%i.prom\nmetrics_interval = %s\n",
             h.directory, folder, interval);
    shufd_write(conf, text);
}

/* `folder`: a folder of the daemon's directory, as "/f", or "". */
static void start_file_in(const char *folder, const char *interval)
{
    static const char *const extra[] = {"--config", conf, NULL};
    assert_true(harness_prepare(&h, harness_backend, extra));
    snprintf(conf, sizeof conf, "%s/conf", h.directory);
    snprintf(path, sizeof path, "%s%s/s.prom", h.directory, folder);
    write_conf(folder, interval);
    assert_true(harness_restart(&h));
}

static void start_file(void)
{
    start_file_in("", "100ms");
}

static void await_file(void)
{
    for (unsigned waited = 0; access(path, F_OK) != 0;)
        wire_wait(&waited, "the file of metrics");
}

static void file_is_written_regularly(void **state)
{
    (void)state;
    static char text[1 << 18];
    struct stat status;
    ino_t last = 0;
    unsigned texts = 0;
    start_file();
    await_file();
    expect_published(path, "");
    for (const uint64_t start = harness_now_ms(); texts < 5;) {
        assert_true(harness_now_ms() - start < HARNESS_WAIT_MS);
        const size_t size = shufd_read(path, text, sizeof text);
        static const char first[] = "# HELP shufd_build_info ";
        static const char end[] = "\nprocess_resident_memory_bytes{daemon=\"s\"} ";
        assert_memory_equal(text, first, sizeof first - 1);
        assert_int_equal(text[size - 1], '\n');
        assert_non_null(strstr(text, end));
        assert_int_equal(stat(path, &status), 0);
        texts += status.st_ino != last;
        last = status.st_ino;
    }
    assert_int_equal(status.st_mode & 07777, 0644);
    assert_null(strstr(text, "uid="));
    assert_true(metrics_value(text, "shufd_clients{daemon=\"s\"}") == 0);
    assert_int_equal(harness_kill(&h, SIGTERM), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_true(harness_stop(&h));
}

/* A shorter interval takes effect at once, and not only after the old one. */
static void interval_of_file_changes(void **state)
{
    (void)state;
    struct stat status;
    ino_t last = 0;
    unsigned waited = 0;
    start_file_in("", "1h");
    await_file();
    write_conf("", "100ms");
    kill(h.pid, SIGHUP);
    for (unsigned texts = 0; texts < 4; wire_wait(&waited, "the next text")) {
        assert_int_equal(stat(path, &status), 0);
        texts += status.st_ino != last;
        last = status.st_ino;
    }
    assert_true(harness_stop(&h));
}

/* A reader never sees half a file: the daemon replaces the file by a rename, and never writes to it
 * in place. */
static void file_is_replaced_by_rename(void **state)
{
    (void)state;
    unsigned renames = 0;
    const uint64_t start = harness_now_ms();
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    start_file();
    const int watch = inotify_init1(IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, h.directory, IN_CREATE | IN_MODIFY | IN_MOVED_TO) >= 0);
    while (renames < 3) {
        struct pollfd news = {watch, POLLIN, 0};
        assert_true(harness_now_ms() - start < HARNESS_WAIT_MS);
        assert_int_equal(poll(&news, 1, HARNESS_WAIT_MS), 1);
        const ssize_t size = read(watch, events, sizeof events);
        for (ssize_t at = 0; at < size;) {
            const struct inotify_event *event = (const void *)&events[at];
            at += (ssize_t)(sizeof *event + event->len);
            if (strcmp(event->name, "s.prom") != 0)
                continue;
            assert_int_equal(event->mask, IN_MOVED_TO);
            renames++;
        }
    }
    close(watch);
    assert_true(harness_stop(&h));
}

static void missing_directory_of_file_is_logged(void **state)
{
    (void)state;
    char log[4096] = "";
    wire_start(&h, harness_backend, "metrics_file = /nowhere/m.prom\nmetrics_interval = 100ms\n");
    for (unsigned waited = 0; !strstr(log, "/nowhere"); shufd_read(h.log, log, sizeof log))
        wire_wait(&waited, "a line of the log");
    usleep(400000);
    shufd_read(h.log, log, sizeof log);
    expect_published("", "metrics_file /nowhere/m.prom: No such file or directory");
    char *line = strstr(log, "warning: metrics_file /nowhere/m.prom: No such file or directory;");
    assert_non_null(line);
    assert_null(strstr(strchr(line, '\n'), "/nowhere")); /* the error is logged once */
    struct wire *w = wire_greet(&h);
    wire_check_alive(w);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* The daemon tries again, so a mended directory needs no restart. */
static void mended_directory_of_file_is_logged(void **state)
{
    (void)state;
    char log[4096], directory[HARNESS_PATH + 16];
    start_file_in("/later", "100ms");
    snprintf(directory, sizeof directory, "%s/later", h.directory);
    shufd_await(h.log, log, sizeof log, "; trying again every metrics_interval");
    assert_int_equal(mkdir(directory, 0755), 0);
    shufd_await(h.log, log, sizeof log, "/s.prom: written again");
    expect_published(path, "");
    assert_true(harness_stop(&h));
    assert_int_equal(rmdir(directory), 0);
}

/* The sandbox of the unit forbids the family of the address. */
static void forbidden_port_names_the_drop_in(void **state)
{
    (void)state;
    assert_string_equal(shuf__remedy_of_port(EAFNOSUPPORT), "");
    setenv("INVOCATION_ID", "0123456789abcdef0123456789abcdef", 1);
    assert_non_null(strstr(shuf__remedy_of_port(EAFNOSUPPORT), "the drop-in metrics-port.conf"));
    unsetenv("INVOCATION_ID");
}

static void read_only_directory_of_file_is_explained(void **state)
{
    (void)state;
    static const char ways[] = ": Read-only file system; its unit needs ReadWritePaths=, or write "
                               "to /run/shufd-metrics with the drop-in metrics-file.conf";
    char directory[] = "/tmp/shuf-read-only-XXXXXX", config[96], log[4096];
    assert_non_null(mkdtemp(directory));
    if (mount("none", directory, "tmpfs", MS_RDONLY, NULL) != 0) {
        rmdir(directory);
        skip();
    }
    snprintf(config, sizeof config, "metrics_file = %s/m.prom\n", directory);
    setenv("INVOCATION_ID", "0123456789abcdef0123456789abcdef", 1);
    wire_start(&h, harness_backend, config);
    unsetenv("INVOCATION_ID");
    shufd_await(h.log, log, sizeof log, ways);
    expect_published("", ways);
    assert_true(harness_stop(&h));
    umount2(directory, MNT_DETACH);
    rmdir(directory);
}

/* As another user: the directory of root. */
static void expect_remedy(int channel, void *context)
{
    char file[96], remedy[SHUF__REMEDY], expected[SHUF__REMEDY];
    const char *directory = context;
    (void)channel;
    snprintf(file, sizeof file, "%.64s/m.prom", directory);
    shuf__remedy_of_file(EACCES, file, remedy);
    snprintf(expected, sizeof expected,
             "; uid 65534 of the daemon may not %s %.56s: permit it, or choose another directory",
             access(directory, X_OK) == 0 ? "write to" : "search", directory);
    assert_string_equal(remedy, expected);
}

static void forbidden_directory_of_file_is_explained(void **state)
{
    (void)state;
    char directory[] = "/tmp/shuf-forbidden-XXXXXX";
    static const mode_t modes[] = {0700, 0755};
    if (geteuid() != 0)
        skip();
    assert_non_null(mkdtemp(directory));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(chmod(directory, modes[i]), 0);
        const struct child child = child_start_as(CHILD_NOBODY, expect_remedy, directory);
        child_join(&child);
    }
    rmdir(directory);
}

/* The least limit of files with metrics suffices for a lease and a reader of the metrics at a time.
 */
static void serve_with_few_files(int channel, void *context)
{
    enum { LEAST = 54 };
    char place[32];
    const char *extra[] = {"--metrics", place, NULL};
    const char *check[] = {"--socket", "/tmp/none", "--metrics", place, "--check", NULL};
    (void)channel;
    (void)context;
    closefrom(STDERR_FILENO + 1); /* a daemon counts its inherited descriptors */
    close(bind_port());
    snprintf(place, sizeof place, "127.0.0.1:%u", port);
    assert_true(harness_prepare(&h, "cpu", extra));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){LEAST, LEAST}), 0);
    assert_true(harness_restart(&h));
    struct wire *w = wire_greet(&h); /* the HTTP server has started too */
    const int reader = connect_http(1000);
    assert_true(reader >= 0);
    wire_lease(w, 1000, 7, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    wire_close(w);
    close(reader);
    assert_true(harness_stop(&h));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){LEAST - 1, LEAST - 1}), 0);
    shufd_expect_exit(check, EX_OSERR, "the limit is 53, but shufd needs at least 54; raise it");
}

static void least_files_include_those_of_metrics(void **state)
{
    (void)state;
    const struct child child = child_start(serve_with_few_files, NULL);
    child_join(&child);
}

#ifdef SHUF_HAVE_MICROHTTPD
static const bool has_http = true;
#else
static const bool has_http = false;
#endif

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest file_tests[] = {
        cmocka_unit_test(wrong_addresses_are_refused),
        cmocka_unit_test(file_is_written_regularly),
        cmocka_unit_test(interval_of_file_changes),
        cmocka_unit_test(file_is_replaced_by_rename),
        cmocka_unit_test(missing_directory_of_file_is_logged),
        cmocka_unit_test(mended_directory_of_file_is_logged),
        cmocka_unit_test(read_only_directory_of_file_is_explained),
        cmocka_unit_test(forbidden_directory_of_file_is_explained),
    };
    const struct CMUnitTest http_tests[] = {
        cmocka_unit_test(http_pages_are_served),
        cmocka_unit_test(http_has_no_rows_of_users),
        cmocka_unit_test(port_is_used_again),
        cmocka_unit_test(port_in_use_is_logged),
        cmocka_unit_test(forbidden_port_names_the_drop_in),
        cmocka_unit_test(connection_is_closed_at_deadline),
        cmocka_unit_test(large_headers_are_refused),
        cmocka_unit_test(slow_clients_are_survived),
        cmocka_unit_test(greedy_clients_are_survived),
        cmocka_unit_test(late_bytes_lose_no_reply),
        cmocka_unit_test(scrapes_beside_a_flood_are_answered),
        cmocka_unit_test(least_files_include_those_of_metrics),
    };
    const int failed = cmocka_run_group_tests(file_tests, NULL, NULL);
    return has_http ? failed + cmocka_run_group_tests(http_tests, NULL, NULL) : failed;
}
