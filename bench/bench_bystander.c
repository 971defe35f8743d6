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
#include "daemon.h"
#include "expected.h"
#include "hostile.h"
#include "process.h"
#include "redis.h"
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum {
    BYSTANDER_N = 1000, /* numbers of 4 bytes in a reply */
    BYSTANDER_WARM_UP = 500,
    BYSTANDER_SAMPLES = 200000, /* at most */
    BYSTANDER_CHECKED = 100,    /* the values of every BYSTANDER_CHECKED-th reply are checked */
    BYSTANDER_TIMEOUT_MS = 60000,
    BYSTANDER_UID = 61001,
    HOSTILE_UID = 61000,
    BUSY_MS = 300, /* time that an attack has to reach its full strength */
};

/* The bystander's results, in memory that the processes share. */
struct samples {
    size_t count;
    uint64_t failures;
    char failure[256]; /* the message of the last one */
    double ns[BYSTANDER_SAMPLES];
};

struct bench {
    struct report *report;
    struct samples *samples; /* of the row that runs */
    const char *backend;
    double run_ns;
    const char *only;        /* attacks whose names contain this text; NULL: all */
    cpu_set_t first, others; /* used with --apart */
    bool is_apart, has_groups, is_realtime;
};

/* Sends requests to a server for `run_ns`, and records the time of each. */
typedef void bystander(const void *server, double run_ns, struct samples *samples);

/* ---- Control groups ---- */

/* Groups of the processor, nested as systemd nests them: one for system services, one for users,
 * and one for each user in it. Groups beside each other have the same weight. Works with version 1
 * and version 2 of control groups, and needs root. */
enum group { GROUP_SERVICES, GROUP_USERS, GROUP_BYSTANDER, GROUP_HOSTILE, GROUPS };

static const char *const names[GROUPS] = {
    [GROUP_SERVICES] = "shuf-bench-services",
    [GROUP_USERS] = "shuf-bench-users",
    [GROUP_BYSTANDER] = "shuf-bench-users/bystander",
    [GROUP_HOSTILE] = "shuf-bench-users/hostile",
};
static const char *root; /* the directory of the whole tree */

static const char *path_of(enum group group, const char *file)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/%s", root, names[group], file);
    return path;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        die("%s: %s", path, strerror(errno));
}

static void remove_groups(void)
{
    for (int group = GROUPS - 1; group >= 0; group--)
        rmdir(path_of((enum group)group, ""));
}

/* In version 2 a group has the files of the processor only if the group above it says so. */
static void make(enum group group)
{
    if (mkdir(path_of(group, ""), 0755) != 0 && errno != EEXIST)
        die("control group %s: %s", path_of(group, ""), strerror(errno));
    if (group == GROUP_USERS && access(path_of(group, "cgroup.subtree_control"), F_OK) == 0)
        write_text(path_of(group, "cgroup.subtree_control"), "+cpu");
}

/* Makes the groups, and removes them at exit. Call it before the first process is started, because
 * a group can be removed only after its processes have ended. */
