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

#include "accounts.h"
#include "allocations.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <uv.h>

/* ---- Processes ---- */

/* Client processes, by their PID. All connections of a process share one descriptor, a pidfd,
 * which reports the end of the process. It is opened for the first connection that gets a block.
 * The acceptor reserves a descriptor for each process in this table, so opening one does not fail
 * for lack of descriptors.
 *
 * A PID may be used again while a child of its first process still has a connection. The kernel
 * then gives no pidfd of a living process for that connection. So two observers share a pidfd only
 * if both their processes live, and thus are one process. */

enum { SHUF__PROCESS_LISTS = 1024 };

LIST_HEAD(shuf__process_list, shuf__process);

struct shuf__processes {
    uv_loop_t *loop;
    struct shuf__accounts *accounts;
    uint64_t count; /* of processes in the lists: each may need a descriptor */
    struct shuf__process_list lists[SHUF__PROCESS_LISTS];
};

struct shuf__process {
    struct shuf__processes *all;
    pid_t pid;
    unsigned refs;                 /* connections, and watches */
    struct shuf__account *account; /* a reference: the user who made the first connection */
    struct shuf__pidfd *pidfd;     /* NULL: not open */
    LIST_HEAD(, shuf__process_observer) observers;
    LIST_ENTRY(shuf__process) link;
};

/* Waits for the end of a process. The struct of the caller embeds it. */
struct shuf__process_observer {
    void (*ended)(struct shuf__process_observer *observer);
    bool observes;
    LIST_ENTRY(shuf__process_observer) link;
};

void shuf__processes_init(struct shuf__processes *processes, uv_loop_t *loop,
                          struct shuf__accounts *accounts);

/* Whether the table has the process, so that another connection needs no more descriptors for it.
 */
bool shuf__processes_have(const struct shuf__processes *processes, pid_t pid);

/* Returns a reference to the process, which it adds to the table if it is new. A new process counts
 * in the account of the user. Each connection with the PID 0 is a process of its own, because the
 * daemon's PID namespace does not have the process. NULL: out of memory. */
struct shuf__process *shuf__process_of(struct shuf__processes *processes, pid_t pid, uint32_t uid);
struct shuf__process *shuf__process_ref(struct shuf__process *process);
void shuf__process_unref(struct shuf__process *process);

/* Whether the process at the other end of the socket can be observed. The kernel shows processes of
 * other PID namespaces since Linux 6.5. */
bool shuf__process_is_observable(int socket, pid_t pid);

/* Calls observer->ended() once when the process ends. `socket` is a connection of the process.
 * False, with errno, if the process has ended or cannot be observed. */
bool shuf__process_observe(struct shuf__process *process, int socket,
                           struct shuf__process_observer *observer);
void shuf__process_stop_observing(struct shuf__process_observer *observer);

/* ---- Their blocks ---- */

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
