/* SPDX-License-Identifier: MIT
 *
 * What stands behind the public `shuf_lease *`.
 */
#ifndef SHUF__LEASE_H
#define SHUF__LEASE_H

#include "mapping.h"
#include "question.h"
#include "shuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

struct shuf__lease {
    shuf_lease open; /* first, so that one pointer serves for both */
    shuf *handle;
    LIST_ENTRY(shuf__lease) out;
    uint64_t connection;           /* the generation of the one that it is of */
    struct shuf__mapping *mapping; /* NULL: it has none */
    bool buffer;                   /* for this process to fill */
    void *copy;                    /* memory for values by INLINE, kept for the next lease: */
    size_t room;                   /* its bytes */
};

LIST_HEAD(shuf__leases, shuf__lease);

/* As shuf_lease_take() and shuf_prefetch(). */
shuf_status shuf__lease_take(shuf *handle, struct shuf__wanted wanted,
                             const shuf_lease_options *options, shuf_lease **lease);
/* As shuf_lease_release(), but that the handle's message stays: for a way out of a failure. */
void shuf__lease_abandon(shuf *handle, shuf_lease *lease);

shuf_status shuf__prefetch(shuf *handle, struct shuf__wanted wanted,
                           const shuf_lease_options *options);

/* Ends all that are out, without a word to the daemon. */
void shuf__leases_end(shuf *handle);

/* The daemon may lack the memory that is only kept mapped here: unmaps it, and tells. False when
 * there is none. */
bool shuf__leases_make_room(shuf *handle);

/* Tells the daemon that all are given back and nothing is mapped any more: of device memory it
 * would otherwise know only when this process ends. */
void shuf__leases_farewell(shuf *handle);

#endif
