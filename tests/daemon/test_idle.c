/* SPDX-License-Identifier: MIT
 *
 * Idle memory: how much of it the daemon keeps, when it frees it for other programs, and who may
 * drop it. The device and the machine's memory are fake.
 */
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/fake_backend.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MI (UINT64_C(1) << 20)
#define HOST SHUF__TRANSPORT__TRANSPORT_MEMFD
#define DEVICE SHUF__TRANSPORT__TRANSPORT_CUDA_IPC

enum { RESULT_N = MI }; /* values of a result of 4 MiB */

static struct harness h;
static struct wire *w;

static void start(const char *const *settings)
{
    fake_backend_start(&h, settings);
    assert_int_equal(chmod(h.directory, 0755), 0);
    w = wire_greet(&h);
}

static void start_with_defaults(void)
{
    static const char *const open_to_all[] = {"socket_mode", "0666", NULL};
    start(open_to_all);
}

/* A machine with 4 GiB of host memory and 4 GiB of device memory, all of it free. */
static int make_machine(void **state)
{
    if (fake_backend_reset(state) != 0)
        return -1;
    faults->total = faults->available = faults->device = 4096 * MI;
    return 0;
}

static void stop(void)
{
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* Computes a result and releases its lease, unmapped. Returns whether the cache had it. */
static bool compute_and_release(struct wire *client, uint64_t n, uint64_t seed,
                                Shuf__Transport transport)
{
    const Shuf__ResultReply *reply = wire_lease(client, n, seed, transport);
    const bool shared = reply->shared;
    if (client->descriptor >= 0)
        close(wire_take_descriptor(client));
    wire_release(client, reply->lease, reply->block);
    return shared;
}

static void expect_idle(uint64_t host, uint64_t device)
{
    const Shuf__StatusReply s = wire_status(&h);
    assert_int_equal(s.host_idle, host);
    assert_int_equal(s.device_idle, device);
}

/* ---- How much is kept ---- */

static void results_stay_idle_up_to_host_cache(void **state)
{
    static const char *const small[] = {"host_cache", "10Mi", "device_cache", "4Mi", NULL};
    (void)state;
    start(small);
    compute_and_release(w, RESULT_N, 1, HOST);
    compute_and_release(w, RESULT_N, 2, HOST);
    expect_idle(8 * MI, 0);
    assert_true(compute_and_release(w, RESULT_N, 1, HOST)); /* now 2 is the least recently used */
    compute_and_release(w, RESULT_N / 2, 3, HOST);
    expect_idle(10 * MI, 0);
    compute_and_release(w, RESULT_N / 2, 4, HOST);
    expect_idle(8 * MI, 0);
    WIRE_AWAIT(&h, s, s.host_used == 8 * MI && s.evicted == 1);
    assert_true(compute_and_release(w, RESULT_N, 1, HOST));
    compute_and_release(w, RESULT_N, 5, DEVICE);
    expect_idle(8 * MI, 4 * MI);
    compute_and_release(w, RESULT_N, 6, DEVICE);
    expect_idle(8 * MI, 4 * MI);
    WIRE_AWAIT(&h, s, s.evicted == 2);
    assert_false(compute_and_release(w, RESULT_N, 5, DEVICE));
    stop();
}

/* Computes a result and releases its lease. Returns the id of its block. */
static uint64_t block_of_result(uint64_t n, uint64_t seed)
{
    const Shuf__ResultReply *reply = wire_lease(w, n, seed, HOST);
    const uint64_t block = reply->block;
    assert_false(reply->shared);
    close(wire_take_descriptor(w));
    wire_release(w, reply->lease, block);
    return block;
}

/* A new block would not fit host_cache beside the idle ones, so the result gets the block that the
 * daemon would drop for it. */
static void result_takes_the_block_that_would_be_dropped(void **state)
{
    static const char *const small[] = {"host_cache", "10Mi", NULL};
    (void)state;
    start(small);
    const uint64_t half = block_of_result(RESULT_N / 2, 1), first = block_of_result(RESULT_N, 2),
                   second = block_of_result(RESULT_N, 3);
    assert_true(first != second);
    assert_int_equal(block_of_result(RESULT_N, 4), first);
    expect_idle(10 * MI, 0);
    /* Then 3 is the least recently used. */
    assert_true(compute_and_release(w, RESULT_N / 2, 1, HOST));
    assert_true(block_of_result(RESULT_N / 2, 5) != half);
    assert_true(compute_and_release(w, RESULT_N / 2, 1, HOST));
    assert_true(compute_and_release(w, RESULT_N, 4, HOST));
    WIRE_AWAIT(&h, s, s.host_idle == 8 * MI && s.host_used == 8 * MI && s.evicted == 2);
    stop();
}

/* A result larger than host_cache is not kept, and evicts nothing. */
static void result_above_host_cache_is_not_kept(void **state)
{
    static const char *const small[] = {"host_cache", "10Mi", NULL};
    (void)state;
    start(small);
    compute_and_release(w, RESULT_N, 1, HOST);
    compute_and_release(w, 4 * RESULT_N, 2, HOST);
    WIRE_AWAIT(&h, s, s.host_used == 4 * MI && s.host_idle == 4 * MI && s.evicted == 0);
    assert_true(compute_and_release(w, RESULT_N, 1, HOST));
    stop();
}

/* The result of a lease is not idle, so host_cache does not limit it. */
static void leased_results_are_not_idle(void **state)
{
    static const char *const none[] = {"host_cache", "0", NULL};
    (void)state;
    start(none);
    const uint64_t lease = wire_lease(w, RESULT_N, 1, HOST)->lease;
    struct wire *other = wire_greet(&h);
    assert_true(compute_and_release(other, RESULT_N, 1, HOST));
    wire_close(other);
    wire_release(w, lease, 0);
    expect_idle(0, 0);
    stop();
}

static void default_budgets_are_shares_of_memory(void **state)
{
    static const char *const no_options[] = {NULL};
    (void)state;
    start(no_options);
    compute_and_release(w, RESULT_N, 1, DEVICE);
    const Shuf__StatusReply s = wire_status(&h);
    assert_int_equal(s.host_limit, 1024 * MI);
    struct shuf__result_message permute = wire_permutation(UINT64_C(1) << 29, HOST); /* 2 GiB */
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_NO_MEMORY,
                "needs 2 GiB of host memory, the limit is 1 GiB: start shufd with a larger "
                "--host-memory");
    permute = wire_permutation(104 * MI, DEVICE); /* 416 MiB; the limit is a tenth of 4 GiB */
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_NO_MEMORY,
                "needs 416 MiB of device memory, the limit is 410 MiB: start shufd with a larger "
                "--device-memory");
    stop();
}

