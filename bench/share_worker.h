/* SPDX-License-Identifier: MIT
 *
 * A process of bench_share, which takes leases and checks its views. It gets commands over
 * a socket: one message for a command, one for its outcome.
 */
#ifndef SHUF__BENCH_SHARE_WORKER_H
#define SHUF__BENCH_SHARE_WORKER_H

#include "daemon.h"

#include <stdbool.h>
#include <stdint.h>

enum act {
    ACT_BEGIN,   /* a connection, and on a GPU a context: what a training process has anyway */
    ACT_CONNECT, /* a new connection for the old one */
    ACT_TAKE,    /* the lease of that epoch */
    ACT_CHECK,   /* the whole view, at some places */
    ACT_RELEASE, /* after a glance at its first values */
};

struct command {
    enum act act;
    uint64_t epoch;
};

struct outcome {
    double ns; /* ACT_TAKE: from call to view */
    uint64_t device_ns;
    bool shared;
    uint64_t fingerprint; /* ACT_CHECK: of slices all over the view */
    uint64_t block;       /*   and where it is: the daemon's name for that memory */
    char error[256];      /* "" when all is well */
};

static const uint64_t share_seed = 7;

/* Runs commands until the socket ends. */
_Noreturn void share_work(const struct daemon *daemon, shuf_transport transport, uint64_t n,
                          int fd);

#endif
