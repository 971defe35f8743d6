/* SPDX-License-Identifier: MIT
 *
 * One permutation that several processes share. The first process takes the lease, and the daemon
 * computes the result. Every other process takes an equal lease and maps the same memory. The
 * program checks every view, and compares the daemon's counts of computations, blocks and bytes
 * with the expected ones. The peer is the same number of processes that each call torch.randperm.
 */
#include "daemon.h"
#include "expected.h"
#include "number.h"
#include "process.h"
#include "python_peer.h"
#include "report.h"
#include "shuf/fingerprint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- A worker process ---- */

/* A worker takes leases and checks its views. It receives commands over a socket: one message for a
 * command, one for its outcome. It compares the first and last values with those of the inline C,
 * and reports a fingerprint of slices between them, which must be the same in all workers. */

enum act {
    ACT_BEGIN,   /* opens a connection and, with a GPU, a context, as a training process has */
    ACT_CONNECT, /* replaces the connection by a new one */
    ACT_TAKE,    /* takes the lease of that epoch */
    ACT_CHECK,   /* checks the view at some places */
    ACT_RELEASE, /* checks its first values, and releases it */
};

struct command {
    enum act act;
    uint64_t epoch;
};

struct outcome {
    double ns; /* ACT_TAKE: from the call to the view */
    uint64_t device_ns;
    bool shared;
    uint64_t fingerprint; /* ACT_CHECK: of slices all over the view */
    uint64_t block;       /* and the id of its block */
    char error[256];      /* "": no error */
};

static const uint64_t seed = 7;

enum {
    EDGE = 4096, /* values to compare at each end */
    PLACES = 16, /* slices in the fingerprint, of EDGE values each */
    GLANCE = 16, /* values to compare before a release */
};

struct worker {
    const struct daemon *daemon;
    shuf_transport transport;
    uint64_t n, epoch;
    shuf *handle;
    shuf_lease *lease;
    struct outcome *outcome;
};

static void fail(struct worker *w, const char *label, const char *why)
{
    snprintf(w->outcome->error, sizeof w->outcome->error, "%s: %s", label, why);
}

static void connect_worker(struct worker *w)
{
    shuf_close(w->handle);
    if (shuf_connect(&w->handle, w->daemon->socket) != SHUF_OK)
        fail(w, "connect", shuf_message(w->handle));
}

/* Does the work that a training process has done before its first request. */
static void begin(struct worker *w)
{
    bool cuda = w->transport == SHUF_CUDA_FD || w->transport == SHUF_CUDA_IPC;
    const char *why = cuda ? context_hold(w->daemon->device_id) : NULL;
    if (why)
        fail(w, "CUDA", why);
    connect_worker(w);
}

/* The time ends when the first value is read, or, for device memory, when the call returns. */
static void take(struct worker *w, uint64_t epoch)
{
    shuf_request request = {.permutation = {.n = w->n, .seed = seed, .epoch = epoch}};
    shuf_lease_options options = {.transports = w->transport};
    double start = now_ns();
    if (shuf_lease_take(w->handle, &request, &options, &w->lease) != SHUF_OK) {
        fail(w, "lease", shuf_message(w->handle));
        return;
    }
    if (w->lease->device_id[0] == '\0')
        *(volatile const uint8_t *)w->lease->data;
    w->outcome->ns = now_ns() - start;
    w->outcome->device_ns = w->lease->result.device_ns;
    w->outcome->shared = w->lease->shared;
    w->epoch = epoch;
}

static bool read_values(struct worker *w, uint64_t first, uint64_t count, uint64_t *values)
{
    unsigned width = w->lease->result.shape.width;
    uint8_t bytes[EDGE * 8];
    if (shuf_lease_read(w->handle, w->lease, first * width, count * width, bytes) != SHUF_OK) {
        fail(w, "read", shuf_message(w->handle));
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint32_t narrow;
        memcpy(&narrow, bytes + i * 4, sizeof narrow);
        values[i] = narrow;
        if (width == 8)
            memcpy(&values[i], bytes + i * 8, sizeof *values);
    }
    return true;
}

