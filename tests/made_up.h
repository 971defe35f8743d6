/* SPDX-License-Identifier: MIT
 *
 * A server in a child, on a device that tests make up: the CPU's, but with memory
 * that the host cannot read, as a GPU's, with faults, and with whatever its jobs are
 * to work in. So what only a GPU, or only a broken one, would show is seen on every
 * machine.
 */
#ifndef TESTS_MADE_UP_H
#define TESTS_MADE_UP_H

#include "harness.h"

#include <stdbool.h>
#include <stdint.h>

enum { WAITING_N = 12345 }; /* such a job lasts until it is cancelled */

/* What is wrong with the device, and what its jobs work in. */
struct faults {
    unsigned read_us;         /* each read takes this long */
    uint64_t read_fails_from; /* reads from this offset on fail; 0: none */
    bool permute_fails, hangs;
    uint64_t best, least;       /* bytes that permutations work in, */
    bool elsewhere;             /* of the device's memory, where results are in the host's */
    uint64_t available, total;  /* bytes of the host's memory; 0: as it is */
    uint64_t device;            /* bytes of the device's; 0: as much as the host has */
    unsigned wait_us;           /* each job takes this long */
    unsigned first_full, fulls; /* there is no memory at so many allocations, from that one on, */
    bool fails_when_full;       /* which is told as a failure of the device */
};

/* What the device has seen. */
struct seen {
    unsigned allocations, jobs;
    _Atomic uint64_t taken;   /* bytes of the device's memory; told while it is used */
    uint64_t workspace_bytes; /* of the last job; 0: it had none */
    const void *workspace_at;
};

/* In memory that the server shares. */
extern struct faults *faults;
extern struct seen *seen;

/* cmocka's setup: no faults, and nothing seen. */
int made_up_reset(void **state);

/* Its settings as in a configuration file, each name before its value; NULL at the end. */
void made_up_start(struct harness *h, const char *const *settings);

/* On a device that is not there: the server's exit status. */
int made_up_start_without(struct harness *h);

#endif
