/* SPDX-License-Identifier: MIT
 *
 * A server in a child process with a fake backend. The backend computes on the CPU, but the host
 * cannot read its memory, as with a GPU. Its faults and workspaces are configurable, so tests of
 * GPU behaviour and of device failures run on every machine.
 */
#ifndef TESTS_FAKE_BACKEND_H
#define TESTS_FAKE_BACKEND_H

#include "support/harness.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    WAITING_N = 12345, /* a computation with this n runs until it is cancelled */
    SEEDS = 8,         /* its calls are counted by its seed, modulo this */
    SMALL = 10000,     /* evaluations of a small computation of a simulated GPU */
};

/* Faults of the device, and the workspaces of its computations. */
struct faults {
    unsigned read_us;         /* duration of each read */
    uint64_t read_fails_from; /* a read at or after this offset fails; 0: none fails */
    bool permute_fails, hangs;
    bool open_hangs; /* opening the device for a new lane does not return */
    uint64_t workspace_best, workspace_least; /* bytes of a permutation's workspace */
    bool workspace_on_device;  /* the workspace is in device memory, results in host memory */
    uint64_t available, total; /* bytes of host memory; 0: the real values */
    bool own_blocks_count;     /* the server's own blocks of host memory reduce `available` */
    uint64_t device;           /* total bytes of device memory; 0: the figures of host memory */
    uint64_t other_programs;   /* bytes of device memory that other programs use */
    unsigned wait_us;          /* duration of each computation */
    unsigned workspace_us;     /* duration of each question for the workspace */
    bool is_gpu;      /* the daemon's results are in device memory, and it takes turns of a GPU */
    unsigned call_us; /* WAITING_N makes calls of this duration, one after the other; 0: none */
    _Atomic bool calls_hang; /* while this is true, no call ends */
    /* `full_count` allocations fail, starting with number `full_from`. */
    unsigned full_from, full_count;
    bool fails_when_full;    /* they fail with SHUF_DEVICE instead of SHUF_NO_MEMORY */
    _Atomic bool full_later; /* they fail only when this is false */
    char root[64];           /* a directory with /proc and /sys for the server; "": the harness's */
};

/* Counters of the fake device. Several lanes may compute at the same time. */
struct seen {
    _Atomic unsigned opened; /* backends: one of the loop, and one of each lane */
    _Atomic unsigned allocations, launches;
    _Atomic uint64_t device;          /* bytes of device memory in use */
    _Atomic uint64_t host;            /* bytes of host memory in use */
    _Atomic uint64_t workspace_bytes; /* size of the last computation's workspace; 0: none */
    const void *_Atomic workspace_at;
    /* Calls of the device, which serves one after the other. A call is late if it waits for one
     * that began before. */
    _Atomic unsigned calls, late_calls, calls_done;
    _Atomic unsigned calls_of[SEEDS]; /* of WAITING_N */
};

/* In memory shared with the server process. */
extern struct faults *faults;
extern struct seen *seen;

/* cmocka's setup: no faults, all counters 0. */
int fake_backend_reset(void **state);

/* Starts the server with /proc and /sys in the harness's directory. settings: names and values of
 * the configuration in turn; ends with NULL. */
void fake_backend_start(struct harness *h, const char *const *settings);

/* Starts the server with a missing device; returns its exit status. */
int fake_backend_start_without_device(struct harness *h);

#endif
