/* SPDX-License-Identifier: MIT
 *
 * See start_report.h.
 */
#include "start_report.h"

#include "end_guard.h"
#include "handlers/service.h"
#include "net/refusals.h"
#include "service_manager.h"
#include "socket.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

/* ---- Keys without an effect ---- */

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

/* ---- The daemon is ready ---- */

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

/* ---- The daemon cannot start ---- */

/* As RestartPreventExitStatus= of the units. */
static bool is_final(int exit_code)
{
    return exit_code == EX_USAGE || exit_code == EX_UNAVAILABLE || exit_code == EX_CONFIG;
}

static void refuse_clients(int listening, const struct shuf__error *error)
{
    if (listening >= 0)
        shuf__refuse_backlog(listening, error);
    else
        shuf__refuse_passed(error);
}

int shuf__fail_start(const struct shuf__config *config, const struct shuf__log *log, int listening,
                     int exit_code, struct shuf__error *error)
{
    shuf__log(log, SHUF__LOG_ERROR, "%s", shuf__config_locate(config, error));
    if (is_final(exit_code))
        refuse_clients(listening, error);
    shuf__end_guard_start(SHUF__END_MS, exit_code, NULL, NULL);
    return exit_code;
}

int shuf__fail_start_of_keys(const struct shuf__config *config, const struct shuf__log *log,
                             int listening, struct shuf__error *error)
{
    shuf__log(log, SHUF__LOG_ERROR, "%s", shuf__config_locate(config, error));
    shuf__fail(error, error->status,
               "keys: a named key cannot be loaded; the log of the daemon names the reason");
    refuse_clients(listening, error);
    shuf__end_guard_start(SHUF__END_MS, EX_CONFIG, NULL, NULL);
    return EX_CONFIG;
}

void shuf__fail_start_of_options(const char *mistake)
{
    struct shuf__error error;
    shuf__fail(&error, SHUF_INVALID, "%s", mistake);
    shuf__refuse_passed(&error);
}
