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

struct shuf {
    unsigned reconnect_ms;
    struct shuf__leases leases; /* that are out */
    struct shuf__mappings mappings;
    struct shuf__error error; /* of the last call; an empty text after a success */
    struct shuf__connection connection;
};

#endif
