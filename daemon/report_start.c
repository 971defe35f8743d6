/* SPDX-License-Identifier: MIT
 *
 * See report_start.h.
 */
#include "report_start.h"

#include "check.h"
#include "service_manager.h"
#include "socket.h"
#include "socket_keys.h"

#include <stdio.h>
#include <string.h>

enum { ORIGIN = 192, STATUS_TEXT = 1024 };

static void write_origin(const char *path, const struct shuf__config *config, char text[ORIGIN])
{
    const char *origin = shuf__socket_origin(path, SHUF__SOCKET_SERVE);
    if (config->source.value[SHUF__CONFIG_socket])
        snprintf(text, ORIGIN, "set by --socket");
    else if (*config->socket)
        snprintf(text, ORIGIN, "set by the key socket in %.128s", config->file);
    else
        snprintf(text, ORIGIN, "set by %s", origin ? origin : "the environment");
    if (origin && strcmp(origin, "$XDG_RUNTIME_DIR") == 0)
        strncat(text, "; clients of root, or without this variable, need --socket",
                ORIGIN - strlen(text) - 1);
}

/* A key with its default value needs no warning, because nobody chose this value. */
static void warn_of_unused_keys(const struct shuf__listener *listener,
                                const struct shuf__config *config, const struct shuf__log *log)
{
    char unused[SHUF__UNUSED_TEXT], value[SHUF__CONFIG_VALUE];
    for (enum shuf__config_key key = 0; key < SHUF__CONFIG_KEYS; key++)
        if (shuf__socket_key_is_unused(listener, key, unused) &&
            !shuf__config_is_default(config, key))
            shuf__warn_of_config(config, log, "%s %s: %s", shuf__config_help(key).name,
                                 shuf__config_value(config, key, value), unused);
}

void shuf__report_socket(const struct shuf__listener *listener, const struct shuf__config *config,
                         const struct shuf__log *log)
{
    char origin[ORIGIN] = "passed by the service manager";
    const char *path = listener->address.sun_path;
    if (!listener->is_passed)
        write_origin(path, config, origin);
    shuf__log(log, SHUF__LOG_INFO, "listening on %s (%s)", path, origin);
    warn_of_unused_keys(listener, config, log);
}

void shuf__report_ready(const struct shuf__listener *listener, const struct shuf__backend *backend,
                        const char *reload_fault, const char *socket_fault)
{
    char status[STATUS_TEXT];
    snprintf(status, sizeof status, "Serving on %s, backend %s: %s%s%s%s%s",
             listener->address.sun_path, backend->ops->name, backend->device,
             *reload_fault ? "; " : "", reload_fault, *socket_fault ? "; " : "", socket_fault);
    shuf__make_printable(status); /* it may have the name of another process */
    shuf__service_manager_ready(status);
}
