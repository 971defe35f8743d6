/* SPDX-License-Identifier: MIT
 *
 * The log under attack: nobody reads it, or clients cause lines without end. The daemon still
 * serves and ends, and reports how many lines are missing. The trace: the ranges of NVTX, which a
 * fake tool receives, and the probes in the program's ELF notes.
 */
#include "config/log.h"
#include "support/bystander.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

/* ---- Clients that cause lines ---- */

static void send_bad_frame(const struct harness *h)
{
    struct wire *w = wire_open(h);
    wire_send_bytes(w, "\xff\xff\xff\xff", 4);
    wire_expect(w, SHUF_PROTOCOL, "frame length");
    wire_close(w);
}

/* Sends bad frames until the daemon has ended. */
static void flood(int channel, void *context)
{
    const struct harness *h = context;
    char reply[256];
    int fd;
    (void)channel;
    while ((fd = harness_connect(h->socket)) >= 0) {
        if (send(fd, "\xff\xff\xff\xff", 4, MSG_NOSIGNAL) == 4)
            while (read(fd, reply, sizeof reply) > 0)
                continue;
        close(fd);
    }
    pause(); /* child_kill() ends the child */
}

enum {
    FLOODERS = 4,
    /* The most from SIGTERM to the end. The daemon waits a second for the reader of the log. */
    END_MS = 10000 * (1 + TEST_SANITIZED),
};

static void start_flood(struct child flooders[FLOODERS], struct harness *h)
{
    for (int i = 0; i < FLOODERS; i++)
        flooders[i] = child_start(flood, h);
}

static void end_flood(const struct child flooders[FLOODERS])
{
    for (int i = 0; i < FLOODERS; i++)
        child_kill(&flooders[i]);
}

/* ---- A log that nobody reads ---- */

/* The daemon's standard error becomes a small pipe. Returns the end that reads it. */
static int start_on_pipe(struct harness *h)
{
    static char path[HARNESS_PATH + 8];
    static const char *const extra[] = {"--config", path, NULL};
    assert_true(harness_prepare(h, harness_backend, extra));
    snprintf(path, sizeof path, "%s/conf", h->directory);
    shufd_write(path, "log_level = debug\nlog_rate = 0\n");
    assert_int_equal(mkfifo(h->log, 0600), 0);
    const int reader = open(h->log, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_true(fcntl(reader, F_SETPIPE_SZ, 4096) > 0);
    assert_true(harness_restart(h));
    return reader;
}

/* Serves another client until the daemon has dropped so many more lines. */
static void serve_until_dropped(const struct harness *h, uint64_t lines)
{
    const uint64_t before = wire_status(h).log_dropped;
    struct wire *bystander = wire_greet(h);
    while (wire_status(h).log_dropped < before + lines)
        wire_check_alive(bystander);
    wire_close(bystander);
}

/* Returns the sum of the dropped lines that the log reports. */
static uint64_t read_dropped_count(int reader)
{
    static char line[1024];
    static size_t used;
    char byte;
    uint64_t reported = 0, dropped;
    while (read(reader, &byte, 1) == 1) {
        line[used < sizeof line - 1 ? used++ : used] = byte;
        if (byte != '\n')
            continue;
        line[used] = '\0';
        const char *warning = strstr(line, "warning: ");
        if (warning && strstr(warning, " of the log dropped: their reader was too slow\n") &&
            sscanf(warning, "warning: %" SCNu64, &dropped) == 1)
            reported += dropped;
        used = 0;
    }
    return reported;
}

/* The latency of a bystander while the log can be written. */
static struct latency measure_idle(void)
{
    struct harness h;
    wire_start(&h, harness_backend, "log_level = debug\nlog_rate = 0\n");
    struct wire *bystander = wire_greet(&h);
    const struct latency idle = bystander_measure("idle", bystander);
    wire_close(bystander);
    assert_true(harness_stop(&h));
    return idle;
}

static void stopped_reader_does_not_block_daemon(void **state)
{
    (void)state;
    struct harness h;
    struct child flooders[FLOODERS];
    const struct latency idle = measure_idle();
    const int reader = start_on_pipe(&h);
    struct wire *bystander = wire_greet(&h);
    start_flood(flooders, &h);
    serve_until_dropped(&h, 2000);
    bystander_expect_near("bad frames, stopped reader of the log", bystander, &idle);
    wire_close(bystander);
    end_flood(flooders);
    uint64_t reported = 0;
    for (unsigned waited = 0; reported == 0 || reported != wire_status(&h).log_dropped;
         wire_wait(&waited, "all dropped lines told"))
        reported += read_dropped_count(reader);
    start_flood(flooders, &h);
    serve_until_dropped(&h, 2000); /* the pipe is full again */
    const double begin_ms = bystander_clock_ms();
    shufd_expect_code(harness_kill(&h, SIGTERM), EX_OK);
    assert_true(bystander_clock_ms() - begin_ms <= END_MS);
    end_flood(flooders);
    assert_true(harness_stop(&h));
    close(reader);
}

/* ---- The rate ---- */

/* The log reports every line, one by one or in a sum. The last sum comes at the end, before the
 * line that names the cause of the end. */
static void every_line_is_logged_or_counted(void **state)
{
    (void)state;
    enum { TIMES = 1000, TEXT = 1 << 20 };
    static const char refused[] = ": PROTOCOL: frame length";
    struct harness h;
    uint64_t single = 0, summed = 0, more;
    const char *last = NULL;
    char *log = malloc(TEXT);
    assert_non_null(log);
    wire_start(&h, harness_backend, "");
    for (int i = 0; i < TIMES; i++)
        send_bad_frame(&h);
    shufd_expect_code(harness_kill(&h, SIGTERM), EX_OK);
    shufd_read(h.log, log, TEXT);
    for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n")) {
        const char *text = strstr(line, "info: ");
        last = text;
        if (!text || !strstr(text, refused))
            continue;
        if (sscanf(text, "info: %" SCNu64 " more of these in ", &more) == 1)
            summed += more;
        else
            single++;
    }
    assert_int_equal(single + summed, TIMES);
    assert_in_range(single, 1, TIMES / 4);
    assert_non_null(last);
    assert_memory_equal(last, "info: ended, ", strlen("info: ended, "));
    free(log);
    assert_true(harness_stop(&h));
}

