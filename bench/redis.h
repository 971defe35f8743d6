/* SPDX-License-Identifier: MIT
 *
 * Starts a redis-server, a peer of shufd, on a socket in the benchmark's directory. It ends with
 * the benchmark in all cases (process.h). Failures end the program.
 */
#ifndef SHUF__BENCH_REDIS_H
#define SHUF__BENCH_REDIS_H

#include "report.h"

#include <stdbool.h>
#include <sys/types.h>

struct redis {
    pid_t pid; /* 0: not started */
    const char *socket;
};

/* Whether a program of Redis is installed. Adds its version to the report. */
bool redis_have(struct report *report, const char *program);

/* Starts the server `program`. It keeps all data in memory. `options` has up to 16 further words,
 * and NULL at the end. Returns when the server accepts connections. */
void redis_start(struct redis *redis, const char *program, const char *const *options,
                 const char *log);

/* Ends the server by SIGTERM. Its exit code must be 0. */
void redis_stop(struct redis *redis);

/* Opens a blocking connection. */
int redis_connect(const struct redis *redis);

#endif
