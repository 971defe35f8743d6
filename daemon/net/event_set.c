/* SPDX-License-Identifier: MIT
 *
 * See event_set.h.
 */
#include "event_set.h"

#include <unistd.h>

/* To stop watching and to start again costs as much as several reports. */
enum { MOST_REPEATS = 4 };

static struct shuf__event_set *set_of(void *poll)
{
    return (struct shuf__event_set *)((char *)poll - offsetof(struct shuf__event_set, poll));
}

/* The loop reports the events again each time until the owner takes them. */
static void on_events(uv_poll_t *poll, int status, int events)
{
    struct shuf__event_set *set = set_of(poll);
    (void)status;
    (void)events;
    if (++set->repeats > MOST_REPEATS) {
        uv_poll_stop(poll);
        set->is_watched = false;
    }
    set->has_events(set);
}

static void watch_set(struct shuf__event_set *set)
{
    set->repeats = 0;
    if (!set->is_watched)
        uv_poll_start(&set->poll, UV_READABLE, on_events);
    set->is_watched = true;
}

bool shuf__event_set_open(struct shuf__event_set *set, uv_loop_t *loop)
{
    set->is_watched = false;
    set->fd = epoll_create1(EPOLL_CLOEXEC);
    if (set->fd < 0)
        return false;
    if (uv_poll_init(loop, &set->poll, set->fd) != 0) {
        close(set->fd);
        return false;
    }
    watch_set(set);
    return true;
}

bool shuf__event_set_watch(const struct shuf__event_set *set, int fd, uint32_t before,
                           uint32_t wanted, void *data)
{
    struct epoll_event event = {.events = wanted, .data.ptr = data};
    const int operation = !wanted ? EPOLL_CTL_DEL : before ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    return before == wanted || epoll_ctl(set->fd, operation, fd, &event) == 0;
}

int shuf__event_set_take(struct shuf__event_set *set, struct epoll_event *events, int most)
{
    const int count = epoll_wait(set->fd, events, most, 0);
    watch_set(set);
    return count < 0 ? 0 : count; /* EINTR cannot happen, because the call does not wait */
}

static void on_closed(uv_handle_t *poll)
{
    struct shuf__event_set *set = set_of(poll);
    close(set->fd);
    set->closed(set);
}

void shuf__event_set_close(struct shuf__event_set *set)
{
    uv_close((uv_handle_t *)&set->poll, on_closed);
}
