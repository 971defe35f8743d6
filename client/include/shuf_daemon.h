/* SPDX-License-Identifier: MIT
 *
 * The functions of libshuf that concern the daemon itself: its state, its metrics, and the memory
 * that it keeps for reuse. Programs include shuf.h, which includes this file.
 */
#ifndef SHUF_DAEMON_H
#define SHUF_DAEMON_H

#include "shuf_handle.h"
#include "shuf_status.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The use of a daemon by one user. */
typedef struct shuf_user {
    uint32_t uid;
    uint64_t clients, leases;
    uint64_t blocks, bytes; /* of memory */
    uint64_t idle;          /* of these bytes: those of unused results, kept for reuse */
    uint64_t mapped;        /* of these bytes: those that processes have mapped without a lease */
    uint64_t mapped_pid;    /* the process with most of these; 0: unknown, or of another user */
} shuf_user;

enum { SHUF_USERS = 32 };

typedef struct shuf_daemon {
    char version[32];   /* "shufd 0.1.0" */
    char backend[16];   /* "cpu", "cuda" */
    char device[128];   /* name of the device */
    char device_id[64]; /* a GPU's UUID, or the CPU's instruction set */
    uint64_t pid;
    uint64_t pid_namespace; /* inode number of the PID namespace that has `pid`; 0: unknown */
    uint64_t uptime_ms;
    uint64_t clients;                   /* connections, this one included */
    uint64_t client_limit;              /* the most connections at a time */
    uint64_t queued, queue_limit;       /* jobs waiting or running */
    uint64_t served;                    /* results since the start, without buffers */
    uint64_t memory_used, memory_limit; /* bytes of blocks in the backend's memory */
    uint64_t host_used,
        host_limit;       /* bytes of blocks in host memory; the same on the CPU backend */
    uint64_t blocks;      /* allocations */
    uint64_t buffers;     /* of these: buffers that clients fill */
    uint64_t host_idle;   /* of host_used: kept for reuse, held by nobody */
    uint64_t device_idle; /* the same in device memory */
    uint64_t host_idle_limit, device_idle_limit; /* the most that the daemon keeps idle */
    uint64_t pending_free; /* of the blocks: unused, but still mapped by a process */
    uint64_t leases;
    uint64_t hits;             /* requests answered from the cache */
    uint64_t joined;           /* requests that joined a queued or running computation */
    uint64_t computed;         /* results computed */
    uint64_t computed_on_host; /* of these: by the host's processors */
    uint64_t evicted;          /* results evicted for other results or programs */
    uint64_t log_dropped; /* lines of its log that were dropped, because the reader was too slow */
    bool copies_host;     /* it lends no host memory (memfd) */
    char lending_fault[256]; /* why it lends none: the cause, "; " and an advice */
    char metrics[256]; /* where it publishes metrics: an address, a file, or both; "": nowhere */
    char reload_fault[512]; /* why the last reload has changed nothing; "": no fault */
    char gpu_fault[512]; /* why backend = auto has not chosen the GPU, though a driver is loaded */
    char metrics_fault[256]; /* why it does not at a configured place; "": no fault */
    char configuration[256]; /* the configuration file that it has read; "": none */
    unsigned users; /* length of `user`, ordered by bytes, largest first; at most SHUF_USERS */
    shuf_user user[SHUF_USERS];
    uint64_t other_users; /* users with connections or blocks that `user` leaves out */
} shuf_daemon;

/* Reads the state of the daemon. Users other than root and the daemon's user read only their own
 * row of users. Fails as shuf_connect(). */
SHUF_API shuf_status shuf_daemon_status(shuf *handle, shuf_daemon *daemon);

/* The users whose unused results shuf_drop() frees. */
typedef enum shuf_owner {
    SHUF_OWN = 0,  /* of the user of this process */
    SHUF_USER = 1, /* of one user */
    SHUF_ALL = 2,  /* of all users */
} shuf_owner;

typedef struct shuf_dropped {
    uint64_t results;                  /* removed from the cache of the daemon */
    uint64_t host_bytes, device_bytes; /* freed, with unused scratch memory */
    uint64_t mapped_bytes;             /* freed later, when no process has them mapped */
} shuf_dropped;

/* Frees the memory of unused results, which the daemon keeps for reuse. Leases stay. A call that
 * frees the memory of this user also ends the prefetches of this handle. `uid` is the user of
 * SHUF_USER, else ignored. `dropped` may be NULL. The frees begin at once, also while a job runs,
 * and the call does not wait for their end. Only root and the daemon's user may free the memory of
 * another user or of all users; for others the call fails with SHUF_DENIED. Fails also as
 * shuf_connect(). */
SHUF_API shuf_status shuf_drop(shuf *handle, shuf_owner owner, uint32_t uid, shuf_dropped *dropped);

/* The format of metrics. Both end with a new line. */
typedef enum shuf_metrics_format {
    SHUF_PROMETHEUS = 0,  /* the text format of Prometheus, version 0.0.4 */
    SHUF_OPENMETRICS = 1, /* version 1.0.0, with exemplars */
} shuf_metrics_format;

/* Reads the metrics of the daemon. On success the caller frees *text with free(); after a failure
 * *text is NULL. Users other than root and the daemon's user read only their own rows of users.
 * Fails as shuf_connect(). */
SHUF_API shuf_status shuf_daemon_metrics(shuf *handle, shuf_metrics_format format, char **text);

#ifdef __cplusplus
}
#endif

#endif