static void compare(struct worker *w, const uint64_t *values, const uint64_t *expected,
                    uint64_t count, uint64_t first)
{
    char why[128];
    for (uint64_t i = 0; i < count; i++)
        if (values[i] != expected[i]) {
            snprintf(why, sizeof why, "value %" PRIu64 " is %" PRIu64 ", expected %" PRIu64,
                     first + i, values[i], expected[i]);
            fail(w, "view", why);
            return;
        }
}

static void check_part(struct worker *w, uint64_t first, uint64_t count)
{
    uint64_t values[EDGE], expected[EDGE];
    expected_part(w->n, seed, w->epoch, first, count, expected);
    if (read_values(w, first, count, values))
        compare(w, values, expected, count, first);
}

static void add_places(struct worker *w, uint64_t count)
{
    uint64_t values[EDGE], sum = 0;
    for (uint64_t place = 0; place < PLACES; place++) {
        uint64_t first = (w->n - count) / PLACES * place;
        if (!read_values(w, first, count, values))
            return;
        for (uint64_t i = 0; i < count; i++)
            sum += shuf_fingerprint_term(first + i, values[i]);
    }
    w->outcome->fingerprint = sum;
}

static void check(struct worker *w)
{
    uint64_t count = w->n < EDGE ? w->n : EDGE;
    check_part(w, 0, count);
    check_part(w, w->n - count, count);
    add_places(w, count);
    w->outcome->block = w->lease->block;
}

static void release(struct worker *w)
{
    check_part(w, 0, w->n < GLANCE ? w->n : GLANCE);
    if (shuf_lease_release(w->handle, &w->lease) != SHUF_OK)
        fail(w, "release", shuf_message(w->handle));
    w->lease = NULL;
}

static void obey(struct worker *w, const struct command *command)
{
    switch (command->act) {
    case ACT_BEGIN:
        begin(w);
        return;
    case ACT_CONNECT:
        connect_worker(w);
        return;
    case ACT_TAKE:
        take(w, command->epoch);
        return;
    case ACT_CHECK:
        check(w);
        return;
    case ACT_RELEASE:
        release(w);
        return;
    }
}

/* Runs commands until the socket ends. */
static _Noreturn void share_work(const struct daemon *daemon, shuf_transport transport, uint64_t n,
                                 int fd)
{
    struct worker w = {.daemon = daemon, .transport = transport, .n = n};
    struct command command;
    while (recv(fd, &command, sizeof command, 0) == sizeof command) {
        struct outcome outcome = {0};
        w.outcome = &outcome;
        obey(&w, &command);
        if (send(fd, &outcome, sizeof outcome, 0) != sizeof outcome)
            break;
    }
    shuf_close(w.handle);
    _exit(0);
}

/* ---- All worker processes ---- */

enum { PROCESSES = 64 }; /* limit of --processes */

struct settings {
    const char *backend, *transports;
    uint64_t n, processes, rounds;
};

struct party {
    struct report *report;
    const struct settings *settings;
    struct daemon daemon;
    shuf_transport transport;
    pid_t pid[PROCESSES];
    int fd[PROCESSES];
    struct outcome outcome[PROCESSES]; /* the last outcome of each process */
};

static void gather(struct party *p)
{
    for (uint64_t i = 0; i < p->settings->processes; i++) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
            die("socketpair: %s", strerror(errno));
        p->pid[i] = process_fork();
        if (p->pid[i] == 0) {
            for (uint64_t j = 0; j < i; j++)
                close(p->fd[j]);
            close(ends[0]);
            share_work(&p->daemon, p->transport, p->settings->n, ends[1]);
        }
        close(ends[1]);
        p->fd[i] = ends[0];
    }
}

static void disperse(struct party *p)
{
    for (uint64_t i = 0; i < p->settings->processes; i++) {
        close(p->fd[i]);
        if (process_end(p->pid[i], 0) != 0)
            die("process %" PRIu64 " failed", i);
    }
}

