/* SPDX-License-Identifier: MIT
 *
 * The server on a device that this test makes up: the CPU's, but with memory that
 * the host cannot read, as a GPU's, and with faults. So what only a GPU, or only a
 * broken one, would show is seen on every machine.
 */
#include "bulk.h"
#include "server.h"
#include "shuf/fingerprint.h"
#include "shuf/primefold.h"
#include "wire.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the device; the faults are set before the server starts ---- */

enum { WAITING_N = 12345 }; /* such a job lasts until it is cancelled */

static struct {
    unsigned read_us;         /* each read takes this long */
    uint64_t read_fails_from; /* reads from this offset on fail; 0: none */
    bool permute_fails, hangs;
} faults;

static struct shuf__backend *cpu;
static struct shuf__backend device;

static struct shuf__block visible(const struct shuf__block *block)
{
    struct shuf__block copy = *block;
    copy.host = copy.memory;
    return copy;
}

static void device_close(struct shuf__backend *backend)
{
    (void)backend;
    cpu->ops->close(cpu);
}

static shuf_status device_memory(struct shuf__backend *backend, enum shuf__memory kind,
                                 uint64_t *available, uint64_t *total, struct shuf__error *error)
{
    (void)backend;
    return cpu->ops->memory(cpu, kind, available, total, error);
}

static shuf_status device_alloc(struct shuf__backend *backend, enum shuf__memory kind,
                                uint64_t bytes, struct shuf__block *block,
                                struct shuf__error *error)
{
    (void)backend;
    shuf_status status = cpu->ops->alloc(cpu, kind, bytes, block, error);
    block->host = NULL;
    return status;
}

static void device_free(struct shuf__backend *backend, struct shuf__block *block)
{
    (void)backend;
    cpu->ops->free(cpu, block);
}

static shuf_status device_launch(struct shuf__backend *backend, const struct shuf__job *job,
                                 struct shuf__block *block, struct shuf__error *error)
{
    (void)backend;
    while (faults.hangs)
        pause();
    while (job->n == WAITING_N && !job->cancelled(job->cancel_context))
        usleep(10000);
    if (faults.permute_fails)
        return shuf__fail(error, SHUF_DEVICE, "permute: the device is on fire");
    return cpu->ops->launch(cpu, job, block, error);
}

static shuf_status device_wait(struct shuf__backend *backend, uint64_t patience_ns, bool *done,
                               uint64_t *device_ns, struct shuf__error *error)
{
    (void)backend;
    return cpu->ops->wait(cpu, patience_ns, done, device_ns, error);
}

static shuf_status device_fingerprint(struct shuf__backend *backend,
                                      const struct shuf__block *block, unsigned width,
                                      uint64_t values, uint64_t *fingerprint,
                                      struct shuf__error *error)
{
    struct shuf__block copy = visible(block);
    (void)backend;
    return cpu->ops->fingerprint(cpu, &copy, width, values, fingerprint, error);
}

static shuf_status device_read(struct shuf__backend *backend, const struct shuf__block *block,
                               uint64_t offset, uint64_t bytes, void *out,
                               struct shuf__error *error)
{
    struct shuf__block copy = visible(block);
    (void)backend;
    usleep(faults.read_us);
    if (faults.read_fails_from && offset >= faults.read_fails_from && bytes > 64)
        return shuf__fail(error, SHUF_DEVICE, "read: the device is on fire");
    return cpu->ops->read(cpu, &copy, offset, bytes, out, error);
}

static const struct shuf__backend_ops device_ops = {
    .name = "made-up",
    .makes = {[SHUF__MEMORY_MEMFD] = true},
    .own = SHUF__MEMORY_MEMFD,
    .close = device_close,
    .memory = device_memory,
    .alloc = device_alloc,
    .free = device_free,
    .launch = device_launch,
    .wait = device_wait,
    .fingerprint = device_fingerprint,
    .read = device_read,
};

/* Takes the place of kernels/backend.c, which is not linked then. */
shuf_status shuf__backend_open(const char *spec, unsigned threads, struct shuf__backend **backend,
                               struct shuf__error *error)
{
    if (strcmp(spec, "none") == 0)
        return shuf__fail(error, SHUF_DEVICE, "backend none: no such device");
    device.ops = &device_ops;
    snprintf(device.device, sizeof device.device, "a device made up");
    *backend = &device;
    return shuf__cpu_ops.open(NULL, threads, &cpu, error);
}

/* ---- a server in a child ---- */

static _Noreturn void serve(const struct harness *h, const char *backend)
{
    struct shuf__config config;
    struct shuf__log log;
    struct shuf__error error;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nothing behind */
    shuf__config_init(&config);
    shuf__log_init(&log, SHUF__LOG_WARNING);
    if (!freopen(h->log, "ae", stderr) || shuf__config_set(&config, "socket", h->socket, &error) ||
        shuf__config_set(&config, "backend", backend, &error))
        _exit(EX_SOFTWARE);
    signal(SIGPIPE, SIG_IGN);
    _exit(shuf__server_run(&config, &log));
}

