/* SPDX-License-Identifier: MIT
 *
 * Divides the limit of open files. A connection needs a descriptor, and so do a client process
 * (process.h), a user (ready.h) and a block. Each has its part, so none of them fails for lack
 * of descriptors.
 */
#ifndef SHUFD_DESCRIPTORS_H
#define SHUFD_DESCRIPTORS_H

#include "config/config.h"
#include "error.h"

#include <stdint.h>

struct shuf__descriptors {
    uint64_t clients;    /* the most connections */
    uint64_t of_clients; /* the most connections, client processes and users together */
    uint64_t blocks;     /* the most blocks */
    uint64_t closing;    /* the most sockets that wait to be closed (peer_socket.h) */
};

/* Raises the limit of open files, and counts the descriptors that the daemon has inherited. Fails
 * with SHUF_IO if the daemon cannot start with them. */
shuf_status shuf__descriptors_check(const struct shuf__config *config, struct shuf__error *error);

/* Divides `files` descriptors. Blocks have at least a quarter. Connections, client
 * processes and users have at most three for each of `clients` connections, and 16 more. */
struct shuf__descriptors shuf__descriptors_divide(uint64_t files, uint64_t clients);

/* Raises the limit of open files, and divides the descriptors that are left. Warns if the
 * connections of the configuration do not fit. */
struct shuf__descriptors shuf__descriptors_of(const struct shuf__config *config,
                                              const struct shuf__log *log);

#endif
