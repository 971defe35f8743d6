/* SPDX-License-Identifier: MIT
 *
 * `shufctl status`: what the daemon runs on and how busy it is.
 */
#include "daemon_options.h"
#include "exit.h"
#include "json.h"
#include "units.h"
#include "verb.h"

#include <inttypes.h>
#include <sysexits.h>

static void print(const shuf *handle, const shuf_daemon *d)
{
    char used[SHUF__UNITS_TEXT], limit[SHUF__UNITS_TEXT];
    printf("daemon      %s, pid %" PRIu64 ", on %s\n", d->version, d->pid, shuf_socket(handle));
    printf("backend     %s, %s\n", d->backend, d->device);
    printf("device id   %s\n", d->device_id);
    printf("up          %s\n", shuf__units_time(used, d->uptime_ms * 1000000));
    printf("clients     %" PRIu64 "\n", d->clients);
    printf("queue       %" PRIu64 " of %" PRIu64 "\n", d->queued, d->queue_limit);
    printf("served      %" PRIu64 "\n", d->served);
    printf("memory      %s of %s\n", shuf__units_bytes(used, d->memory_used),
           shuf__units_bytes(limit, d->memory_limit));
}

static void print_json(const shuf *handle, const shuf_daemon *d)
{
    json_t *object = json_object();
    shuf__json_text(object, "daemon", d->version);
    shuf__json_integer(object, "pid", d->pid);
    shuf__json_text(object, "socket", shuf_socket(handle));
    shuf__json_text(object, "backend", d->backend);
    shuf__json_text(object, "device", d->device);
    shuf__json_text(object, "device_id", d->device_id);
    json_object_set_new(object, "uptime_seconds", json_real((double)d->uptime_ms / 1e3));
    shuf__json_integer(object, "clients", d->clients);
    shuf__json_integer(object, "queued", d->queued);
    shuf__json_integer(object, "queue_limit", d->queue_limit);
    shuf__json_integer(object, "served", d->served);
    shuf__json_integer(object, "memory_used", d->memory_used);
    shuf__json_integer(object, "memory_limit", d->memory_limit);
    shuf__json_print(object, stdout);
}

static int ask(shuf *handle, const struct shuf__daemon_options *options)
{
    shuf_daemon daemon;
    shuf_status status = shuf_daemon_status(handle, &daemon);
    if (status != SHUF_OK)
        return shuf__fail_call(handle, status, options);
    if (options->json)
        print_json(handle, &daemon);
    else
        print(handle, &daemon);
    return EX_OK;
}

int shuf__verb_status(int argc, char **argv)
{
    struct shuf__daemon_options options;
    shuf *handle;
    shuf__daemon_options(argc, argv, "Shows what the daemon runs on and how busy it is.", &options);
    int code = shuf__connect_or_fail(&handle, &options);
    if (code == EX_OK)
        code = ask(handle, &options);
    shuf_close(handle);
    return code;
}
