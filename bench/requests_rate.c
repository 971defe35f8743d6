/* SPDX-License-Identifier: MIT
 *
 * The rate at which shufd replies to small requests. There are two peers, both PINGs to a
 * redis-server that this program starts: one from redis-benchmark, the other from the load
 * generator of this program. Their difference is the cost of the generators. The runs of all rows
 * alternate, so other load affects all rows alike.
 */
#include "clock.h"
#include "daemon.h"
#include "load.h"
#include "process.h"
#include "redis.h"
#include "requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- Redis ---- */

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

/* ---- The runs ---- */

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

void requests_rate(struct report *report, const char *backend, const char *only)
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
