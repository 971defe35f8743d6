/* SPDX-License-Identifier: MIT
 *
 * See check.h. A wrong value and a missing device have different exit codes, so that a script that
 * tries several backends does not take a typing error for a missing device.
 */
#include "check.h"

#include "backend.h"
#include "net/listener.h"

#include <stdio.h>
#include <sysexits.h>

int shuf__exit_of_socket(shuf_status status)
{
    return status == SHUF_INVALID ? EX_CONFIG : EX_CANTCREAT;
}

int shuf__exit_of_backend(const struct shuf__config *config, shuf_status status)
{
    if (status == SHUF_INVALID)
        return config->source.backend ? EX_USAGE : EX_CONFIG;
    return status == SHUF_NO_MEMORY || status == SHUF_IO ? EX_OSERR : EX_UNAVAILABLE;
}

static int fail_check(const struct shuf__log *log, int exit_code, const struct shuf__error *error)
{
    shuf__log(log, SHUF__LOG_ERROR, "%s", error->text);
    return exit_code;
}

int shuf__check(const struct shuf__config *config, const struct shuf__log *log)
{
    struct shuf__backend *backend;
    struct shuf__error error;
    if (shuf__listener_check(config->socket, config->socket_group, &error))
        return fail_check(log, shuf__exit_of_socket(error.status), &error);
    if (shuf__backend_open(config->backend, (unsigned)config->threads, &backend, &error))
        return fail_check(log, shuf__exit_of_backend(config, error.status), &error);
    printf("%s: %s (%s)\n", backend->ops->name, backend->device, backend->device_id);
    backend->ops->close(backend);
    return EX_OK;
}