static void groups_make(void)
{
    const char *version_1 = "/sys/fs/cgroup/cpu", *version_2 = "/sys/fs/cgroup";
    root = access("/sys/fs/cgroup/cpu/cgroup.procs", F_OK) == 0 ? version_1 : version_2;
    if (root == version_2)
        write_text("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
    for (int group = 0; group < GROUPS; group++)
        make((enum group)group);
    atexit(remove_groups);
}

/* Moves a process into a group, with all its threads. */
static void group_join(enum group group, pid_t pid)
{
    char text[16];
    snprintf(text, sizeof text, "%ld", (long)pid);
    write_text(path_of(group, "cgroup.procs"), text);
}

/* ---- A bystander of any server ---- */

static bool is_wanted(const struct bench *bench, const struct attack *attack)
{
    return !bench->only || strstr(attack->name, bench->only);
}

/* With --realtime, runs the process's main thread before all other processes. */
static void run_first(const struct bench *bench, pid_t pid)
{
    const struct sched_param priority = {.sched_priority = 1};
    if (bench->is_realtime && sched_setscheduler(pid, SCHED_FIFO, &priority) != 0)
        die("--realtime: %s", strerror(errno));
}

static void become_bystander(const struct bench *bench)
{
    run_first(bench, 0);
    if (bench->has_groups)
        group_join(GROUP_BYSTANDER, getpid());
    if (setgid(BYSTANDER_UID) || setuid(BYSTANDER_UID))
        die("cannot become user %d: %s", BYSTANDER_UID, strerror(errno));
}

static void run_bystander(const struct bench *bench, bystander *run, const void *server)
{
    bench->samples->count = 0;
    bench->samples->failures = 0;
    bench->samples->failure[0] = '\0';
    const pid_t pid = process_fork();
    if (pid == 0) {
        become_bystander(bench);
        run(server, bench->run_ns, bench->samples);
        _exit(0);
    }
    int status;
    while (!process_ended(pid, &status))
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    if (status != 0)
        die("the bystander ended with wait status 0x%x", (unsigned)status);
}

/* ---- Rows ---- */

/* Adds a row with the latency of a bystander, which runs as a process of its own user. */
static void measure(const struct bench *bench, const char *name, bystander *run, const void *server)
{
    struct samples *samples = bench->samples;
    run_bystander(bench, run, server);
    report_latency(bench->report, name, BYSTANDER_N, samples->ns, samples->count);
    if (samples->failures)
        fprintf(stderr, "%s: %s\n", name, samples->failure);
}

/* Adds a figure of the row `name`. */
static void add_part(const struct bench *bench, const char *name, const char *part, double value,
                     const char *unit)
{
    char label[128];
    snprintf(label, sizeof label, "%s: %s", name, part);
    report_value(bench->report, label, BYSTANDER_N, value, unit);
}

/* Calls measure(), and adds the failed requests and the p99 over the p99 at rest. If
 * `*idle_p99` is 0, this row is at rest and sets it. */
static void measure_requests(const struct bench *bench, const char *name, bystander *run,
                             const void *server, double *idle_p99)
{
    const struct samples *samples = bench->samples;
    measure(bench, name, run, server);
    const double p99 = samples->count ? samples->ns[samples->count * 99 / 100] : 0;
    if (*idle_p99 == 0)
        *idle_p99 = p99;
    add_part(bench, name, "p99 / idle p99", p99 / *idle_p99, "");
    add_part(bench, name, "failed requests", (double)samples->failures, "");
}

/* ---- Attacks ---- */

/* Starts an attack of another user, and waits until it has its full strength. */
static void start_attack(const struct bench *bench, const struct attack *attack, const char *socket,
                         pid_t pids[HOSTILE_PROCESSES])
{
    hostile_start(attack, socket, HOSTILE_UID, bench->is_apart ? &bench->others : NULL, pids);
    for (int i = 0; bench->has_groups && i < HOSTILE_PROCESSES; i++)
        group_join(GROUP_HOSTILE, pids[i]);
    nanosleep(&(struct timespec){.tv_nsec = BUSY_MS * 1000000L}, NULL);
}

/* Ends the attack, and adds its bytes and connections. */
static void stop_attack(const struct bench *bench, const char *name,
                        const pid_t pids[HOSTILE_PROCESSES])
{
    struct attack_counts counts;
    hostile_stop(pids, &counts);
    add_part(bench, name, "sent", (double)counts.sent_bytes / 1e9, "GB");
    add_part(bench, name, "connections", (double)counts.connects, "");
}

/* ---- Redis: attacks ---- */

/* One thread of Redis serves all clients, as the loop of shufd does. The attacks are those of
 * hostile.c, as far as Redis has a counterpart: GET for a small result, INFO for Status. */

/* The request of the bystander. Its reply is a value of 4 * BYSTANDER_N bytes. */
#define REDIS_GET "*2\r\n$3\r\nGET\r\n$5\r\nvalue\r\n"

enum { REQUESTS = 16 /* in a batch */ };

static void add(struct batch *batch, const char *text)
{
    memcpy(batch->bytes + batch->size, text, strlen(text));
    batch->size += strlen(text);
}

static void fill_get(struct batch *batch, unsigned connection)
{
    (void)connection;
    for (int i = 0; i < REQUESTS; i++)
        add(batch, REDIS_GET);
}

static void fill_info(struct batch *batch, unsigned connection)
{
    (void)connection;
    for (int i = 0; i < REQUESTS; i++)
        add(batch, "*1\r\n$4\r\nINFO\r\n");
}

static void fill_garbage(struct batch *batch, unsigned connection)
{
    uint64_t state = connection + 1;
    batch_add_random(batch, sizeof batch->bytes, &state);
}

/* Fills the batch with a request whose length is out of range. */
static void fill_bad_frame(struct batch *batch, unsigned connection)
{
    (void)connection;
    add(batch, "*1\r\n$99999999999\r\n");
}

/* Redis closes the connections that exceed its memory for clients (redis_options). So connections
 * with large replies reconnect, else the attack would end. */
static const struct attack redis_attacks[] = {
    {.name = "redis: 500 idle connections", .connections = 500},
    {.name = "redis: 500 slow connections", .connections = 500, .fill = fill_get, .drip_ms = 10},
    {.name = "redis: 500 connections that do not read",
     .connections = 500,
     .fill = fill_get,
     .reading = NEVER_READS,
     .closed = RECONNECTS},
    {.name = "redis: garbage", .connections = 8, .fill = fill_garbage, .closed = RECONNECTS},
    {.name = "redis: refused connections",
     .connections = 2000,
     .fill = fill_garbage,
     .closed = RECONNECTS},
    {.name = "redis: INFO", .connections = 96, .fill = fill_info, .closed = RECONNECTS},
    {.name = "redis: small results", .connections = 96, .fill = fill_get, .closed = RECONNECTS},
    {0},
};

/* Redis logs no protocol errors at the level "notice", so its log does not fill. */
static const struct attack redis_attacks_on_log[] = {
    {.name = "redis: bad frames, log not read",
     .connections = 8,
     .fill = fill_bad_frame,
     .closed = RECONNECTS},
    {0},
};

#define SET "*3\r\n$3\r\nSET\r\n$5\r\nvalue\r\n"
#define HEADER "$4000\r\n"
#define END "\r\n"

enum {
    VALUE = 4 * BYSTANDER_N,
    BEFORE = sizeof HEADER - 1,
    REPLY = BEFORE + VALUE + sizeof END - 1,
};

_Static_assert(VALUE == 4000, "HEADER has the size of the value");

/* Redis counts the connections of all users together. Beside one connection of the bystander, shufd
 * admits 671 of another user by default: 75% (user_clients) of 1024 - 2 * 64 - 1.
 *
 * By default Redis does not limit the memory for replies, so some attacks would use up the memory
 * of the machine. */
static const char *const redis_options[] = {
    "--unixsocketperm", "777",    "--maxclients", "672", "--maxmemory-clients", "1gb",
    "--loglevel",       "notice", NULL,
};

/* ---- Redis: the bystander ---- */

/* Makes the reply to REDIS_GET. */
static void make_reply(uint8_t reply[REPLY])
{
    memcpy(reply, HEADER, BEFORE);
    for (int i = 0; i < VALUE; i++)
        reply[BEFORE + i] = (uint8_t)(i * 31 + i / 256);
    memcpy(reply + BEFORE + VALUE, END, sizeof END - 1);
}

static void check(const uint8_t reply[REPLY], bool checks_value)
{
    uint8_t expected[REPLY];
    make_reply(expected);
    if (memcmp(reply, expected, checks_value ? REPLY : BEFORE) != 0)
        die("redis: a wrong reply to GET");
}

/* Returns false if the reply is missing or too short. */
static bool redis_request_once(int fd, struct samples *samples, double *ns)
{
    uint8_t reply[REPLY];
    const bool checks_value = samples->count % BYSTANDER_CHECKED == 0;
    ssize_t got = -1;
    const double start = now_ns();
    if (send(fd, REDIS_GET, sizeof REDIS_GET - 1, MSG_NOSIGNAL) > 0)
        got = recv(fd, reply, sizeof reply, MSG_WAITALL);
    *ns = now_ns() - start;
    if (got == REPLY) {
        check(reply, checks_value);
        return true;
    }
    samples->failures++;
    snprintf(samples->failure, sizeof samples->failure, "GET: got %zd bytes, expected %d%s%s", got,
             REPLY, got < 0 ? ": " : "", got < 0 ? strerror(errno) : "");
    return false;
}

/* The warm-up ends after `run_ns` at the latest, because a request can take seconds. After a
 * failure the connection cannot be used any more. */
static void redis_request_all(const void *server, double run_ns, struct samples *samples)
{
    const int *fd = server;
    bool is_open = true;
    double ns = 0, end = now_ns() + run_ns;
    for (int i = 0; i < BYSTANDER_WARM_UP && is_open && now_ns() < end; i++)
        is_open = redis_request_once(*fd, samples, &ns);
    end = now_ns() + run_ns;
    do {
        is_open = is_open && redis_request_once(*fd, samples, &ns);
        samples->ns[samples->count++] = ns;
    } while (is_open && samples->count < BYSTANDER_SAMPLES && now_ns() < end);
}

/* Redis has no limit of connections of one user, so the bystander can connect only before the
 * attack. It has one blocking connection. */
static int connect_bystander(const struct redis *redis)
{
    const struct timeval timeout = {.tv_sec = BYSTANDER_TIMEOUT_MS / 1000};
    const int fd = redis_connect(redis);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) != 0)
        die("redis: timeout: %s", strerror(errno));
    return fd;
}

