/* SPDX-License-Identifier: MIT
 *
 * Starts a shufd for the benchmark, on a socket in the benchmark's directory. It ends with the
 * benchmark in all cases (process.h). Failures end the program and show the daemon's log.
 */
#ifndef SHUF__BENCH_DAEMON_H
#define SHUF__BENCH_DAEMON_H

#include "report.h"
#include "shuf.h"

#include <sys/types.h>

struct daemon {
    pid_t pid;
    const char *socket;
    char backend[16]; /* "cpu" or "cuda" */
    char device_id[64];
};

/* `backend`: as for shufd --backend. Returns when the daemon replies. */
void daemon_start(struct daemon *daemon, const char *backend);

/* Does the same as daemon_start(), with the name of the socket, the text of a configuration and a
 * file for the log. */
void daemon_start_with(struct daemon *daemon, const char *name, const char *backend,
                       const char *config, const char *log);

/* Ends the daemon by SIGTERM. Its exit code must be 0. */
void daemon_stop(struct daemon *daemon);

/* Opens a connection; requests the daemon's status. */
shuf *daemon_connect(const struct daemon *daemon);
void daemon_status(const struct daemon *daemon, shuf_daemon *status);

/* Adds the daemon's version and device to the report, as a fact. */
void daemon_fact(const struct daemon *daemon, struct report *report, const char *name);

/* A CUDA context for the benchmark's process, because a training process has one before its first
 * request. libcuda is loaded at run time, so the benchmark itself needs no CUDA.
 *
 * Makes the primary context of the GPU with that UUID ("GPU-...") current until the process ends.
 * Returns NULL, or the reason of a failure. */
const char *context_hold(const char *device_id);

#endif
