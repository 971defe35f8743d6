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
 */
#include "clock.h"
#include "daemon.h"
#include "expected.h"
#include "groups.h"
#include "hostile.h"
#include "process.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    N = 1000,
    WARM_UP = 500,
    SAMPLES = 200000, /* at most */
    CHECKED = 100,    /* the values of every CHECKED-th request are checked */
    BYSTANDER_UID = 61001,
    HOSTILE_UID = 61000,
    TIMEOUT_MS = 60000,
    BUSY_MS = 300, /* time that an attack has to reach its full strength */
};

static const uint64_t seed = 7;

/* The bystander's results, in memory that the processes share. */
struct samples {
    size_t count;
    uint64_t failures;
    char failure[256]; /* the message of the last one */
    double worst_ns;
    double ns[SAMPLES];
};

struct settings {
    const char *backend;
    double run_ns;
    const char *only;        /* attacks whose names contain this text; NULL: all */
    cpu_set_t first, others; /* used with --apart */
    bool is_apart, has_groups, is_realtime;
};

/* ---- The bystander ---- */

static void request_once(shuf *handle, struct samples *samples, uint64_t epoch, double *ns)
{
    uint32_t values[N];
    const shuf_permutation request = {.n = N, .seed = seed, .epoch = epoch, .dtype = SHUF_U32};
    const double start = now_ns();
    const shuf_status status = shuf_permute(handle, &request, values, sizeof values, NULL);
    *ns = now_ns() - start;
    if (status != SHUF_OK) {
        samples->failures++;
        snprintf(samples->failure, sizeof samples->failure, "%s", shuf_message(handle));
    } else if (epoch % CHECKED == 0 && !is_expected("primefold", values, N, seed, epoch)) {
        die("epoch %" PRIu64 ": wrong values", epoch);
    }
}

static void connect_once(const char *socket, struct samples *samples, double *ns)
{
    shuf *handle = NULL;
    const double start = now_ns();
    if (shuf_connect_within(&handle, socket, TIMEOUT_MS) != SHUF_OK) {
        samples->failures++;
        snprintf(samples->failure, sizeof samples->failure, "connect: %s",
                 handle ? shuf_message(handle) : "no memory");
    }
    *ns = now_ns() - start;
    shuf_close(handle);
}

static void run_first(const struct settings *settings, pid_t pid)
{
    const struct sched_param priority = {.sched_priority = 1};
    if (settings->is_realtime && sched_setscheduler(pid, SCHED_FIFO, &priority) != 0)
        die("--realtime: %s", strerror(errno));
}

static void become_bystander(const struct settings *settings)
{
    run_first(settings, 0);
    if (settings->has_groups)
        group_join(GROUP_BYSTANDER, getpid());
    if (setgid(BYSTANDER_UID) || setuid(BYSTANDER_UID))
        die("cannot become user %d: %s", BYSTANDER_UID, strerror(errno));
}

static void request_all(const char *socket, double run_ns, struct samples *samples)
{
    shuf *handle = NULL;
    uint64_t epoch = 0;
    double ns;
    if (shuf_connect_within(&handle, socket, TIMEOUT_MS) != SHUF_OK)
        die("connect: %s", handle ? shuf_message(handle) : "no memory");
    while (epoch < WARM_UP)
        request_once(handle, samples, epoch++, &ns);
    for (const double start = now_ns(); now_ns() - start < run_ns && samples->count < SAMPLES;)
        request_once(handle, samples, epoch++, &samples->ns[samples->count++]);
    shuf_close(handle);
}

static void connect_all(const char *socket, double run_ns, struct samples *samples)
{
    for (const double start = now_ns(); now_ns() - start < run_ns && samples->count < SAMPLES;)
        connect_once(socket, samples, &samples->ns[samples->count++]);
}

typedef void bystander(const char *socket, double run_ns, struct samples *samples);

static void measure(const struct settings *settings, bystander *run, const struct daemon *daemon,
                    struct samples *samples)
{
    samples->count = 0;
    samples->failures = 0;
    samples->failure[0] = '\0';
    const pid_t pid = process_fork();
    if (pid == 0) {
        become_bystander(settings);
        run(daemon->socket, settings->run_ns, samples);
        _exit(0);
    }
    int status;
    while (!process_ended(pid, &status))
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    if (status != 0)
        die("the bystander ended with wait status 0x%x", (unsigned)status);
}

/* ---- Rows ---- */

static double idle_p99;

static void report_row(struct report *report, const char *name, struct samples *samples)
{
    report_latency(report, name, N, samples->ns, samples->count);
    if (samples->failures)
        fprintf(stderr, "%s: %s\n", name, samples->failure);
}

static void report_part(struct report *report, const char *name, const char *part, double value,
                        const char *unit)
{
    char label[128];
    snprintf(label, sizeof label, "%s: %s", name, part);
    report_value(report, label, N, value, unit);
}

