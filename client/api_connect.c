/* SPDX-License-Identifier: MIT
 *
 * The public calls that make, configure and free a handle.
 */
#include "api_lease.h"
#include "arguments.h"
#include "call.h"
#include "discover.h"
#include "handle.h"
#include "socket.h"

#include <stdlib.h>
#include <unistd.h>

enum { RECONNECT_MS = 10000 };

static void set_timeout(shuf *h, unsigned milliseconds)
{
    h->connection.timeout_ns = milliseconds * UINT64_C(1000000);
}

/* A socket of NULL selects the default daemon of the caller. */
static shuf_status connect_to(shuf *h, const char *socket)
{
    struct sockaddr_un *address = &h->connection.address;
    if (socket ? shuf__socket_address(socket, SHUF__SOCKET_CONNECT, address, &h->error)
               : shuf__discover(address, &h->error)) {
        address->sun_path[0] = '\0'; /* a truncated path must not be used */
    } else if (shuf__connection_open(&h->connection, &h->error) == SHUF_NO_DAEMON &&
               h->connection.generation > 0) { /* a daemon accepted the connection, and ended */
        h->lost_daemon = true;
        return shuf__call_await_daemon(h);
    }
    if (h->error.status != SHUF_OK && !socket)
        shuf__discover_explain(&h->error);
    shuf__discover_hint_start(address->sun_path, socket, &h->error);
    return h->error.status;
}

shuf_status shuf_connect(shuf **handle, const char *socket)
{
    return shuf_connect_within(handle, socket, 0);
}

shuf_status shuf_connect_within(shuf **handle, const char *socket, unsigned milliseconds)
{
    if (!handle)
        return shuf__fail(shuf__error_of(NULL), SHUF_INVALID,
                          "handle NULL: expected the address of a pointer");
    shuf *h = *handle = calloc(1, sizeof *h);
    if (!h)
        return shuf__fail(shuf__error_of(NULL), SHUF_NO_MEMORY, "handle: out of memory");
    h->process = getpid();
    SHUF__BEGIN_CALL(call, h);
    h->reconnect_ms = RECONNECT_MS;
    h->connection.fd = -1;
    h->connection.cancel = (struct shuf__cancel){.mutex = PTHREAD_MUTEX_INITIALIZER, .fd = -1};
    shuf__mappings_open(&h->mappings);
    set_timeout(h, milliseconds);
    return connect_to(call, socket && *socket ? socket : NULL);
}

void shuf_close(shuf *handle)
{
    const struct shuf__argument none[] = {{NULL, false}};
    if (!handle || !shuf__begin_call(handle, none))
        return;
    const bool ours = shuf__handle_is_ours(handle);
    const bool had_device_memory = handle->mappings.gpus;
    if (!ours)
        shuf__gpus_forget(handle->mappings.gpus);
    shuf__held_leases_free(handle);
    shuf__mappings_close(&handle->mappings);
    if (ours && had_device_memory)
        shuf__release_everything(handle);
    shuf__connection_close(&handle->connection, SHUF__CLOSED_BY_ERROR);
    free(handle);
}

void shuf_cancel(shuf *handle)
{
    if (handle)
        shuf__cancel(&handle->connection.cancel);
}

const char *shuf_message(const shuf *handle)
{
    return shuf__error_of((shuf *)(uintptr_t)handle)->text;
}

const char *shuf_socket(const shuf *handle)
{
    return handle ? handle->connection.address.sun_path : "";
}

shuf_status shuf_set_reconnect(shuf *handle, unsigned milliseconds)
{
    SHUF__BEGIN_CALL(call, handle);
    if (!call)
        return SHUF_INVALID;
    handle->reconnect_ms = milliseconds;
    handle->gave_up = false;
    return SHUF_OK;
}

shuf_status shuf_set_observer(shuf *handle, shuf_observer observer, void *context)
{
    SHUF__BEGIN_CALL(call, handle);
    if (!call)
        return SHUF_INVALID;
    handle->observer = observer;
    handle->observer_context = context;
    return SHUF_OK;
}

shuf_status shuf_set_timeout(shuf *handle, unsigned milliseconds)
{
    SHUF__BEGIN_CALL(call, handle);
    if (!call)
        return SHUF_INVALID;
    set_timeout(handle, milliseconds);
    return SHUF_OK;
}

shuf_status shuf_set_idle_mappings(shuf *handle, uint64_t bytes)
{
    SHUF__BEGIN_CALL(call, handle);
    if (!call)
        return SHUF_INVALID;
    if (shuf__handle_is_ours(handle))
        return shuf__release_above_limit(handle, bytes);
    handle->mappings.device_limit = bytes;
    return SHUF_OK;
}

const char *shuf_version(void)
{
    return SHUF_VERSION_TEXT;
}