static void start(struct harness *h)
{
    int fd;
    assert_true(harness_prepare(h, "made-up", NULL));
    fflush(NULL);
    h->pid = fork();
    assert_true(h->pid >= 0);
    if (h->pid == 0)
        serve(h, "made-up");
    for (int waited = 0; (fd = harness_connect(h->socket)) < 0; waited += 5) {
        assert_true(waited < HARNESS_WAIT_MS);
        usleep(5000);
    }
    close(fd);
}

static void expect_exit(struct harness *h, int signal, int code, const char *text)
{
    char log[8192];
    int status = harness_kill(h, signal);
    FILE *file = fopen(h->log, "re");
    assert_non_null(file);
    log[fread(log, 1, sizeof log - 1, file)] = '\0';
    fclose(file);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code || !strstr(log, text))
        fail_msg("expected exit %d with \"%s\", got wait status 0x%x with \"%s\"", code, text,
                 (unsigned)status, log);
    assert_true(harness_stop(h));
}

static int no_faults(void **state)
{
    (void)state;
    memset(&faults, 0, sizeof faults);
    return 0;
}

/* ---- tests ---- */

/* Reads n values and holds them against the fingerprint, which was made from the
 * device's memory and not from the chunks. */
static void check_values(struct wire *w, uint64_t n)
{
    Shuf__Permute permute = wire_permutation(n, SHUF__TRANSPORT__TRANSPORT_INLINE);
    uint32_t *values = malloc(n * sizeof *values);
    uint64_t sum = 0;
    assert_non_null(values);
    permute.fingerprint = true;
    wire_send_permute(w, &permute);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    uint64_t fingerprint = reply->result->fingerprint;
    assert_int_equal(reply->bulk_bytes, n * sizeof *values);
    wire_read_bulk(w, values, n * sizeof *values);
    for (uint64_t i = 0; i < n; i++)
        sum += shuf_fingerprint_term(i, values[i]);
    free(values);
    assert_int_equal(sum, fingerprint);
}

static void test_staged_chunks(void **state)
{
    (void)state;
    enum { PER_CHUNK = SHUF__BULK_CHUNK / 4 };
    static const uint64_t sizes[] = {1,
                                     10,
                                     PER_CHUNK - 1,
                                     PER_CHUNK,
                                     PER_CHUNK + 1,
                                     2 * PER_CHUNK,
                                     2 * PER_CHUNK + 1,
                                     3 * PER_CHUNK,
                                     40 * PER_CHUNK + 7};
    struct harness h;
    start(&h);
    struct wire *w = wire_greet(&h);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_values(w, sizes[i]);
    wire_check_alive(w);
    wire_close(w);
    wire_await_memory_free(&h);
    assert_true(harness_stop(&h));
}

/* The device's memory is the host's here, so it counts as the results' own. */
static void test_unread_results(void **state)
{
    (void)state;
    struct harness h;
    start(&h);
    wire_check_unread(&h, true);
    assert_true(harness_stop(&h));
}

static void test_leaves_in_a_fetch(void **state)
{
    (void)state;
    struct harness h;
    Shuf__Permute permute = wire_permutation(1 << 20, SHUF__TRANSPORT__TRANSPORT_INLINE);
    faults.read_us = 20000;
    start(&h);
    for (int i = 0; i < 10; i++) {
        struct wire *w = wire_greet(&h);
        wire_send_permute(w, &permute);
        wire_expect(w, SHUF_OK, "");
        usleep((useconds_t)i * 4000);
        wire_close(w);
    }
    wire_await_memory_free(&h);
    assert_true(harness_stop(&h));
}

/* Clients that have the loop watch for room in the socket when their job begins: by more
 * requests than one turn takes, and by a result that the socket does not hold. */
static struct wire *begin_after_requests(const struct harness *h)
{
    enum { REQUESTS = 17 };
    uint8_t bytes[(REQUESTS + 1) * 64];
    size_t used = 0;
    Shuf__Status status = SHUF__STATUS__INIT;
    Shuf__Permute permute = wire_permutation(WAITING_N, SHUF__TRANSPORT__TRANSPORT_NONE);
    Shuf__Request request = SHUF__REQUEST__INIT;
    struct wire *w = wire_greet(h);
    request.body_case = SHUF__REQUEST__BODY_STATUS;
    request.status = &status;
    for (int i = 0; i < REQUESTS; i++)
        used += wire_pack(w, &request, bytes + used, sizeof bytes - used);
    request.body_case = SHUF__REQUEST__BODY_PERMUTE;
    request.permute = &permute;
    used += wire_pack(w, &request, bytes + used, sizeof bytes - used);
    wire_send_bytes(w, bytes, used);
    return w;
}

static struct wire *begin_after_bulk(const struct harness *h)
{
    enum { N = 1 << 20 };
    static uint32_t values[N];
    Shuf__Permute bulk = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_INLINE);
    Shuf__Permute last = wire_permutation(WAITING_N, SHUF__TRANSPORT__TRANSPORT_NONE);
    struct wire *w = wire_greet(h);
    wire_send_permute(w, &bulk);
    wire_send_permute(w, &last);
    w->id--;
    wire_expect(w, SHUF_OK, "");
    wire_read_bulk(w, values, sizeof values);
    return w;
}

