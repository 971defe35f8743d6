/* SPDX-License-Identifier: MIT
 *
 * Measures the latency of one user's small requests while another user attacks the daemon. The
 * first user is the bystander. It requests permutations of n = 1000 by INLINE, each with a new
 * epoch, one after the other. The program checks every value of some results, and no request may
 * fail. It needs root, to become two users.
 *
 * Each attack has a second row, in which it attacks another daemon. This row has only the
 * contention for the processors, and the first row also has the delays by the daemon's loop.
 *
 * The daemons, the bystander and the hostile processes share the processors of this program. To
 * give them two processors, run it by taskset(1). Options change the contention:
 * --apart: the bystander and its daemon have the first two processors, and the hostile processes
 * have the others.
 * --groups: each user and the daemons have control groups of equal weight, as under systemd.
 * --realtime: the bystander and the loop of its daemon run before all other processes, so only the
 * delays by the daemon remain.
 *
 * --peer redis-server: measures Redis in the same way, beside attacks of the same kinds.
 */
#include "bystander_rows.h"
#include "daemon.h"
#include "expected.h"
#include "process.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t seed = 7;

/* ---- The bystander ---- */

static void request_once(shuf *handle, struct samples *samples, uint64_t epoch, double *ns)
{
    uint32_t values[BYSTANDER_N];
    const shuf_request request = {
        .permutation = {.n = BYSTANDER_N, .seed = seed, .epoch = epoch, .dtype = SHUF_U32}};
    const double start = now_ns();
    const shuf_status status = shuf_copy(handle, &request, values, sizeof values, NULL);
    *ns = now_ns() - start;
    if (status != SHUF_OK) {
        samples->failures++;
        snprintf(samples->failure, sizeof samples->failure, "%s", shuf_message(handle));
    } else if (epoch % BYSTANDER_CHECKED == 0 &&
               !is_expected("primefold", values, BYSTANDER_N, seed, epoch)) {
        die("epoch %" PRIu64 ": wrong values", epoch);
    }
}

static void connect_once(const char *socket, struct samples *samples, double *ns)
{
    shuf *handle = NULL;
    const double start = now_ns();
    if (shuf_connect_within(&handle, socket, BYSTANDER_TIMEOUT_MS) != SHUF_OK) {
        samples->failures++;
        snprintf(samples->failure, sizeof samples->failure, "connect: %s",
                 handle ? shuf_message(handle) : "no memory");
    }
    *ns = now_ns() - start;
    shuf_close(handle);
}

static void request_all(const void *server, double run_ns, struct samples *samples)
{
    const struct daemon *daemon = server;
    shuf *handle = NULL;
    uint64_t epoch = 0;
    double ns;
    if (shuf_connect_within(&handle, daemon->socket, BYSTANDER_TIMEOUT_MS) != SHUF_OK)
        die("connect: %s", handle ? shuf_message(handle) : "no memory");
    while (epoch < BYSTANDER_WARM_UP)
        request_once(handle, samples, epoch++, &ns);
    for (const double start = now_ns();
         now_ns() - start < run_ns && samples->count < BYSTANDER_SAMPLES;)
        request_once(handle, samples, epoch++, &samples->ns[samples->count++]);
    shuf_close(handle);
}

static void connect_all(const void *server, double run_ns, struct samples *samples)
{
    const struct daemon *daemon = server;
    for (const double start = now_ns();
         now_ns() - start < run_ns && samples->count < BYSTANDER_SAMPLES;)
        connect_once(daemon->socket, samples, &samples->ns[samples->count++]);
}

/* ---- Rows ---- */

static double idle_p99;

static void request_row(const struct bench *bench, const struct daemon *daemon, const char *name)
{
    bench_measure_requests(bench, name, request_all, daemon, &idle_p99);
}

