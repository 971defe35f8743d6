/* SPDX-License-Identifier: MIT
 *
 * The limits of the process (getrlimit(2)) with which the daemon can serve.
 */
#ifndef SHUFD_PROCESS_LIMITS_H
#define SHUFD_PROCESS_LIMITS_H

#include "config/config.h"
#include "error.h"

#include <stdint.h>

/* The parts of the limit of open files. A connection needs a descriptor, and so do a client process
 * (memory/client_process.h), a user (net/ready.h) and a block. Each has its part, so none of them
 * fails for lack of descriptors. */
struct shuf__descriptors {
    uint64_t clients;    /* the most connections */
    uint64_t of_clients; /* the most connections, client processes and users together */
    uint64_t blocks;     /* the most blocks */
    uint64_t closing;    /* the most sockets that wait to be closed (peer_socket.h) */
};

/* Raises the limit of open files, and divides the descriptors that are left. Warns if the
 * connections of the configuration do not fit. */
struct shuf__descriptors shuf__descriptors_of(const struct shuf__config *config,
                                              const struct shuf__log *log);

/* Raises the limits of open files and of the size of files. Fails with SHUF_IO if a limit is too
 * low. */
shuf_status shuf__limits_check(const struct shuf__config *config, struct shuf__error *error);

#endif