/* ---- Short of memory ---- */

static void host_shortage_frees_idle_results(void **state)
{
    (void)state;
    faults->own_blocks_count = true;
    start_with_defaults();
    compute_and_release(w, RESULT_N, 1, HOST);
    compute_and_release(w, RESULT_N, 2, HOST);
    const uint64_t lease = wire_lease(w, RESULT_N, 3, HOST)->lease;
    const int fd = wire_take_descriptor(w);
    usleep(600000); /* the daemon measures the memory twice meanwhile */
    expect_idle(8 * MI, 0);
    /* With the 12 MiB of the blocks, 2 MiB less than an eighth of 4 GiB. */
    faults->available = (510 + 12) * MI;
    WIRE_AWAIT(&h, s, s.host_idle == 4 * MI && s.evicted == 1);
    faults->available = 4096 * MI;
    assert_true(compute_and_release(w, RESULT_N, 2,
                                    HOST)); /* result 1, the least recently used, was evicted */
    faults->available = 20 * MI;
    WIRE_AWAIT(&h, s, s.host_idle == 0 && s.host_used == 4 * MI);
    /* Idle, but this process has the block open, so dropping it would free nothing. */
    wire_release(w, lease, 0);
    usleep(600000);
    expect_idle(4 * MI, 0);
    close(fd);
    WIRE_AWAIT(&h, s, s.host_used == 0);
    stop();
}

