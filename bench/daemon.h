/* SPDX-License-Identifier: MIT
 *
 * A shufd of the benchmark's own, on a socket in the benchmark's directory. It ends with the
 * benchmark, whatever ends that (process.h). Failures end the program and show the daemon's log.
 */
#ifndef SHUF__BENCH_DAEMON_H
#define SHUF__BENCH_DAEMON_H

#include "report.h"
#include "shuf.h"

#include <sys/types.h>

struct daemon {
    pid_t pid;
    const char *socket;
    char backend[16]; /* what it computes with: "cpu", "cuda" */
    char device_id[64];
};

/* `backend`: as for shufd --backend. Returns when it answers. */
void daemon_start(struct daemon *daemon, const char *backend);

/* By SIGTERM; its exit code must be 0. */
void daemon_stop(struct daemon *daemon);

/* A connection, and what the daemon reports of itself. */
shuf *daemon_connect(const struct daemon *daemon);
void daemon_status(const struct daemon *daemon, shuf_daemon *status);

/* Its version and device, as a fact of the report. */
void daemon_fact(const struct daemon *daemon, struct report *report, const char *name);

#endif
