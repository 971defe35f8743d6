/* SPDX-License-Identifier: MIT
 *
 * See socket_watch.h. A poll also sees a directory that was removed and made again, which inotify
 * does not.
 */
#include "socket_watch.h"

#include <stdio.h>
#include <string.h>

enum { TICK_MS = 2000 };

static const char unit_advice[] = "the daemon does not find its file, which was removed or "
                                  "replaced; restart the unit of the socket, such as shufd.socket";

static shuf_status make_again(struct shuf__socket_watch *watch, struct shuf__error *error)
{
    const struct shuf__config *config = watch->config;
    const char *path = watch->listener->address.sun_path;
    if (watch->listener->is_passed)
        return shuf__fail(error, SHUF_IO, "socket %s: %s", path, unit_advice);
    shuf__acceptor_stop(watch->acceptor);
    const shuf_status status = shuf__listener_open_again(
        watch->listener, (mode_t)config->socket_mode, config->socket_group, error);
    shuf__acceptor_start(watch->acceptor);
    return status;
}

static void set_fault(struct shuf__socket_watch *watch, const char *fault)
{
    snprintf(watch->fault, sizeof watch->fault, "%s", fault);
    watch->changed(watch);
}

static void on_tick(uv_timer_t *tick)
{
    struct shuf__socket_watch *watch = tick->data;
    struct shuf__error error;
    const char *path = watch->listener->address.sun_path;
    if (watch->listener->fd < 0) /* the daemon drains */
        return;
    if (shuf__listener_is_at_path(watch->listener)) {
        if (watch->fault[0])
            set_fault(watch, "");
    } else if (make_again(watch, &error) == SHUF_OK) {
        shuf__log(watch->log, SHUF__LOG_WARNING,
                  "socket %s: its file was removed or replaced; made a new one", path);
        set_fault(watch, "");
    } else if (strcmp(watch->fault, error.text) != 0) {
        shuf__log(watch->log, SHUF__LOG_ERROR, "no client finds this daemon: %s", error.text);
        set_fault(watch, error.text);
    }
}

void shuf__socket_watch_init(struct shuf__socket_watch *watch, uv_loop_t *loop)
{
    watch->tick.data = watch;
    uv_timer_init(loop, &watch->tick);
}

void shuf__socket_watch_start(struct shuf__socket_watch *watch)
{
    uv_timer_start(&watch->tick, on_tick, TICK_MS, TICK_MS);
}