static void send_command(struct party *p, uint64_t i, enum act act, uint64_t epoch)
{
    struct command command = {act, epoch};
    if (send(p->fd[i], &command, sizeof command, 0) != sizeof command)
        die("process %" PRIu64 " is gone", i);
}

static const struct outcome *receive_outcome(struct party *p, uint64_t i)
{
    struct outcome *outcome = &p->outcome[i];
    if (recv(p->fd[i], outcome, sizeof *outcome, 0) != sizeof *outcome)
        die("process %" PRIu64 " is gone", i);
    if (outcome->error[0] != '\0')
        die("process %" PRIu64 ", %s: %s", i, shuf_transport_name(p->transport), outcome->error);
    return outcome;
}

static const struct outcome *run_command(struct party *p, uint64_t i, enum act act, uint64_t epoch)
{
    send_command(p, i, act, epoch);
    return receive_outcome(p, i);
}

/* Runs the command in all processes from `first` on at the same time. */
static void run_command_all(struct party *p, uint64_t first, enum act act, uint64_t epoch)
{
    for (uint64_t i = first; i < p->settings->processes; i++)
        send_command(p, i, act, epoch);
    for (uint64_t i = first; i < p->settings->processes; i++)
        receive_outcome(p, i);
}

static void check_all(struct party *p)
{
    run_command_all(p, 0, ACT_CHECK, 0);
    for (uint64_t i = 1; i < p->settings->processes; i++)
        if (p->outcome[i].fingerprint != p->outcome[0].fingerprint ||
            p->outcome[i].block != p->outcome[0].block)
            die("process %" PRIu64 " has other values or another block than process 0", i);
}

static uint64_t result_bytes(uint64_t n)
{
    shuf_request request = {.permutation = {.n = n}};
    shuf_shape shape;
    char why[256];
    if (shuf_shape_of(&request, &shape, why, sizeof why) != SHUF_OK)
        die("--n: %s", why);
    return shape.bytes;
}

static const char *row(const struct party *p, const char *label)
{
    static char name[96];
    snprintf(name, sizeof name, "%s: %s", shuf_transport_name(p->transport), label);
    return name;
}

/* ---- Measurements ---- */

static void first_lease(struct party *p)
{
    uint64_t n = p->settings->n, bytes = result_bytes(n);
    double ns = run_command(p, 0, ACT_TAKE, 0)->ns, device_ns = (double)p->outcome[0].device_ns;
    if (p->outcome[0].shared)
        die("the first lease was shared: expected it to be computed");
    report_add(p->report, row(p, "first lease, which computes"), n, n, "values", bytes, &ns, 1);
    report_add(p->report, row(p, "  of which computing"), n, n, "values", bytes, &device_ns, 1);
}

/* In each round, all processes but the first take and release a lease: one after another, or all at
 * once. The first process keeps its lease, so the result stays in the cache. */
static void views(struct party *p, const char *label, uint64_t rounds, bool anew, bool at_once)
{
    uint64_t others = p->settings->processes - 1, count = 0;
    double *ns = calloc(rounds * others, sizeof *ns);
    if (!ns)
        die("out of memory");
    for (uint64_t round = 0; round < rounds; round++) {
        if (anew)
            run_command_all(p, 1, ACT_CONNECT, 0);
        for (uint64_t i = 1; i <= others && !at_once; i++)
            run_command(p, i, ACT_TAKE, 0);
        if (at_once)
            run_command_all(p, 1, ACT_TAKE, 0);
        for (uint64_t i = 1; i <= others; i++) {
            if (!p->outcome[i].shared)
                die("process %" PRIu64 ": the daemon computed the result again", i);
            ns[count++] = p->outcome[i].ns;
        }
        run_command_all(p, 1, ACT_RELEASE, 0);
    }
    report_latency(p->report, row(p, label), p->settings->n, ns, count);
    free(ns);
}