/* On a machine with much memory, 4 GiB of free memory are enough. */
static void fixed_threshold_on_large_machines(void **state)
{
    (void)state;
    faults->total = faults->available = 65536 * MI;
    start_with_defaults();
    compute_and_release(w, RESULT_N, 1, HOST);
    faults->available = 5000 * MI; /* less than an eighth */
    usleep(600000);
    expect_idle(4 * MI, 0);
    faults->available = 4000 * MI;
    WIRE_AWAIT(&h, s, s.host_idle == 0);
    stop();
}

static void device_shortage_frees_idle_results(void **state)
{
    (void)state;
    start_with_defaults();
    compute_and_release(w, RESULT_N, 1, DEVICE);
    compute_and_release(w, RESULT_N, 2, DEVICE);
    compute_and_release(w, RESULT_N, 3, HOST);
    usleep(600000);
    expect_idle(4 * MI, 8 * MI);
    faults->other_programs = 4000 * MI;
    WIRE_AWAIT(&h, s, s.device_idle == 0 && s.host_idle == 4 * MI && seen->device == 0);
    stop();
}

/* Idle device memory is freed even while the device is busy. */
static void device_shortage_is_met_while_a_job_runs(void **state)
{
    (void)state;
    start_with_defaults();
    compute_and_release(w, RESULT_N, 1, DEVICE);
    struct shuf__result_message waiting =
        wire_permutation(WAITING_N, SHUF__TRANSPORT__TRANSPORT_NONE);
    struct wire *blocker = wire_greet(&h);
    wire_send_result(blocker, &waiting);
    wire_await_queued(&h, 1);
    faults->other_programs = 4000 * MI;
    WIRE_AWAIT(&h, s, s.device_idle == 0 && seen->device == 0 && s.queued == 1);
    wire_close(blocker);
    stop();
}

/* Idle host memory is freed even while the device is busy. */
static void host_shortage_is_met_while_a_job_runs(void **state)
{
    (void)state;
    start_with_defaults();
    compute_and_release(w, RESULT_N, 1, HOST);
    struct shuf__result_message waiting =
        wire_permutation(WAITING_N, SHUF__TRANSPORT__TRANSPORT_NONE);
    struct wire *blocker = wire_greet(&h);
    const unsigned before = wire_descriptors(h.pid);
    wire_send_result(blocker, &waiting);
    wire_await_queued(&h, 1);
    faults->available = 10 * MI;
    WIRE_AWAIT(&h, s, s.host_idle == 0);
    for (unsigned waited = 0; wire_descriptors(h.pid) > before;) /* until the memfd is closed */
        wire_wait(&waited, "the block's descriptor");
    wire_close(blocker);
    stop();
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", faults->root, name);
    shufd_write(path, text);
}

static void write_psi(const char *name, uint64_t total_us)
{
    char text[128];
    snprintf(text, sizeof text, "some avg10=0.00 avg60=0.00 avg300=0.00 total=%llu\nfull total=0\n",
             (unsigned long long)total_us);
    write_file(name, text);
}

static void run_below_root(const char *command)
{
    char script[256];
    snprintf(script, sizeof script, "cd %s && %s", faults->root, command);
    assert_int_equal(system(script), 0);
}

/* Processes that wait for memory make memory count as short earlier. `name` is the file that
 * reports how long processes have waited (pressure stall information). */
static void check_pressure(const char *name)
{
    uint64_t stalled = 1000;
    write_psi(name, stalled);
    start_with_defaults();
    faults->available = 800 * MI; /* between an eighth and a quarter */
    compute_and_release(w, RESULT_N, 1, HOST);
    usleep(900000);
    expect_idle(4 * MI, 0);
    for (unsigned waited = 0; wire_status(&h).host_idle > 0;) {
        write_psi(name, stalled += 100000); /* more than a twentieth of the time that has passed */
        wire_wait(&waited, "the daemon gives back");
    }
    stop();
}

