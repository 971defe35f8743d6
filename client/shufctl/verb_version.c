/* SPDX-License-Identifier: MIT
 *
 * `shufctl version`: prints the version of shufctl, and that of the daemon. It fails if no daemon
 * answers.
 */
#include "connect.h"
#include "json.h"
#include "shuf.h"
#include "verb_options.h"
#include "verbs.h"

#include <sysexits.h>

/* daemon: NULL when none answers; then the handle has the message. */
static void print_versions_json(const shuf *handle, const char *daemon)
{
    json_t *object = json_object();
    shuf__json_text(object, "shufctl", shuf_version());
    if (daemon)
        shuf__json_text(object, "daemon", daemon);
    else
        json_object_set_new(object, "daemon", json_null());
    if (!daemon)
        shuf__json_text(object, "why", shuf_message(handle));
    shuf__json_print(object, stdout);
}

static void print_versions(const char *daemon)
{
    printf("shufctl %s\n", shuf_version());
    if (daemon)
        printf("%s\n", daemon);
    fflush(stdout); /* before the error */
}

int shuf__verb_version(int argc, char **argv)
{
    struct shuf__daemon_options options;
    shuf_daemon daemon;
    shuf *handle;
    shuf__daemon_options(argc, argv, "Prints the versions of shufctl and of the daemon.", &options);
    shuf_status status = shuf__connect(&handle, &options);
    if (status == SHUF_OK)
        status = shuf_daemon_status(handle, &daemon);
    const char *version = status == SHUF_OK ? daemon.version : NULL;
    if (options.json)
        print_versions_json(handle, version);
    else
        print_versions(version);
    int code = status == SHUF_OK ? EX_OK : shuf__fail_call(handle, status, &options);
    shuf_close(handle);
    return code;
}
