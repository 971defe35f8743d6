/* SPDX-License-Identifier: MIT
 *
 * See check.h. A wrong value and a missing device have different exit codes, so that a script that
 * tries several backends does not take a typing error for a missing device.
 */
#include "check.h"

#include "handlers/service.h"
#include "memory/transport.h"
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
        return config->source.value[SHUF__CONFIG_backend] ? EX_USAGE : EX_CONFIG;
    return status == SHUF_NO_MEMORY || status == SHUF_IO ? EX_OSERR : EX_UNAVAILABLE;
}

static int fail_check(const struct shuf__log *log, int exit_code, const struct shuf__error *error)
{
    shuf__log(log, SHUF__LOG_ERROR, "%s", error->text);
    return exit_code;
}

/* On the side where the backend keeps no results by itself, 0 may be meant. */
static void check_budget(struct shuf__backend *backend, enum shuf__memory kind, const char *key,
                         struct shuf__amount amount, const struct shuf__log *log)
{
    char text[SHUF__NUMBER_TEXT];
    struct shuf__error ignored;
    uint64_t available, total;
    const char *results = kind == SHUF__MEMORY_MEMFD && amount.number > 0 ? "only small results fit"
                                                                          : "no result fits";
    if (!backend->ops->makes[kind] ||
        backend->ops->memory(backend, kind, &available, &total, &ignored) ||
        shuf__amount_bytes(amount, total) >= SHUF__BLOCK_UNIT)
        return;
    if (amount.number > 0 || backend->ops->own == kind)
        shuf__log(log, SHUF__LOG_WARNING,
                  "%s %s: below 2 MiB %s; expected 2Mi or more, as in the default", key,
                  shuf__amount_text(text, amount), results);
}

void shuf__check_file_leases(const struct shuf__log *log)
{
    if (!shuf__transport_lends_host_memory())
        shuf__log(log, SHUF__LOG_WARNING,
                  "host memory: this kernel grants no file leases, so results are copied and not "
                  "lent (memfd); expected fs.leases-enable = 1, and a kernel with F_SETLEASE");
}

void shuf__check_budgets(struct shuf__backend *backend, const struct shuf__config *config,
                         const struct shuf__log *log)
{
    check_budget(backend, SHUF__MEMORY_MEMFD, "host_memory", config->host_memory, log);
    check_budget(backend, SHUF__MEMORY_CUDA_FD, "device_memory", config->device_memory, log);
}

int shuf__check(const struct shuf__config *config, const struct shuf__log *log)
{
    struct shuf__backend *backend;
    struct shuf__error error;
    if (shuf__listener_check(config->socket, config->socket_group, &error))
        return fail_check(log, shuf__exit_of_socket(error.status), &error);
    if (shuf__service_check_keys(config, &error))
        return fail_check(log, EX_CONFIG, &error);
    if (shuf__backend_open(config->backend, (unsigned)config->threads, &backend, &error))
        return fail_check(log, shuf__exit_of_backend(config, error.status), &error);
    printf("%s: %s (%s)\n", backend->ops->name, backend->device, backend->device_id);
    shuf__check_budgets(backend, config, log);
    shuf__check_file_leases(log);
    backend->ops->close(backend);
    return EX_OK;
}