/* ---- Redis: rows ---- */

static double redis_idle_p99;

static void idle_row(const struct bench *bench, const struct redis *redis)
{
    const int fd = connect_bystander(redis);
    measure_requests(bench, "redis: idle", redis_request_all, &fd, &redis_idle_p99);
    close(fd);
}

static void redis_attack_row(const struct bench *bench, const struct attack *attack,
                             const struct redis *redis)
{
    pid_t pids[HOSTILE_PROCESSES];
    const int fd = connect_bystander(redis);
    start_attack(bench, attack, redis->socket, pids);
    measure_requests(bench, attack->name, redis_request_all, &fd, &redis_idle_p99);
    stop_attack(bench, attack->name, pids);
    close(fd);
}

/* The reply to REDIS_GET is also the end of the request that sets the value. */
static void set_value(const struct redis *redis)
{
    uint8_t request[sizeof SET - 1 + REPLY];
    char reply[5];
    const int fd = connect_bystander(redis);
    memcpy(request, SET, sizeof SET - 1);
    make_reply(request + sizeof SET - 1);
    if (send(fd, request, sizeof request, MSG_NOSIGNAL) != sizeof request ||
        recv(fd, reply, sizeof reply, MSG_WAITALL) != sizeof reply ||
        memcmp(reply, "+OK\r\n", sizeof reply) != 0)
        die("redis: cannot set the value");
    close(fd);
}