static void first_views(struct party *p)
{
    double ns[PROCESSES];
    uint64_t others = p->settings->processes - 1;
    for (uint64_t i = 1; i <= others; i++)
        ns[i - 1] = run_command(p, i, ACT_TAKE, 0)->ns;
    report_latency(p->report, row(p, "first view of each further process"), p->settings->n, ns,
                   others);
}

static uint64_t used(const struct party *p, const shuf_daemon *status)
{
    return p->transport == SHUF_MEMFD ? status->host_used : status->memory_used;
}

/* Host memory of the daemon and all processes, as the kernel accounts it. */
static double kernel_bytes(const struct party *p)
{
    double bytes = process_memory(p->daemon.pid);
    for (uint64_t i = 0; i < p->settings->processes; i++)
        bytes += process_memory(p->pid[i]);
    return bytes;
}

static void memory_rows(struct party *p, const shuf_daemon *before)
{
    uint64_t n = p->settings->n, bytes = result_bytes(n), most = bytes + bytes / 8 + (2 << 20);
    shuf_daemon now;
    daemon_status(&p->daemon, &now);
    uint64_t computed = now.computed - before->computed, blocks = now.blocks - before->blocks;
    uint64_t held = used(p, &now) - used(p, before), leases = now.leases - before->leases;
    report_value(p->report, row(p, "computations"), n, (double)computed, "");
    report_value(p->report, row(p, "leases"), n, (double)leases, "");
    report_value(p->report, row(p, "blocks"), n, (double)blocks, "");
    report_value(p->report, row(p, "memory of all"), n, (double)held, "bytes");
    report_value(p->report, row(p, "memory of separate copies"), n,
                 (double)(p->settings->processes * bytes), "bytes");
    if (p->transport == SHUF_MEMFD)
        report_value(p->report, row(p, "host memory, as the kernel counts it"), n, kernel_bytes(p),
                     "bytes");
    if (computed != 1 || blocks != 1 || held < bytes || held > most)
        die("%" PRIu64 " computations, %" PRIu64 " blocks, %" PRIu64
            " bytes: expected 1, 1 and %" PRIu64 " to %" PRIu64,
            computed, blocks, held, bytes, most);
}

/* All processes request a result that is not computed yet, as the processes of the peer do. */
static void all_at_once(struct party *p)
{
    uint64_t processes = p->settings->processes;
    double ns[PROCESSES];
    shuf_daemon before, after;
    daemon_status(&p->daemon, &before);
    run_command_all(p, 0, ACT_TAKE, 1);
    for (uint64_t i = 0; i < processes; i++)
        ns[i] = p->outcome[i].ns;
    daemon_status(&p->daemon, &after);
    if (after.computed != before.computed + 1)
        die("%" PRIu64 " computations for equal requests in flight, expected 1",
            after.computed - before.computed);
    report_latency(p->report, row(p, "all at once, not yet computed"), p->settings->n, ns,
                   processes);
    check_all(p);
    run_command_all(p, 0, ACT_RELEASE, 0);
}

static void measure(struct party *p)
{
    shuf_daemon before;
    uint64_t rounds = p->settings->rounds;
    run_command_all(p, 0, ACT_BEGIN, 0);
    daemon_status(&p->daemon, &before);
    first_lease(p);
    first_views(p);
    check_all(p);
    memory_rows(p, &before);
    run_command_all(p, 1, ACT_RELEASE, 0);
    views(p, "view, on a new connection", rounds, true, false);
    views(p, "view again, on the same connection", rounds, false, false);
    views(p, "view again, all at once", rounds, false, true);
    run_command(p, 0, ACT_RELEASE, 0);
    all_at_once(p);
}

/* Measures one transport, with a new daemon and new processes. So it cannot use memory that another
 * transport mapped. */
static void transport_rows(struct report *report, const struct settings *settings,
                           shuf_transport transport)
{
    static struct party p;
    p = (struct party){.report = report, .settings = settings, .transport = transport};
    daemon_start(&p.daemon, settings->backend);
    gather(&p);
    measure(&p);
    disperse(&p);
    daemon_stop(&p.daemon);
}

