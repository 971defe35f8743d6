/* SPDX-License-Identifier: MIT
 *
 * See connect.h.
 */
#include "connect.h"

#include "clock.h"
#include "exit.h"
#include "progress.h"
#include "socket.h"
#include "start_command.h"

#include <string.h>
#include <sysexits.h>
#include <time.h>

enum { RECONNECT_MS = 10000, GREETING_MIN_MS = 1000, GREETING_MAX_MS = 10000 };

int shuf__fault_length(const char *message)
{
    const char *hint = strstr(message, SHUF__START_HINT);
    return hint ? (int)(hint - message) : (int)strlen(message);
}

int shuf__fail_call(const shuf *handle, shuf_status status,
                    const struct shuf__daemon_options *options)
{
    char command[SHUF__START_COMMAND];
    const char *message = shuf_message(handle);
    const bool has_command = status == SHUF_NO_DAEMON &&
                             shuf__start_command(shuf_socket(handle), options->socket, command);
    return shuf__fail_with(shuf__exit_code(status), "%.*s%s%s", shuf__fault_length(message),
                           message, has_command ? "; start one: " : "", has_command ? command : "");
}

/* The timeout of the next attempt: the rest of --wait, but at least the time that a healthy daemon
 * needs. So the wait for a daemon that hangs is as long as the wait for a missing one.
 */
static unsigned greeting_ms(uint64_t now, uint64_t give_up)
{
    const uint64_t left = give_up > now ? (give_up - now) / 1000000 : 0;
    return left < GREETING_MIN_MS   ? GREETING_MIN_MS
           : left > GREETING_MAX_MS ? GREETING_MAX_MS
                                    : (unsigned)left;
}

static shuf_status connect_once(shuf **handle, const struct shuf__daemon_options *options,
                                uint64_t give_up)
{
    if (options->wait_ns == 0)
        return shuf_connect(handle, options->socket);
    const shuf_status status =
        shuf_connect_within(handle, options->socket, greeting_ms(shuf__clock_ns(), give_up));
    if (status == SHUF_OK)
        shuf_set_timeout(*handle, 0); /* requests may take long */
    return status;
}

shuf_status shuf__connect_silently(shuf **handle, const struct shuf__daemon_options *options)
{
    static const struct timespec pause = {.tv_nsec = 50000000};
    uint64_t give_up = shuf__clock_ns() + options->wait_ns;
    shuf_status status = connect_once(handle, options, give_up);
    while ((status == SHUF_NO_DAEMON || status == SHUF_TIMEOUT) && shuf__clock_ns() < give_up) {
        shuf_close(*handle);
        nanosleep(&pause, NULL);
        status = connect_once(handle, options, give_up);
    }
    return status;
}

shuf_status shuf__connect(shuf **handle, const struct shuf__daemon_options *options)
{
    shuf__progress_set_quiet(options->quiet);
    shuf__progress_phase("waiting for the daemon", 0);
    const shuf_status status = shuf__connect_silently(handle, options);
    shuf__progress_end();
    return status;
}

int shuf__connect_or_fail(shuf **handle, const struct shuf__daemon_options *options)
{
    shuf_status status = shuf__connect(handle, options);
    if (status != SHUF_OK)
        return shuf__fail_call(*handle, status, options);
    shuf__progress_observe(*handle, RECONNECT_MS);
    return EX_OK;
}