/* Measures all rows of a table against a new server with this log. */
static void redis_all_rows(const struct bench *bench, const char *program,
                           const struct attack *rows, const char *log)
{
    struct redis redis;
    redis_start(&redis, program, redis_options, log);
    if (bench->has_groups)
        group_join(GROUP_SERVICES, redis.pid);
    run_first(bench, redis.pid);
    set_value(&redis);
    if (redis_idle_p99 == 0)
        idle_row(bench, &redis);
    for (; rows->name; rows++)
        if (is_wanted(bench, rows))
            redis_attack_row(bench, rows, &redis);
    redis_stop(&redis);
}

/* Starts `program`, a redis-server, for each table, and adds the rows. If the program is not
 * installed, the report says so and has no rows. */
static void peer_redis_rows(const struct bench *bench, const char *program)
{
    if (!redis_have(bench->report, program))
        return;
    redis_all_rows(bench, program, redis_attacks, process_file("redis.log"));
    redis_all_rows(bench, program, redis_attacks_on_log, process_unread_file("redis-unread.log"));
}

static const uint64_t seed = 7;

/* ---- shufd: the bystander ---- */

static void shufd_request_once(shuf *handle, struct samples *samples, uint64_t epoch, double *ns)
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

static void shufd_request_all(const void *server, double run_ns, struct samples *samples)
{
    const struct daemon *daemon = server;
    shuf *handle = NULL;
    uint64_t epoch = 0;
    double ns;
    if (shuf_connect_within(&handle, daemon->socket, BYSTANDER_TIMEOUT_MS) != SHUF_OK)
        die("connect: %s", handle ? shuf_message(handle) : "no memory");
    while (epoch < BYSTANDER_WARM_UP)
        shufd_request_once(handle, samples, epoch++, &ns);
    for (const double start = now_ns();
         now_ns() - start < run_ns && samples->count < BYSTANDER_SAMPLES;)
        shufd_request_once(handle, samples, epoch++, &samples->ns[samples->count++]);
    shuf_close(handle);
}

