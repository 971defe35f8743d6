/* SPDX-License-Identifier: MIT
 *
 * Which processes may have which blocks mapped. A process becomes a holder with the
 * first block that it is given, and is one until it has said of each that it is
 * unmapped, or is dead: that it hung up proves nothing. A death ends its session
 * too, whoever else has inherited the socket. On the loop's thread.
 */
#ifndef SHUFD_HOLDER_H
#define SHUFD_HOLDER_H

#include "cells.h"

#include <stdbool.h>
#include <sys/queue.h>
#include <uv.h>

struct shuf__session;

struct shuf__exposure {
    struct shuf__holder *holder;
    struct shuf__cell *cell;
    LIST_ENTRY(shuf__exposure) of_holder, of_cell;
};

enum { SHUF__RECENT = 128 };

struct shuf__holder {
    struct shuf__session *session; /* NULL once it has hung up: then it is a ghost */
    pid_t pid;
    int pidfd; /* -1: the process cannot be watched */
    uv_poll_t poll;
    LIST_HEAD(, shuf__exposure) exposures;
    struct shuf__exposure *recent[SHUF__RECENT]; /* by block id: found without a search */
    LIST_ENTRY(shuf__holder) of_server;          /* of ghosts */
};

/* The session's process is about to get the cell's block. *fresh: it does not have it already.
 * Device memory goes only to processes that can be watched; fails with SHUF_DENIED, SHUF_IO or
 * SHUF_NO_MEMORY. */
shuf_status shuf__holder_expose(struct shuf__session *session, struct shuf__cell *cell, bool *fresh,
                                struct shuf__error *error);

/* The session says that it no longer has that block mapped. */
void shuf__holder_unmapped(struct shuf__session *session, uint64_t block);

/* The session says so of all that it was given. */
void shuf__holder_unmapped_all(struct shuf__session *session);

/* The session ends; its process may live on. */
void shuf__holder_leave(struct shuf__session *session);

/* The cell's block is gone. */
void shuf__holder_forget(struct shuf__cell *cell);

#endif