/* The waiting times of the machine, and those of the control group. */
static void memory_pressure_frees_idle_results(void **state)
{
    static const char *const names[] = {"proc/pressure/memory", "cg/a/memory.pressure"};
    (void)state;
    strcpy(faults->root, "/tmp/shuf-root-XXXXXX");
    assert_non_null(mkdtemp(faults->root));
    run_below_root("mkdir -p proc/pressure proc/self cg/a");
    write_file("proc/self/cgroup", "0::/a\n");
    write_file("proc/self/mountinfo", "31 23 0:28 / /cg rw - cgroup2 cgroup2 rw\n");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_pressure(names[i]);
    run_below_root("rm -r proc cg");
    assert_int_equal(rmdir(faults->root), 0);
}

/* A shortage writes one line to the log, however often memory is freed in the next seconds. */
static void shortage_is_logged_once(void **state)
{
    char log[4096];
    (void)state;
    start_with_defaults();
    faults->available = 400 * MI;
    for (int i = 0; i < 3; i++) {
        compute_and_release(w, RESULT_N, (uint64_t)i, HOST);
        WIRE_AWAIT(&h, s, s.host_idle == 0);
    }
    static const char line[] = "memory is short: gave back 1 unused result, 4 MiB of host memory, "
                               "0 B of device memory";
    shufd_await(h.log, log, sizeof log, line);
    const char *first = strstr(log, line);
    assert_null(strstr(first + 1, "memory is short"));
    stop();
}

/* ---- Dropping ---- */

static const Shuf__Reply *drop(struct wire *client, Shuf__Drop__OfCase of, uint32_t uid,
                               shuf_status status, const char *text)
{
    Shuf__Drop message = SHUF__DROP__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    message.of_case = of;
    if (of == SHUF__DROP__OF_ALL)
        message.all = true;
    if (of == SHUF__DROP__OF_UID)
        message.uid = uid;
    request.body_case = SHUF__REQUEST__BODY_DROP;
    request.drop = &message;
    wire_send(client, &request);
    return wire_expect(client, status, text);
}

static void expect_dropped(const Shuf__Reply *reply, uint64_t results, uint64_t host,
                           uint64_t device, uint64_t mapped)
{
    assert_int_equal(reply->body_case, SHUF__REPLY__BODY_DROP);
    assert_int_equal(reply->drop->results, results);
    assert_int_equal(reply->drop->host_bytes, host);
    assert_int_equal(reply->drop->device_bytes, device);
    assert_int_equal(reply->drop->mapped_bytes, mapped);
}

static void drop_frees_own_results(void **state)
{
    (void)state;
    start_with_defaults();
    expect_dropped(drop(w, SHUF__DROP__OF__NOT_SET, 0, SHUF_OK, ""), 0, 0, 0, 0);
    compute_and_release(w, RESULT_N, 1, HOST);
    compute_and_release(w, RESULT_N, 2, DEVICE);
    compute_and_release(w, RESULT_N, 3, DEVICE);
    const uint64_t lease = wire_lease(w, RESULT_N, 4, HOST)->lease;
    const uint64_t mapped = wire_lease(w, RESULT_N, 5, HOST)->lease;
    const int fd = wire_take_descriptor(w);
    wire_release(w, mapped, 0);
    expect_dropped(drop(w, SHUF__DROP__OF__NOT_SET, 0, SHUF_OK, ""), 4, 4 * MI, 8 * MI, 4 * MI);
    expect_idle(0, 0);
    WIRE_AWAIT(&h, s, seen->device == 0 && s.leases == 1 && s.pending_free == 1);
    assert_false(compute_and_release(w, RESULT_N, 1, HOST));
    assert_true(wire_lease(w, RESULT_N, 4, HOST)->shared); /* its lease keeps the result */
    wire_release(w, lease, 0);
    close(fd);
    WIRE_AWAIT(&h, s, s.pending_free == 0);
    stop();
}

