/* SPDX-License-Identifier: MIT
 *
 * A process of bench_share. It takes leases and checks its views. It receives commands over a
 * socket: one message for a command, one for its outcome.
 */
#ifndef SHUF__BENCH_SHARE_WORKER_H
#define SHUF__BENCH_SHARE_WORKER_H

#include "daemon.h"

#include <stdbool.h>
#include <stdint.h>

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

static const uint64_t share_seed = 7;

/* Runs commands until the socket ends. */
_Noreturn void share_work(const struct daemon *daemon, shuf_transport transport, uint64_t n,
                          int fd);

#endif
