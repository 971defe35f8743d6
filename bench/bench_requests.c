/* SPDX-License-Identifier: MIT
 *
 * Small requests: their latency and their rate, each next to a peer. --latency or --rate selects
 * one of the two.
 */
#include "daemon.h"
#include "expected.h"
#include "load.h"
#include "process.h"
#include "python_peer.h"
#include "redis.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Latency ---- */

/* Latency of small requests by one client of libshuf, from the call until the values can be read.
 * Each request has another epoch, so the cache never has its result. Each request also releases the
 * lease of the request before it. */

enum { N = 1000, SAMPLES = 20000, BATCH = 500, WARM_UP = 1000, CHECKED = 500 };

static const uint64_t seed = 7;

/* Compares the values of every CHECKED-th lease, outside of the measured time. */
static void check(shuf *handle, const shuf_lease *lease, const char *algorithm, uint64_t epoch)
{
    uint32_t values[N];
    if (lease->shared)
        die("epoch %llu: the lease is shared, expected a new result", (unsigned long long)epoch);
    if (epoch % CHECKED != 0)
        return;
    if (shuf_lease_read(handle, lease, 0, sizeof values, values) != SHUF_OK)
        die("lease: %s", shuf_message(handle));
    if (!is_expected(algorithm, values, N, seed, epoch))
        die("epoch %llu: wrong values", (unsigned long long)epoch);
}

struct timed_row {
    const char *algorithm;
    uint64_t epoch;
    double ns[SAMPLES];
};

/* Runs `count` requests. Unless `ns` is NULL, it receives their times. */
static void time_requests(shuf *handle, struct timed_row *row, const shuf_lease_options *options,
                          shuf_lease **lease, double *ns, int count)
{
    shuf_request request = {.permutation = {.n = N, .seed = seed, .algorithm = row->algorithm}};
    for (int i = 0; i < count; i++) {
        request.permutation.epoch = ++row->epoch;
        double start = now_ns();
        if (shuf_lease_take(handle, &request, options, lease) != SHUF_OK)
            die("%s: %s", shuf_transport_name(options->transports), shuf_message(handle));
        if (ns)
            ns[i] = now_ns() - start;
        check(handle, *lease, row->algorithm, request.permutation.epoch);
    }
}

/* Batches of the algorithms alternate, so other load on the machine affects both alike. */
static void transport_rows(struct report *report, const struct daemon *daemon,
                           shuf_transport transport)
{
    static struct timed_row rows[] = {{.algorithm = "primefold"}, {.algorithm = "philox24"}};
    enum { ROWS = sizeof rows / sizeof *rows };
    shuf *handle = daemon_connect(daemon);
    shuf_lease *lease = NULL;
    shuf_lease_options options = {.transports = transport};
    char name[96];
    for (int r = 0; r < ROWS; r++) {
        rows[r].epoch = 0;
        time_requests(handle, &rows[r], &options, &lease, NULL, WARM_UP);
    }
    for (int i = 0; i < SAMPLES; i += BATCH)
        for (int r = 0; r < ROWS; r++)
            time_requests(handle, &rows[r], &options, &lease, rows[r].ns + i, BATCH);
    if (shuf_lease_release(handle, &lease) != SHUF_OK)
        die("%s: %s", shuf_transport_name(transport), shuf_message(handle));
    shuf_close(handle);
    for (int r = 0; r < ROWS; r++) {
        snprintf(name, sizeof name, "shufd on %s, %s, %s", daemon->backend, rows[r].algorithm,
                 shuf_transport_name(transport));
        report_latency(report, name, N, rows[r].ns, SAMPLES);
    }
}

static void peer_row(struct report *report, const char *device)
{
    const char *arguments[] = {"latency", "--device", device, NULL}, *version;
    double *ns;
    char name[96];
    json_t *peer = python_peer_run(report, "torch_peers.py", arguments);
    if (!peer)
        return;
    size_t count = python_peer_numbers(peer, "ns", &ns);
    if (json_unpack(peer, "{s:s}", "torch", &version) == 0)
        report_fact(report, "torch", version);
    snprintf(name, sizeof name, "torch.randperm in process, %s", device);
    report_latency(report, name, N, ns, count);
    free(ns);
    json_decref(peer);
}

/* Each transport has a new daemon. All transports use the same epochs, and their results must not
 * be in the cache. */
static void requests_latency(struct report *report, const char *backend)
{
    static const struct {
        shuf_transport transport;
        bool cuda;
    } rows[] = {
        {SHUF_CUDA_FD, true}, {SHUF_CUDA_IPC, true}, {SHUF_MEMFD, false}, {SHUF_INLINE, false}};
    struct daemon daemon;
    bool cuda = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        daemon_start(&daemon, backend);
        cuda = strcmp(daemon.backend, "cuda") == 0;
        const char *why = cuda ? context_hold(daemon.device_id) : NULL;
        if (why)
            die("CUDA: %s", why);
        if (i == 0)
            daemon_fact(&daemon, report, "shufd, latency");
        if (cuda || !rows[i].cuda)
            transport_rows(report, &daemon, rows[i].transport);
        daemon_stop(&daemon);
    }
    if (cuda)
        peer_row(report, "cuda");
    peer_row(report, "cpu");
}

/* ---- Rate ---- */

/* The rate at which shufd replies to small requests. There are two peers, both PINGs to a
 * redis-server that this program starts: one from redis-benchmark, the other from the load
 * generator of this program. Their difference is the cost of the generators. The runs of all rows
 * alternate, so other load affects all rows alike. */

enum { ROUNDS = 7 };

