/* SPDX-License-Identifier: MIT
 *
 * A hostile user of a server, for bench_bystander. Its processes hold connections and send the
 * bytes of one attack on each of them, without end.
 */
#ifndef SHUF__BENCH_HOSTILE_H
#define SHUF__BENCH_HOSTILE_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { HOSTILE_PROCESSES = 2, HOSTILE_BATCH = 1 << 20 };

/* The bytes that a connection sends again and again. */
struct batch {
    uint8_t bytes[HOSTILE_BATCH];
    size_t size;
};

/* Adds random bytes to the batch. `state` is of the generator, and begins with any seed. */
void batch_add_random(struct batch *batch, size_t size, uint64_t *state);

struct attack {
    const char *name;
    unsigned connections;  /* of all processes together; 0: they compute, and use no server */
    void (*greet)(int fd); /* sends the first requests of a connection; NULL: there are none */
    /* Fills the batch of a connection; NULL: the connections send nothing. */
    void (*fill)(struct batch *batch, unsigned connection);
    unsigned drip_ms; /* time between two bytes; 0: as much as the socket takes */
    enum { READS, NEVER_READS } reading;
    /* Opens a connection again that the server has closed. */
    enum { STAYS_CLOSED, RECONNECTS } closed;
};

/* Counts of a running attack, in memory that the processes share. */
struct attack_counts {
    uint64_t sent_bytes, received_bytes, connects, closes;
};

/* The tables of attacks on shufd: with a reader of the daemon's log, and with a log that nobody
 * reads. A table ends with a NULL name. */
extern const struct attack attacks[], attacks_on_log[];

/* Starts the processes as the user `uid`, on the processors `cpus` (NULL: any). Returns when all
 * connections are open. */
void hostile_start(const struct attack *attack, const char *socket, uid_t uid,
                   const cpu_set_t *cpus, pid_t pids[HOSTILE_PROCESSES]);

/* Ends the processes. Ends the program if one of them has failed. */
void hostile_stop(const pid_t pids[HOSTILE_PROCESSES], struct attack_counts *counts);

#endif