static void request_row(struct report *report, const struct settings *settings,
                        const struct daemon *daemon, const char *name, struct samples *samples)
{
    measure(settings, request_all, daemon, samples);
    report_row(report, name, samples);
    const double p99 = samples->count ? samples->ns[samples->count * 99 / 100] : 0;
    if (idle_p99 == 0)
        idle_p99 = p99;
    report_part(report, name, "p99 / idle p99", p99 / idle_p99, "");
    report_part(report, name, "failed requests", (double)samples->failures, "");
}

static void connect_row(struct report *report, const struct settings *settings,
                        const struct daemon *daemon, const char *name, struct samples *samples)
{
    char label[128];
    snprintf(label, sizeof label, "%s: connect", name);
    measure(settings, connect_all, daemon, samples);
    report_row(report, label, samples);
    report_part(report, name, "failed connects", (double)samples->failures, "");
}

static void start_attack(const struct settings *settings, const struct attack *attack,
                         const struct daemon *attacked, pid_t pids[HOSTILE_PROCESSES])
{
    hostile_start(attack, attacked->socket, HOSTILE_UID,
                  settings->is_apart ? &settings->others : NULL, pids);
    for (int i = 0; settings->has_groups && i < HOSTILE_PROCESSES; i++)
        group_join(GROUP_HOSTILE, pids[i]);
    nanosleep(&(struct timespec){.tv_nsec = BUSY_MS * 1000000L}, NULL);
}

static void attack_row(struct report *report, const struct settings *settings,
                       const struct attack *attack, const struct daemon *attacked,
                       const struct daemon *used, struct samples *samples)
{
    char name[96];
    pid_t pids[HOSTILE_PROCESSES];
    struct attack_counts counts;
    snprintf(name, sizeof name, "%s%s", attack->name,
             attacked == used ? "" : ", at another daemon");
    start_attack(settings, attack, attacked, pids);
    request_row(report, settings, used, name, samples);
    if (attack->closed == RECONNECTS)
        connect_row(report, settings, used, name, samples);
    hostile_stop(pids, &counts);
    report_part(report, name, "sent", (double)counts.sent_bytes / 1e9, "GB");
    report_part(report, name, "connections", (double)counts.connects, "");
}

static void start_daemon(struct daemon *daemon, const struct settings *settings, const char *name,
                         const char *log)
{
    daemon_start_with(daemon, name, settings->backend, "socket_mode = 0666\n", log);
    if (settings->has_groups)
        group_join(GROUP_SERVICES, daemon->pid);
}

/* Measures all rows of a table against a new daemon with this log. */
static void all_rows(struct report *report, const struct settings *settings,
                     const struct attack *rows, const char *log, struct samples *samples)
{
    struct daemon daemon, other;
    start_daemon(&daemon, settings, "shufd", log);
    start_daemon(&other, settings, "other", log);
    run_first(settings, daemon.pid);
    if (idle_p99 == 0) {
        daemon_fact(&daemon, report, "shufd");
        request_row(report, settings, &daemon, "idle", samples);
        connect_row(report, settings, &daemon, "idle", samples);
    }
    for (; rows->name; rows++)
        if (!settings->only || strstr(rows->name, settings->only)) {
            attack_row(report, settings, rows, &daemon, &daemon, samples);
            if (rows->connections > 0)
                attack_row(report, settings, rows, &other, &daemon, samples);
        }
    daemon_stop(&other);
    daemon_stop(&daemon);
}

/* A FIFO that is open for reading, so the daemon can open it, and that nobody reads. */
static const char *unread_log(void)
{
    const char *path = process_file("unread.log");
    if (mkfifo(path, 0600) != 0 || open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK) < 0)
        die("%s: %s", path, strerror(errno));
    return path;
}

/* ---- Settings ---- */

static void keep_processors_apart(struct settings *settings)
{
    cpu_set_t all;
    int found = 0;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < 3)
        die("--apart: needs three processors");
    CPU_ZERO(&settings->first);
    CPU_ZERO(&settings->others);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, found++ < 2 ? &settings->first : &settings->others);
    settings->is_apart = true;
    if (sched_setaffinity(0, sizeof settings->first, &settings->first) != 0)
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
    const char *seconds = "3", *apart = NULL, *groups = NULL, *realtime = NULL;
    struct settings settings = {.backend = "cpu"};
    const struct report_option options[] = {
        {"--seconds", "S", &seconds}, /* of each row */
        {"--only", "TEXT", &settings.only},
        {"--apart", NULL, &apart},
        {"--groups", NULL, &groups},
        {"--realtime", NULL, &realtime},
        {"--backend", "SPEC", &settings.backend},
        {0},
    };
    struct report *report = report_begin_with("a bystander of attacks", options, argc, argv);
    struct samples *samples =
        mmap(NULL, sizeof *samples, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (geteuid() != 0)
        die("needs root, to become two users");
    if (samples == MAP_FAILED)
        die("no memory");
    settings.run_ns = atof(seconds) * 1e9;
    settings.has_groups = groups != NULL;
    settings.is_realtime = realtime != NULL;
    if (groups)
        groups_make();
    if (apart)
        keep_processors_apart(&settings);
    open_directory();
    all_rows(report, &settings, attacks, process_file("shufd.log"), samples);
    all_rows(report, &settings, attacks_on_log, unread_log(), samples);
    return report_end(report);
}
