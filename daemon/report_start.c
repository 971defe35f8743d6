/* SPDX-License-Identifier: MIT
 *
 * See report_start.h.
 */
#include "report_start.h"

#include "check.h"
#include "handlers/service_name.h"
#include "service_manager.h"
#include "socket.h"

#include <stdio.h>
#include <string.h>

enum { ORIGIN = 192, UNIT = 128, STATUS_TEXT = 1024 };

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

/* Writes the unit of systemd that makes the socket. */
static void write_unit(const char *path, char unit[UNIT])
{
    static const char directory[] = SHUF__SOCKET_DIRECTORY "/";
    char name[SHUF__SERVICE_NAME];
    shuf__service_name_of(path, name);
    if (strcmp(name, "shufd") != 0 && strncmp(path, directory, strlen(directory)) == 0)
        snprintf(unit, UNIT, "shufd@%s.socket", name);
    else
        snprintf(unit, UNIT, "shufd.socket");
}

/* A key with its default value needs no warning, because nobody chose this value. */
static void warn_of_unused_keys(const char *path, const struct shuf__config *config,
                                const struct shuf__log *log)
{
    static const enum shuf__config_key keys[] = {SHUF__CONFIG_socket, SHUF__CONFIG_socket_mode,
                                                 SHUF__CONFIG_socket_group};
    const bool has_other_socket = strncmp(config->metrics, "unix:", 5) == 0;
    char unit[UNIT], value[SHUF__CONFIG_VALUE];
    write_unit(path, unit);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!shuf__config_is_default(config, keys[i]))
            shuf__warn_of_config(
                config, log,
                "%s %s: has no effect%s, because the service manager passes the socket; change it "
                "by systemctl edit %s",
                shuf__config_help(keys[i]).name, shuf__config_value(config, keys[i], value),
                has_other_socket && keys[i] != SHUF__CONFIG_socket
                    ? " except on the socket of the metrics"
                    : "",
                unit);
}

void shuf__report_socket(const struct shuf__listener *listener, const struct shuf__config *config,
                         const struct shuf__log *log)
{
    char origin[ORIGIN] = "passed by the service manager";
    const char *path = listener->address.sun_path;
    if (!listener->is_passed)
        write_origin(path, config, origin);
    shuf__log(log, SHUF__LOG_INFO, "listening on %s (%s)", path, origin);
    if (listener->is_passed)
        warn_of_unused_keys(path, config, log);
}

void shuf__report_ready(const struct shuf__listener *listener, const struct shuf__backend *backend,
                        const char *fault)
{
    char status[STATUS_TEXT];
    snprintf(status, sizeof status, "Serving on %s, backend %s: %s%s%s", listener->address.sun_path,
             backend->ops->name, backend->device, *fault ? "; " : "", fault);
    shuf__service_manager_ready(status);
}
