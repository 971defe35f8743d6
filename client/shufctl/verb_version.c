/* SPDX-License-Identifier: MIT
 *
 * `shufctl version`: prints the version of shufctl, and of the daemon where one answers.
 */
#include "connect.h"
#include "daemon_options.h"
#include "json.h"
#include "shuf.h"
#include "verbs.h"

#include <sysexits.h>

/* daemon: NULL when none answers; then the handle has the message. */
static void print_versions(const shuf *handle, const char *daemon, bool json)
{
    if (!json) {
        printf("shufctl %s\n%s%s\n", shuf_version(),
               daemon ? "" : "no shufd answers: ", daemon ? daemon : shuf_message(handle));
        return;
    }
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

int shuf__verb_version(int argc, char **argv)
{
    struct shuf__daemon_options options;
    shuf_daemon daemon;
    shuf *handle;
    shuf__daemon_options(argc, argv, "Prints the versions of shufctl and of the daemon.", &options);
    bool answers = shuf__connect(&handle, &options) == SHUF_OK &&
                   shuf_daemon_status(handle, &daemon) == SHUF_OK;
    print_versions(handle, answers ? daemon.version : NULL, options.json);
    shuf_close(handle);
    return EX_OK;
}
