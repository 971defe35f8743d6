/* SPDX-License-Identifier: MIT
 *
 * What stands behind the public `shuf *`.
 */
#ifndef SHUF__HANDLE_H
#define SHUF__HANDLE_H

#include "connection.h"
#include "lease.h"
#include "mapping.h"
#include "shuf.h"

#include <stdbool.h>
#include <sys/types.h>

struct shuf {
    pid_t process; /* that connected: no other may speak on the socket */
    unsigned reconnect_ms;
    struct shuf__leases leases; /* that are out */
    struct shuf__mappings mappings;
    struct shuf__error error; /* of the last call; an empty text after a success */
    struct shuf__connection connection;
};

/* Whether this process is the one that connected, and not a child of it. */
bool shuf__handle_is_ours(const shuf *handle);

/* SHUF_INVALID, with the message in the handle, where it is not. */
shuf_status shuf__handle_check(shuf *handle);

#endif