static void connect_row(const struct bench *bench, const struct daemon *daemon, const char *name)
{
    char label[128];
    snprintf(label, sizeof label, "%s: connect", name);
    bench_measure(bench, label, connect_all, daemon);
    bench_add_part(bench, name, "failed connects", (double)bench->samples->failures, "");
}

static void attack_row(const struct bench *bench, const struct attack *attack,
                       const struct daemon *attacked, const struct daemon *used)
{
    char name[96];
    pid_t pids[HOSTILE_PROCESSES];
    snprintf(name, sizeof name, "%s%s", attack->name,
             attacked == used ? "" : ", at another daemon");
    bench_start_attack(bench, attack, attacked->socket, pids);
    request_row(bench, used, name);
    if (attack->closed == RECONNECTS)
        connect_row(bench, used, name);
    bench_stop_attack(bench, name, pids);
}

static void start_daemon(struct daemon *daemon, const struct bench *bench, const char *name,
                         const char *log)
{
    daemon_start_with(daemon, name, bench->backend, "socket_mode = 0666\n", log);
    if (bench->has_groups)
        group_join(GROUP_SERVICES, daemon->pid);
}

/* Measures all rows of a table against a new daemon with this log. */
static void all_rows(const struct bench *bench, const struct attack *rows, const char *log)
{
    struct daemon daemon, other;
    start_daemon(&daemon, bench, "shufd", log);
    start_daemon(&other, bench, "other", log);
    bench_run_first(bench, daemon.pid);
    if (idle_p99 == 0) {
        daemon_fact(&daemon, bench->report, "shufd");
        request_row(bench, &daemon, "idle");
        connect_row(bench, &daemon, "idle");
    }
    for (; rows->name; rows++)
        if (bench_selects(bench, rows)) {
            attack_row(bench, rows, &daemon, &daemon);
            if (rows->connections > 0)
                attack_row(bench, rows, &other, &daemon);
        }
    daemon_stop(&other);
    daemon_stop(&daemon);
}

/* ---- Settings ---- */

static void keep_processors_apart(struct bench *bench)
{
    cpu_set_t all;
    int found = 0;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 3)
        die("--apart: needs three processors");
    CPU_ZERO(&bench->first);
    CPU_ZERO(&bench->others);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, found++ < 2 ? &bench->first : &bench->others);
    bench->is_apart = true;
    if (sched_setaffinity(0, sizeof bench->first, &bench->first) != 0)
        die("--apart: %s", strerror(errno));
}

/* Other users must reach the socket. */
static void open_directory(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s", process_file("shufd"));
    if (chmod(dirname(path), 0755) != 0)
        die("%s: %s", path, strerror(errno));
}

int main(int argc, char **argv)
{
    const char *seconds = "3", *apart = NULL, *groups = NULL, *realtime = NULL, *peer = NULL;
    struct bench bench = {.backend = "cpu"};
    const struct report_option options[] = {
        {"--seconds", "S", &seconds}, /* of each row */
        {"--only", "TEXT", &bench.only},
        {"--apart", NULL, &apart},
        {"--groups", NULL, &groups},
        {"--realtime", NULL, &realtime},
        {"--backend", "SPEC", &bench.backend},
        {"--peer", "PROGRAM", &peer}, /* a redis-server */
        {0},
    };
    bench.report = report_begin_with("a bystander of attacks", options, argc, argv);
    bench.samples = mmap(NULL, sizeof *bench.samples, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (geteuid() != 0)
        die("needs root, to become two users");
    if (bench.samples == MAP_FAILED)
        die("no memory");
    bench.run_ns = atof(seconds) * 1e9;
    bench.has_groups = groups != NULL;
    bench.is_realtime = realtime != NULL;
    if (groups)
        groups_make();
    if (apart)
        keep_processors_apart(&bench);
    open_directory();
    all_rows(&bench, attacks, process_file("shufd.log"));
    all_rows(&bench, attacks_on_log, process_unread_file("unread.log"));
    if (peer)
        peer_redis_rows(&bench, peer);
    return report_end(bench.report);
}