static double cpu_seconds(pid_t pid)
{
    clockid_t clock;
    struct timespec time;
    assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
    assert_int_equal(clock_gettime(clock, &time), 0);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void test_sleeps_while_computing(void **state)
{
    (void)state;
    static struct wire *(*const begin[])(const struct harness *) = {begin_after_requests,
                                                                    begin_after_bulk};
    for (size_t i = 0; i < sizeof begin / sizeof begin[0]; i++) {
        struct harness h;
        start(&h);
        struct wire *w = begin[i](&h);
        wire_await_queued(&h, 1);
        double before = cpu_seconds(h.pid);
        usleep(500000);
        assert_true(cpu_seconds(h.pid) < before + 0.1);
        wire_close(w);
        assert_true(harness_stop(&h));
    }
}

/* Two ends at once: the drain waits for a result of which every chunk is fetched. */
static void test_drain_of_staged(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    static uint32_t values[N];
    struct harness h;
    Shuf__Permute permute = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_INLINE);
    faults.read_us = 1000;
    start(&h);
    struct wire *w = wire_greet(&h);
    wire_send_permute(w, &permute);
    wire_expect(w, SHUF_OK, "");
    kill(h.pid, SIGTERM);
    wire_read_bulk(w, values, sizeof values);
    wire_expect_end(w);
    wire_close(w);
    expect_exit(&h, 0, EX_OK, "");
}

static void test_device_fails(void **state)
{
    (void)state;
    struct harness h;
    Shuf__Permute permute = wire_permutation(10, SHUF__TRANSPORT__TRANSPORT_NONE);
    faults.permute_fails = true;
    start(&h);
    struct wire *w = wire_greet(&h), *other = wire_greet(&h);
    wire_send_permute(w, &permute);
    wire_expect(w, SHUF_DEVICE, "the device is on fire");
    wire_expect_end(w);
    wire_expect_end(other);
    wire_close(w);
    wire_close(other);
    expect_exit(&h, 0, EX_IOERR, "the device failed, ending: permute: the device is on fire");
}

/* The first bytes of the permutation of n that wire_permutation asks for. */
static void expect_values(const uint8_t *bytes, size_t size, uint64_t n)
{
    shuf_primefold f = shuf_primefold_make(n, 7, 0);
    for (size_t at = 0; at + 4 <= size; at += 4) {
        uint32_t value;
        memcpy(&value, bytes + at, sizeof value);
        assert_int_equal(value, shuf_primefold_forward(&f, at / 4));
    }
}

static void test_device_fails_in_bulk(void **state)
{
    (void)state;
    struct harness h;
    enum { MOST = 1 << 20 };
    static uint8_t bytes[MOST + 1];
    size_t got = 0;
    ssize_t part;
    Shuf__Permute permute = wire_permutation(1 << 20, SHUF__TRANSPORT__TRANSPORT_INLINE);
    faults.read_fails_from = MOST;
    start(&h);
    struct wire *w = wire_greet(&h);
    wire_send_permute(w, &permute);
    wire_expect(w, SHUF_OK, "");
    while (got < sizeof bytes && (part = recv(w->fd, bytes + got, sizeof bytes - got, 0)) > 0)
        got += (size_t)part;
    assert_in_range(got, 1, MOST); /* cut off, not made up */
    expect_values(bytes, got, permute.n);
    wire_close(w);
    expect_exit(&h, 0, EX_IOERR, "the device failed, ending: read: the device is on fire");
}

static void test_device_hangs(void **state)
{
    (void)state;
    struct harness h;
    Shuf__Permute permute = wire_permutation(10, SHUF__TRANSPORT__TRANSPORT_NONE);
    faults.hangs = true;
    start(&h);
    struct wire *w = wire_greet(&h);
    wire_send_permute(w, &permute);
    wire_await_queued(&h, 1);
    kill(h.pid, SIGTERM);
    wire_await_end_of_listening(&h);
    expect_exit(&h, SIGTERM, EX_SOFTWARE, "the device does not stop");
    wire_close(w);
}

static void test_no_device(void **state)
{
    (void)state;
    struct harness h;
    assert_true(harness_prepare(&h, "none", NULL));
    fflush(NULL);
    h.pid = fork();
    if (h.pid == 0)
        serve(&h, "none");
    int status = harness_kill(&h, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EX_UNAVAILABLE);
    assert_true(access(h.socket, F_OK) != 0);
    assert_true(harness_stop(&h));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_staged_chunks, no_faults),
        cmocka_unit_test_setup(test_unread_results, no_faults),
        cmocka_unit_test_setup(test_leaves_in_a_fetch, no_faults),
        cmocka_unit_test_setup(test_sleeps_while_computing, no_faults),
        cmocka_unit_test_setup(test_drain_of_staged, no_faults),
        cmocka_unit_test_setup(test_device_fails, no_faults),
        cmocka_unit_test_setup(test_device_fails_in_bulk, no_faults),
        cmocka_unit_test_setup(test_device_hangs, no_faults),
        cmocka_unit_test_setup(test_no_device, no_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
