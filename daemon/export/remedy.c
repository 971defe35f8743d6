/* SPDX-License-Identifier: MIT
 *
 * See remedy.h.
 */
#include "remedy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* systemd sets this variable for each service. */
static bool is_in_unit(void)
{
    return getenv("INVOCATION_ID") != NULL;
}

/* RestrictAddressFamilies= of the unit refuses the family. */
const char *shuf__remedy_of_port(int cause)
{
    if (cause == EADDRINUSE)
        return "; another program listens there, so choose another port";
    return cause == EAFNOSUPPORT && is_in_unit()
               ? "; its unit needs the drop-in metrics-port.conf, see shufd.service(8)"
               : "";
}

const char *shuf__remedy_of_socket(int cause)
{
    if (cause == EADDRINUSE)
        return "; another program uses this path, so choose another path";
    return is_in_unit() ? "; its unit needs the drop-in metrics-socket.conf" : "";
}

/* ProtectSystem= of the unit makes all directories read-only. */
const char *shuf__remedy_of_file(int cause)
{
    return cause == EROFS && is_in_unit()
               ? "; its unit needs ReadWritePaths=, or write to /run/shufd-metrics with the "
                 "drop-in metrics-socket.conf"
               : "";
}