static void connect_all(const void *server, double run_ns, struct samples *samples)
{
    const struct daemon *daemon = server;
    for (const double start = now_ns();
         now_ns() - start < run_ns && samples->count < BYSTANDER_SAMPLES;)
        connect_once(daemon->socket, samples, &samples->ns[samples->count++]);
}

/* ---- shufd: rows ---- */

static double shufd_idle_p99;

static void request_row(const struct bench *bench, const struct daemon *daemon, const char *name)
{
    measure_requests(bench, name, shufd_request_all, daemon, &shufd_idle_p99);
}

static void connect_row(const struct bench *bench, const struct daemon *daemon, const char *name)
{
    char label[128];
    snprintf(label, sizeof label, "%s: connect", name);
    measure(bench, label, connect_all, daemon);
    add_part(bench, name, "failed connects", (double)bench->samples->failures, "");
}

static void shufd_attack_row(const struct bench *bench, const struct attack *attack,
                             const struct daemon *attacked, const struct daemon *used)
{
    char name[96];
    pid_t pids[HOSTILE_PROCESSES];
    snprintf(name, sizeof name, "%s%s", attack->name,
             attacked == used ? "" : ", at another daemon");
    start_attack(bench, attack, attacked->socket, pids);
    request_row(bench, used, name);
    if (attack->closed == RECONNECTS)
        connect_row(bench, used, name);
    stop_attack(bench, name, pids);
}

static void start_daemon(struct daemon *daemon, const struct bench *bench, const char *name,
                         const char *log)
{
    daemon_start_with(daemon, name, bench->backend, "socket_mode = 0666\n", log);
    if (bench->has_groups)
        group_join(GROUP_SERVICES, daemon->pid);
}

/* Measures all rows of a table against a new daemon with this log. */
static void shufd_all_rows(const struct bench *bench, const struct attack *rows, const char *log)
{
    struct daemon daemon, other;
    start_daemon(&daemon, bench, "shufd", log);
    start_daemon(&other, bench, "other", log);
    run_first(bench, daemon.pid);
    if (shufd_idle_p99 == 0) {
        daemon_fact(&daemon, bench->report, "shufd");
        request_row(bench, &daemon, "idle");
        connect_row(bench, &daemon, "idle");
    }
    for (; rows->name; rows++)
        if (is_wanted(bench, rows)) {
            shufd_attack_row(bench, rows, &daemon, &daemon);
            if (rows->connections > 0)
                shufd_attack_row(bench, rows, &other, &daemon);
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
    shufd_all_rows(&bench, attacks, process_file("shufd.log"));
    shufd_all_rows(&bench, attacks_on_log, process_unread_file("unread.log"));
    if (peer)
        peer_redis_rows(&bench, peer);
    return report_end(bench.report);
}