static void peer_rows(struct report *report, const struct settings *settings, const char *device)
{
    char n[32], processes[32], label[96];
    const char *arguments[] = {"share",   "--n",      n,      "--processes",
                               processes, "--device", device, NULL};
    double *ns, wall;
    int together;
    const char *version, *dtype;
    snprintf(n, sizeof n, "%" PRIu64, settings->n);
    snprintf(processes, sizeof processes, "%" PRIu64, settings->processes);
    json_t *peer = python_peer_run(report, "torch_peers.py", arguments);
    if (!peer)
        return;
    size_t count = python_peer_numbers(peer, "ns", &ns);
    if (json_unpack(peer, "{s:s, s:s, s:b, s:F}", "torch", &version, "dtype", &dtype, "together",
                    &together, "wall_ns", &wall) != 0)
        die("torch_peers.py: a member is missing in its output");
    report_fact(report, "torch", version);
    report_fact(report, "torch's processes",
                together ? "all at the same time" : "one after another: not enough memory");
    snprintf(label, sizeof label, "torch.randperm, %s, %s, each process", device, dtype + 6);
    report_latency(report, label, settings->n, ns, count);
    snprintf(label, sizeof label, "torch.randperm, %s, %s, all of them", device, dtype + 6);
    report_latency(report, label, settings->n, &wall, 1);
    free(ns);
    json_decref(peer);
}

/* ---- The command line ---- */

static uint64_t number(const char *name, const char *text, uint64_t least, uint64_t most)
{
    struct shuf__error error;
    uint64_t value;
    if (shuf__number_parse(name, text, &value, &error) != SHUF_OK)
        die("%s", error.text);
    if (value < least || value > most)
        die("%s %" PRIu64 ": expected %" PRIu64 " to %" PRIu64, name, value, least, most);
    return value;
}

static double available_bytes(void)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return (double)kib * 1024;
}

static bool wants(const struct settings *settings, shuf_transport transport, const char *backend)
{
    bool cuda = transport != SHUF_MEMFD;
    const char *name = shuf_transport_name(transport);
    if (!settings->transports)
        return !cuda || strcmp(backend, "cuda") == 0;
    const char *found = strstr(settings->transports, name);
    size_t length = strlen(name);
    return found && (found[length] == '\0' || found[length] == ',');
}

int main(int argc, char **argv)
{
    static const shuf_transport transports[] = {SHUF_CUDA_FD, SHUF_CUDA_IPC, SHUF_MEMFD};
    const char *n = NULL, *processes = "8", *rounds = "50", *alone = NULL;
    struct settings settings = {.backend = "auto"};
    const struct report_option options[] = {
        {"--n", "N", &n},
        {"--processes", "N", &processes},
        {"--rounds", "N", &rounds},
        {"--backend", "SPEC", &settings.backend},
        {"--transports", "NAME,...", &settings.transports},
        {"--no-peer", NULL, &alone},
        {0},
    };
    struct daemon daemon;
    struct report *report =
        report_begin_with("one permutation for several processes", options, argc, argv);
    /* The daemon keeps two results at a time: with n = 1e9, 4 GB each. */
    if (!n)
        n = available_bytes() < 12e9 ? "1e8" : "1e9";
    settings.n = number("--n", n, 1, UINT64_C(1) << 40);
    settings.processes = number("--processes", processes, 2, PROCESSES);
    settings.rounds = number("--rounds", rounds, 1, 1000000);
    daemon_start(&daemon, settings.backend);
    daemon_fact(&daemon, report, "shufd");
    daemon_stop(&daemon);
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++)
        if (wants(&settings, transports[i], daemon.backend))
            transport_rows(report, &settings, transports[i]);
    if (!alone)
        peer_rows(report, &settings, strcmp(daemon.backend, "cuda") == 0 ? "cuda" : "cpu");
    return report_end(report);
}