#define SECOND UINT64_C(1000000000)

static uint64_t admitted_lines(struct shuf__log_limits *limits, const char *key, uint64_t lines,
                               uint64_t now)
{
    struct shuf__log_line line = {.level = SHUF__LOG_INFO, .text = "a line"};
    uint64_t count = 0;
    for (uint64_t i = 0; i < lines; i++)
        count += shuf__log_limits_admit(limits, key, 10, &line, now);
    return count;
}

static void expect_sum(struct shuf__log_limits *limits, uint64_t now, const char *text)
{
    struct shuf__log_line sum;
    assert_false(shuf__log_limits_sum_up(limits, now - 1, &sum));
    assert_true(shuf__log_limits_sum_up(limits, now, &sum));
    assert_string_equal(sum.text, text);
    assert_false(shuf__log_limits_sum_up(limits, now, &sum));
}

static void windows_grow_during_a_flood(void **state)
{
    (void)state;
    static struct shuf__log_limits limits;
    static const char flood[] = "flood", other[] = "other";
    uint64_t now = 100 * SECOND;
    assert_int_equal(admitted_lines(&limits, flood, 1000, now), 10);
    /* lines of another kind are not limited by the flood */
    assert_int_equal(admitted_lines(&limits, other, 10, now), 10);
    expect_sum(&limits, now += SECOND, "990 more of these in 1 s: a line");
    assert_int_equal(admitted_lines(&limits, flood, 12, now), 10);
    expect_sum(&limits, now += 2 * SECOND, "2 more of these in 2 s: a line");
    assert_int_equal(admitted_lines(&limits, flood, 10, now), 10);
    now += 4 * SECOND; /* the long window is over, so the next one has 1 s again */
    assert_int_equal(admitted_lines(&limits, flood, 11, now), 10);
    expect_sum(&limits, now += SECOND, "1 more of these in 1 s: a line");
    assert_int_equal(limits.held_lines, 993);
}

/* ---- The trace: ranges ---- */

#ifdef NVTX_TOOL

static unsigned count_of(const char *text, const char *line)
{
    unsigned count = 0;
    for (; (text = strstr(text, line)) != NULL; text++)
        count++;
    return count;
}

static void nvtx_ranges_match_requests(void **state)
{
    (void)state;
    struct harness h;
    char path[] = "/tmp/shuf-ranges-XXXXXX", text[8192];
    struct shuf__result_message large = wire_permutation(3000000, SHUF__TRANSPORT__TRANSPORT_NONE);
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    setenv("NVTX_INJECTION64_PATH", NVTX_TOOL, 1);
    setenv("SHUF_TEST_RANGES", path, 1);
    assert_true(harness_start(&h, harness_backend, NULL));
    unsetenv("NVTX_INJECTION64_PATH");
    struct wire *w = wire_greet(&h);
    wire_send_result(w, &large);
    wire_expect(w, SHUF_OK, "");
    wire_check_alive(w); /* this result is small and needs no new memory */
    wire_check_alive(w);
    wire_close(w);
    assert_true(harness_stop(&h));
    shufd_read(path, text, sizeof text);
    unlink(path);
    assert_true(count_of(text, "shufd: compute\n") >= 1);
    assert_true(count_of(text, "shufd: free\n") >= 1);
    assert_int_equal(count_of(text, "shufd: "), count_of(text, ".\n"));
}

#endif

/* ---- Probes ---- */

#ifdef SHUF_HAVE_SDT

static void usdt_probes_are_present(void **state)
{
    (void)state;
    static const char *const names[] = {"request_received", "request_cancelled", "reply_sent",
                                        "job_begin", "job_end"};
    char line[256];
    unsigned found = 0;
    FILE *notes = popen("readelf -n " SHUFD_PATH, "re");
    assert_non_null(notes);
    for (bool is_own = false; fgets(line, sizeof line, notes);) {
        if (strstr(line, "Provider: "))
            is_own = strstr(line, "Provider: shufd\n") != NULL;
        for (unsigned i = 0; is_own && i < sizeof names / sizeof *names; i++) {
            char name[64];
            snprintf(name, sizeof name, " Name: %s\n", names[i]);
            found |= (unsigned)(strstr(line, name) != NULL) << i;
        }
    }
    assert_int_equal(pclose(notes), 0);
    assert_int_equal(found, (1u << sizeof names / sizeof *names) - 1);
}

#endif

int main(int argc, char **argv)
{
    harness_backend = harness_backend_or_skip(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stopped_reader_does_not_block_daemon),
        cmocka_unit_test(every_line_is_logged_or_counted),
        cmocka_unit_test(windows_grow_during_a_flood),
#ifdef NVTX_TOOL
        cmocka_unit_test(nvtx_ranges_match_requests),
#endif
#ifdef SHUF_HAVE_SDT
        cmocka_unit_test(usdt_probes_are_present),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
