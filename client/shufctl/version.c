/* SPDX-License-Identifier: MIT
 *
 * `shufctl version`: its own, and the daemon's when one answers.
 */
#include "daemon_options.h"
#include "json.h"
#include "shuf.h"
#include "verb.h"

#include <sysexits.h>

/* `daemon` is NULL when none answers. */
static void print(const char *daemon, bool json)
{
    if (!json) {
        printf("shufctl %s\n%s\n", shuf_version(), daemon ? daemon : "no shufd answers");
        return;
    }
    json_t *object = json_object();
    shuf__json_text(object, "shufctl", shuf_version());
    if (daemon)
        shuf__json_text(object, "daemon", daemon);
    else
        json_object_set_new(object, "daemon", json_null());
    shuf__json_print(object, stdout);
}

int shuf__verb_version(int argc, char **argv)
{
    struct shuf__daemon_options options;
    shuf_daemon daemon;
    shuf *handle;
    shuf__daemon_options(argc, argv, "Shows the version of shufctl, and of the daemon.", &options);
    bool answers = shuf_connect(&handle, options.socket) == SHUF_OK &&
                   shuf_daemon_status(handle, &daemon) == SHUF_OK;
    print(answers ? daemon.version : NULL, options.json);
    shuf_close(handle);
    return EX_OK;
}
