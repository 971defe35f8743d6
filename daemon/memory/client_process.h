/* SPDX-License-Identifier: MIT
 *
 * Which processes may have which blocks mapped. A process is tracked from its first block until it
 * has reported every block as unmapped, or is dead: the end of its connection proves nothing. Its
 * death also ends its connection, even if another process has inherited the socket. On the loop's
 * thread.
 */
#ifndef SHUFD_CLIENT_PROCESS_H
#define SHUFD_CLIENT_PROCESS_H

#include "allocations.h"

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <uv.h>

struct shuf__client_process;

/* All processes. */
struct shuf__client_processes {
    uv_loop_t *loop;
    LIST_HEAD(, shuf__client_process) detached; /* those without a connection */
};

/* The client at the other end of one connection; embedded in its session. */
struct shuf__client {
    struct shuf__client_processes *all;
    pid_t pid; /* 0: in a PID namespace that the daemon does not see */
    uid_t uid;
    bool same_namespace;                  /* known to be in the daemon's PID namespace */
    struct shuf__client_process *process; /* NULL: it has no block */
    void (*died)(struct shuf__client *client);
};

struct shuf__process_mapping {
    struct shuf__client_process *process;
    struct shuf__allocation *allocation;
    LIST_ENTRY(shuf__process_mapping) of_process, of_allocation;
};

void shuf__client_processes_init(struct shuf__client_processes *processes, uv_loop_t *loop,
                                 struct shuf__allocations *allocations);

/* The client is about to get the allocation's block. *fresh: it does not have the block yet. Device
 * memory goes only to processes that can be watched; fails with SHUF_DENIED, SHUF_IO or
 * SHUF_NO_MEMORY. */
shuf_status shuf__client_add_mapping(struct shuf__client *client,
                                     struct shuf__allocation *allocation, bool *fresh,
                                     struct shuf__error *error);

/* The client reports that it has unmapped that block. */
void shuf__client_unmapped(struct shuf__client *client, uint64_t block);

/* The client reports that it has unmapped all its blocks. */
void shuf__client_unmapped_all(struct shuf__client *client);

/* Counts the blocks without references that processes still have mapped, into the accounts and
 * allocations->mapped, unless that was done a moment ago. */
void shuf__mapped_bytes_read(struct shuf__allocations *allocations);

/* The connection ends; the process may live on. */
void shuf__client_detach(struct shuf__client *client);

#endif
