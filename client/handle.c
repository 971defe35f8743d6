/* SPDX-License-Identifier: MIT
 *
 * A handle's life: made, asked for its path and its last message, freed.
 */
#include "handle.h"

#include "socket.h"

#include <stdlib.h>

enum { RECONNECT_MS = 10000 };

shuf_status shuf_connect(shuf **handle, const char *socket)
{
    shuf *h = *handle = calloc(1, sizeof *h);
    if (!h)
        return SHUF_NO_MEMORY;
    h->reconnect_ms = RECONNECT_MS;
    h->connection.fd = -1;
    shuf__mappings_open(&h->mappings);
    struct sockaddr_un *address = &h->connection.address;
    if (shuf__socket_address(socket, SHUF__SOCKET_CONNECT, address, &h->error)) {
        address->sun_path[0] = '\0'; /* what was cut is no path to use */
        return h->error.status;
    }
    return shuf__connection_open(&h->connection, &h->error);
}

void shuf_close(shuf *handle)
{
    if (!handle)
        return;
    bool device = handle->mappings.gpus != NULL;
    shuf__leases_end(handle);
    shuf__mappings_close(&handle->mappings);
    if (device)
        shuf__leases_farewell(handle);
    shuf__connection_close(&handle->connection);
    free(handle);
}

const char *shuf_message(const shuf *handle)
{
    return handle ? handle->error.text : shuf_status_message(SHUF_NO_MEMORY);
}

const char *shuf_socket(const shuf *handle)
{
    return handle->connection.address.sun_path;
}

void shuf_set_reconnect(shuf *handle, unsigned milliseconds)
{
    handle->reconnect_ms = milliseconds;
}

const char *shuf_version(void)
{
    return SHUF_VERSION_TEXT;
}