static const double warm_ns = 0.3e9, run_ns = 0.7e9;

struct row {
    const char *label;
    struct load load;
    const char *pings; /* requests of a run of redis-benchmark; NULL: use load.h */
};

static const struct row rows[] = {
    {"redis-benchmark, ping_mbulk, 1 connection", {LOAD_PING, 1, 0, true}, "50000"},
    {"redis, PING by our generator, 1 connection", {LOAD_PING, 1, 0, true}, NULL},
    {"memfd, 1 connection", {LOAD_MEMFD, 1, 1000, false}, NULL},
    {"memfd, 1 connection", {LOAD_MEMFD, 1, 100, false}, NULL},
    {"memfd, equal requests, 1 connection", {LOAD_MEMFD, 1, 1000, true}, NULL},
    {"inline, 1 connection", {LOAD_INLINE, 1, 1000, false}, NULL},
    {"inline, 1 connection", {LOAD_INLINE, 1, 100, false}, NULL},
    {"inline, equal requests, 1 connection", {LOAD_INLINE, 1, 1000, true}, NULL},
    {"redis-benchmark, ping_mbulk, 64 connections", {LOAD_PING, 64, 0, true}, "100000"},
    {"redis, PING by our generator, 64 connections", {LOAD_PING, 64, 0, true}, NULL},
    {"memfd, 64 connections", {LOAD_MEMFD, 64, 1000, false}, NULL},
    {"memfd, 64 connections", {LOAD_MEMFD, 64, 100, false}, NULL},
    {"memfd, equal requests, 64 connections", {LOAD_MEMFD, 64, 1000, true}, NULL},
    {"inline, 64 connections", {LOAD_INLINE, 64, 1000, false}, NULL},
    {"inline, 64 connections", {LOAD_INLINE, 64, 100, false}, NULL},
    {"inline, equal requests, 64 connections", {LOAD_INLINE, 64, 1000, true}, NULL},
};

enum { ROWS = sizeof rows / sizeof *rows };

static void start_redis(struct redis *redis, struct report *report)
{
    const char *const no_options[] = {NULL};
    redis->pid = 0;
    if (redis_have(report, "redis-benchmark") && redis_have(report, "redis-server"))
        redis_start(redis, "redis-server", no_options, process_file("redis.log"));
}

static double ping_rate(const struct redis *redis, const struct row *row)
{
    char connections[16];
    double rate;
    snprintf(connections, sizeof connections, "%u", row->load.connections);
    const char *argv[] = {
        "redis-benchmark", "-s", redis->socket, "-t",    "ping_mbulk", "-P", "1", "-c",
        connections,       "-n", row->pings,    "--csv", NULL};
    char *text = process_output(argv);
    const char *line = text ? strstr(text, "\"PING_MBULK\",\"") : NULL;
    if (!line || sscanf(line, "\"PING_MBULK\",\"%lf\"", &rate) != 1)
        die("redis-benchmark: expected a line of PING_MBULK, got: %s", text ? text : "nothing");
    free(text);
    return rate;
}

static double rate_of(const struct row *row, const struct daemon *daemon, const struct redis *redis)
{
    if (row->pings)
        return ping_rate(redis, row);
    return load_rate(&row->load, row->load.kind == LOAD_PING ? redis->socket : daemon->socket,
                     warm_ns, run_ns);
}

/* Each run has a new daemon. All runs use the same epochs, and their results must not be in the
 * cache. */
static void run_row(const struct row *row, const char *backend, const struct redis *redis,
                    double *rate)
{
    struct daemon daemon;
    if (row->load.kind == LOAD_PING) {
        *rate = rate_of(row, NULL, redis);
        return;
    }
    daemon_start(&daemon, backend);
    *rate = rate_of(row, &daemon, redis);
    daemon_stop(&daemon);
}

static bool is_selected(const struct row *row, const struct redis *redis, const char *only)
{
    return (redis->pid != 0 || row->load.kind != LOAD_PING) && (!only || strstr(row->label, only));
}

/* Requests a second from 1 and from 64 connections, next to redis-benchmark's pings. `only`: rows
 * with this text in their names; NULL: all. */
static void requests_rate(struct report *report, const char *backend, const char *only)
{
    static double rates[ROWS][ROUNDS];
    struct daemon daemon;
    struct redis redis;
    daemon_start(&daemon, backend);
    daemon_fact(&daemon, report, "shufd, rate");
    daemon_stop(&daemon);
    start_redis(&redis, report);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < ROWS; i++)
            if (is_selected(&rows[i], &redis, only))
                run_row(&rows[i], backend, &redis, &rates[i][round]);
    for (int i = 0; i < ROWS; i++)
        if (is_selected(&rows[i], &redis, only))
            report_rate(report, rows[i].label, rows[i].load.n, "requests", rates[i], ROUNDS);
    if (redis.pid)
        redis_stop(&redis);
}

/* ---- The program ---- */

int main(int argc, char **argv)
{
    const char *latency = NULL, *rate = NULL, *only = NULL, *backend = NULL;
    const struct report_option options[] = {
        {"--latency", NULL, &latency},
        {"--rate", NULL, &rate},
        {"--only", "TEXT", &only}, /* rates only: rows whose names contain TEXT */
        /* default: "cpu" for rates, so that sockets and loops decide; "auto" for latency */
        {"--backend", "SPEC", &backend},
        {0},
    };
    struct report *report = report_begin_with("small requests", options, argc, argv);
    if (rate || !latency)
        requests_rate(report, backend ? backend : "cpu", only);
    if (latency || !rate)
        requests_latency(report, backend ? backend : "auto");
    return report_end(report);
}
