/* SPDX-License-Identifier: MIT
 *
 * The rows of bench_bystander, for any server: runs the bystander beside an attack, and reports its
 * latency. peer_redis.c has the rows of a peer.
 */
#ifndef SHUF__BENCH_BYSTANDER_ROWS_H
#define SHUF__BENCH_BYSTANDER_ROWS_H

#include "hostile.h"
#include "report.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    BYSTANDER_N = 1000, /* numbers of 4 bytes in a reply */
    BYSTANDER_WARM_UP = 500,
    BYSTANDER_SAMPLES = 200000, /* at most */
    BYSTANDER_CHECKED = 100,    /* the values of every BYSTANDER_CHECKED-th reply are checked */
    BYSTANDER_TIMEOUT_MS = 60000,
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

bool bench_selects(const struct bench *bench, const struct attack *attack);

/* With --realtime, runs the process's main thread before all other processes. */
void bench_run_first(const struct bench *bench, pid_t pid);

/* Adds a row with the latency of a bystander, which runs as a process of its own user. */
void bench_measure(const struct bench *bench, const char *name, bystander *run, const void *server);

/* Calls bench_measure(), and adds the failed requests and the p99 over the p99 at rest. If
 * `*idle_p99` is 0, this row is at rest and sets it. */
void bench_measure_requests(const struct bench *bench, const char *name, bystander *run,
                            const void *server, double *idle_p99);

/* Adds a figure of the row `name`. */
void bench_add_part(const struct bench *bench, const char *name, const char *part, double value,
                    const char *unit);

/* Starts an attack of another user, and waits until it has its full strength. */
void bench_start_attack(const struct bench *bench, const struct attack *attack, const char *socket,
                        pid_t pids[HOSTILE_PROCESSES]);

/* Ends the attack, and adds its bytes and connections. */
void bench_stop_attack(const struct bench *bench, const char *name,
                       const pid_t pids[HOSTILE_PROCESSES]);

/* ---- Control groups ---- */

/* Groups of the processor, nested as systemd nests them: one for system services, one for users,
 * and one for each user in it. Groups beside each other have the same weight. Works with version 1
 * and version 2 of control groups, and needs root. */
enum group { GROUP_SERVICES, GROUP_USERS, GROUP_BYSTANDER, GROUP_HOSTILE, GROUPS };

/* Makes the groups, and removes them at exit. Call it before the first process is started, because
 * a group can be removed only after its processes have ended. */
void groups_make(void);

/* Moves a process into a group, with all its threads. */
void group_join(enum group group, pid_t pid);

/* ---- redis-server as the server (peer_redis.c) ---- */

/* Starts `program`, a redis-server, for each table, and adds the rows. If the program is not
 * installed, the report says so and has no rows. */
void peer_redis_rows(const struct bench *bench, const char *program);

#endif
