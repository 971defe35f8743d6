/* SPDX-License-Identifier: MIT
 *
 * Client processes, by their PID. All connections of a process share one descriptor, a pidfd, which
 * reports the end of the process. It is opened for the first connection that gets a block. The
 * acceptor reserves a descriptor for each process in this table, so opening one does not fail for
 * lack of descriptors. All calls are on the loop's thread.
 *
 * A PID may be used again while a child of its first process still has a connection. The kernel
 * then gives no pidfd of a living process for that connection. So two observers share a pidfd only
 * if both their processes live, and thus are one process.
 */
#ifndef SHUFD_PROCESS_H
#define SHUFD_PROCESS_H

#include "accounts.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>
#include <uv.h>

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
    unsigned refs;                 /* connections, and watches (client_process.h) */
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

#endif
