/* SPDX-License-Identifier: MIT
 *
 * See socket_keys.h.
 */
#include "socket_keys.h"

#include "handlers/service.h"

#include <stdio.h>

/* Of a socket unit. */
static const char *const settings[SHUF__CONFIG_KEYS] = {
    [SHUF__CONFIG_socket] = "an empty ListenStream= and then ListenStream=PATH",
    [SHUF__CONFIG_socket_mode] = "SocketMode=",
    [SHUF__CONFIG_socket_group] = "SocketGroup=",
};

bool shuf__socket_key_is_unused(const struct shuf__listener *listener, enum shuf__config_key key,
                                char text[SHUF__UNUSED_TEXT])
{
    char unit[SHUF__SERVICE_UNIT];
    if (!listener->is_passed || !settings[key])
        return false;
    shuf__service_unit_of(listener->address.sun_path, "socket", unit);
    snprintf(text, SHUF__UNUSED_TEXT,
             "has no effect, because the service manager passes the socket; set %s by systemctl "
             "edit %s, then restart that unit",
             settings[key], unit);
    return true;
}
