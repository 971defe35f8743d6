/* SPDX-License-Identifier: MIT
 *
 * Tracks the blocks that client processes may have mapped. A connection has a *watch* from its
 * first block on. When the connection ends, the kernel can still tell whether host memory is
 * mapped. It cannot tell this of device memory. So if the process got device memory and has not
 * reported it as unmapped, the daemon keeps the watch until the process is dead or has reported it.
 * The death of the process also ends its connection, even if another process has inherited the
 * socket. All calls are on the loop's thread.
 */
#ifndef SHUFD_CLIENT_PROCESS_H
#define SHUFD_CLIENT_PROCESS_H

#include "allocations.h"
#include "process.h"

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <uv.h>

struct shuf__process_watch;

struct shuf__process_watches {
    struct shuf__processes processes;
    LIST_HEAD(, shuf__process_watch) detached; /* the watches whose connection has ended */
    const struct shuf__ids *ids;               /* of the blocks */
};

/* The client at the other end of one connection; embedded in its session. */
struct shuf__client {
    struct shuf__process_watches *all;
    int socket;
    pid_t pid; /* 0: the PID namespace of the daemon does not have the process */
    uid_t uid;
    struct shuf__process *process; /* a reference */
    bool same_namespace;           /* the process is known to be in the daemon's PID namespace */
    struct shuf__process_watch *watch; /* NULL: the client got no block yet */
    void (*died)(struct shuf__client *client);
};

struct shuf__process_mapping {
    struct shuf__process_watch *watch;
    struct shuf__allocation *allocation;
    uint64_t number; /* of the allocation */
    LIST_ENTRY(shuf__process_mapping) of_process, of_allocation;
};

void shuf__process_watches_init(struct shuf__process_watches *watches, uv_loop_t *loop,
                                struct shuf__allocations *allocations);

/* Call before the client gets the allocation's block. Sets *fresh if the client does not have the
 * block yet. Only processes that the daemon can watch may have device memory. Fails with
 * SHUF_DENIED, SHUF_IO or SHUF_NO_MEMORY. */
shuf_status shuf__client_add_mapping(struct shuf__client *client,
                                     struct shuf__allocation *allocation, bool *fresh,
                                     struct shuf__error *error);

/* Call when the client reports that it has unmapped the blocks with these ids. Ignores ids that are
 * not of its blocks. */
void shuf__client_unmapped(struct shuf__client *client, const uint64_t *blocks, size_t count);

/* Call when the client reports that it has unmapped all its blocks. */
void shuf__client_unmapped_all(struct shuf__client *client);

/* Counts the blocks without references that processes still have mapped, into the accounts and
 * allocations->mapped. Does nothing if the last counts can be used again (reading.h). */
void shuf__mapped_bytes_read(struct shuf__allocations *allocations);

/* Call when the connection ends. The process may live on. */
void shuf__client_detach(struct shuf__client *client);

#endif