/* A second user, whose results the first user cannot see. */
static void use_and_drop_as_nobody(int channel, void *context)
{
    (void)context;
    struct wire *client = wire_greet(&h);
    compute_and_release(client, RESULT_N, 1, HOST);
    child_send(channel, 1);
    child_receive(channel);
    drop(client, SHUF__DROP__OF_ALL, 0, SHUF_DENIED,
         "all users: expected root or the daemon's user, not uid 65534");
    drop(client, SHUF__DROP__OF_UID, 0, SHUF_DENIED,
         "user 0: expected your own uid, 65534; only root and the daemon's user");
    child_send(channel, 2);
    child_receive(channel);
    expect_dropped(drop(client, SHUF__DROP__OF_UID, CHILD_NOBODY, SHUF_OK, ""), 1, 4 * MI, 0, 0);
    compute_and_release(client, RESULT_N, 2, HOST);
    child_send(channel, 3);
    child_receive(channel);
    compute_and_release(client, RESULT_N, 3, HOST);
    wire_close(client);
}

static uint64_t idle_bytes_of(uint32_t uid)
{
    Shuf__Request request = SHUF__REQUEST__INIT;
    Shuf__Status status = SHUF__STATUS__INIT;
    request.body_case = SHUF__REQUEST__BODY_STATUS;
    request.status = &status;
    wire_send(w, &request);
    const Shuf__StatusReply *reply = wire_expect(w, SHUF_OK, "")->status_reply;
    for (size_t i = 0; i < reply->n_users; i++)
        if (reply->users[i]->uid == uid)
            return reply->users[i]->idle;
    return 0;
}

static void drop_of_other_users_needs_root(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    start_with_defaults();
    compute_and_release(w, RESULT_N, 1, HOST);
    struct child nobody = child_start_as(CHILD_NOBODY, use_and_drop_as_nobody, NULL);
    child_receive(nobody.channel);
    assert_int_equal(idle_bytes_of(0), 4 * MI);
    assert_int_equal(idle_bytes_of(CHILD_NOBODY), 4 * MI);
    child_send(nobody.channel, 1);
    child_receive(nobody.channel);
    expect_idle(8 * MI, 0); /* nothing was dropped */
    expect_dropped(drop(w, SHUF__DROP__OF__NOT_SET, 0, SHUF_OK, ""), 1, 4 * MI, 0, 0);
    assert_int_equal(idle_bytes_of(CHILD_NOBODY), 4 * MI);
    child_send(nobody.channel, 2);
    child_receive(nobody.channel);
    expect_dropped(drop(w, SHUF__DROP__OF_UID, CHILD_NOBODY, SHUF_OK, ""), 1, 4 * MI, 0, 0);
    compute_and_release(w, RESULT_N, 1, HOST);
    child_send(nobody.channel, 3);
    child_join(&nobody);
    WIRE_AWAIT(&h, s, s.host_idle == 8 * MI && s.clients == 2);
    expect_dropped(drop(w, SHUF__DROP__OF_ALL, 0, SHUF_OK, ""), 2, 8 * MI, 0, 0);
    stop();
}

#define ROW(test) cmocka_unit_test_setup(test, make_machine)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROW(results_stay_idle_up_to_host_cache),
        ROW(result_takes_the_block_that_would_be_dropped),
        ROW(result_above_host_cache_is_not_kept),
        ROW(leased_results_are_not_idle),
        ROW(default_budgets_are_shares_of_memory),
        ROW(host_shortage_frees_idle_results),
        ROW(device_shortage_frees_idle_results),
        ROW(fixed_threshold_on_large_machines),
        ROW(device_shortage_frees_idle_results),
        ROW(device_shortage_is_met_while_a_job_runs),
        ROW(host_shortage_is_met_while_a_job_runs),
        ROW(memory_pressure_frees_idle_results),
        ROW(shortage_is_logged_once),
        ROW(drop_frees_own_results),
        ROW(drop_of_other_users_needs_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
