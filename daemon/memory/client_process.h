/* SPDX-License-Identifier: MIT
 *
 * Which processes may have which blocks mapped. A process becomes a holder with the
 * first block that it is given, and is one until it has said of each that it is
 * unmapped, or is dead: that it hung up proves nothing. A death ends its session
 * too, whoever else has inherited the socket. On the loop's thread.
 */
#ifndef SHUFD_CLIENT_PROCESS_H
#define SHUFD_CLIENT_PROCESS_H

#include "allocations.h"

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

struct shuf__session;

struct shuf__mapping {
    struct shuf__client_process *holder;
    struct shuf__allocation *allocation;
    LIST_ENTRY(shuf__mapping) of_process, of_allocation;
};

enum { SHUF__RECENT = 128 };

struct shuf__client_process {
    struct shuf__session *session; /* NULL once it has hung up: then it is a detached */
    pid_t pid;
    int pidfd; /* -1: the process cannot be watched */
    uv_poll_t poll;
    LIST_HEAD(, shuf__mapping) mappings;
    struct shuf__mapping *recent[SHUF__RECENT]; /* by block id: found without a search */
    LIST_ENTRY(shuf__client_process) of_server; /* of detached */
};

/* The session's process is about to get the allocation's block. *fresh: it does not have it
 * already. Device memory goes only to processes that can be watched; fails with SHUF_DENIED,
 * SHUF_IO or SHUF_NO_MEMORY. */
shuf_status shuf__client_process_map(struct shuf__session *session,
                                     struct shuf__allocation *allocation, bool *fresh,
                                     struct shuf__error *error);

/* The session says that it no longer has that block mapped. */
void shuf__client_process_unmapped(struct shuf__session *session, uint64_t block);

/* The session says so of all that it was given. */
void shuf__client_process_unmapped_all(struct shuf__session *session);

/* The session ends; its process may live on. */
void shuf__client_process_detach(struct shuf__session *session);

/* The allocation's block is gone. */
void shuf__client_process_forget(struct shuf__allocation *allocation);

#endif
