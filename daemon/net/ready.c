/* SPDX-License-Identifier: MIT
 *
 * See ready.h.
 */
#include "ready.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- The sockets of a user ---- */

/* To stop watching and to start again costs as much as several reports. */
enum { MOST_REPEATS = 4 };

enum { TAKEN = 16 }; /* events of a user at a time */

static struct shuf__event_set *set_of(void *poll)
{
    return (struct shuf__event_set *)((char *)poll - offsetof(struct shuf__event_set, poll));
}

/* The loop reports the events again each time until the owner takes them. */
static void on_socket_events(uv_poll_t *poll, int status, int events)
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
        uv_poll_start(&set->poll, UV_READABLE, on_socket_events);
    set->is_watched = true;
}

/* False: there are no descriptors or no memory. Then the set needs no close. */
static bool open_set(struct shuf__event_set *set, uv_loop_t *loop)
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

/* Takes at most `most` events, in turn among the sockets. If it returns fewer, the loop reports
 * later ones. */
static int take_from(struct shuf__event_set *set, struct epoll_event *events, int most)
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

/* Ends in a later turn of the loop, with closed(). */
static void close_set(struct shuf__event_set *set)
{
    uv_close((uv_handle_t *)&set->poll, on_closed);
}

/* ---- Users ---- */

void shuf__ready_init(struct shuf__ready_queue *queue, uv_loop_t *loop)
{
    LIST_INIT(&queue->users);
    TAILQ_INIT(&queue->busy);
    queue->loop = loop;
    queue->count = 0;
    queue->used_ns = 0;
}

/* A user that was idle begins with the used time of the user that was served last, so nobody saves
 * up time by being idle. */
static void set_busy(struct shuf__ready_user *user)
{
    struct shuf__ready_queue *queue = user->queue;
    if (user->is_busy)
        return;
    user->is_busy = true;
    if (user->used_ns < queue->used_ns)
        user->used_ns = queue->used_ns;
    TAILQ_INSERT_TAIL(&queue->busy, user, busy_link);
}

static void set_idle_if_done(struct shuf__ready_user *user)
{
    if (!user->is_busy || user->has_events || !TAILQ_EMPTY(&user->ready))
        return;
    user->is_busy = false;
    TAILQ_REMOVE(&user->queue->busy, user, busy_link);
}

static struct shuf__ready_user *user_of(struct shuf__event_set *sockets)
{
    return (struct shuf__ready_user *)((char *)sockets -
                                       offsetof(struct shuf__ready_user, sockets));
}

static void on_events(struct shuf__event_set *sockets)
{
    struct shuf__ready_user *user = user_of(sockets);
    if (user->refs == 0) /* it is closing */
        return;
    user->has_events = true;
    set_busy(user);
}

static void free_user(struct shuf__event_set *sockets)
{
    free(user_of(sockets));
}

static struct shuf__ready_user *find_user(const struct shuf__ready_queue *queue, uint32_t uid)
{
    struct shuf__ready_user *user;
    LIST_FOREACH (user, &queue->users, link)
        if (user->uid == uid)
            break;
    return user;
}

static struct shuf__ready_user *add_user(struct shuf__ready_queue *queue, uint32_t uid)
{
    struct shuf__ready_user *user = calloc(1, sizeof *user);
    if (!user)
        return NULL;
    user->queue = queue;
    user->uid = uid;
    user->sockets.has_events = on_events;
    user->sockets.closed = free_user;
    TAILQ_INIT(&user->ready);
    if (!open_set(&user->sockets, queue->loop)) {
        free(user);
        return NULL;
    }
    LIST_INSERT_HEAD(&queue->users, user, link);
    queue->count++;
    return user;
}

bool shuf__ready_join(struct shuf__ready_queue *queue, struct shuf__ready *session, uint32_t uid)
{
    struct shuf__ready_user *user = find_user(queue, uid);
    if (!user && !(user = add_user(queue, uid)))
        return false;
    user->refs++;
    session->user = user;
    session->is_ready = false;
    return true;
}

void shuf__ready_user_unref(struct shuf__ready_user *user)
{
    if (--user->refs > 0)
        return;
    user->has_events = false;
    set_idle_if_done(user);
    LIST_REMOVE(user, link);
    user->queue->count--;
    close_set(&user->sockets);
}

void shuf__ready_leave(struct shuf__ready *session)
{
    shuf__ready_remove(session);
    shuf__ready_user_unref(session->user);
}

/* ---- Sessions ---- */

bool shuf__ready_watch(struct shuf__ready *session, int fd, uint32_t before, uint32_t wanted)
{
    struct epoll_event event = {.events = wanted, .data.ptr = session};
    const int operation = !wanted ? EPOLL_CTL_DEL : before ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    return before == wanted || epoll_ctl(session->user->sockets.fd, operation, fd, &event) == 0;
}

void shuf__ready_add(struct shuf__ready *session)
{
    struct shuf__ready_user *user = session->user;
    if (session->is_ready)
        return;
    session->is_ready = true;
    TAILQ_INSERT_TAIL(&user->ready, session, link);
    set_busy(user);
}

void shuf__ready_remove(struct shuf__ready *session)
{
    struct shuf__ready_user *user = session->user;
    if (!session->is_ready)
        return;
    session->is_ready = false;
    TAILQ_REMOVE(&user->ready, session, link);
    set_idle_if_done(user);
}

/* ---- Turns ---- */

static void take_events(struct shuf__ready_user *user)
{
    struct epoll_event events[TAKEN];
    const int count = take_from(&user->sockets, events, TAKEN);
    for (int i = 0; i < count; i++) {
        struct shuf__ready *session = events[i].data.ptr;
        session->report(session, events[i].events);
    }
    user->has_events = count == TAKEN;
    set_idle_if_done(user);
}

static struct shuf__ready_user *next_user(struct shuf__ready_queue *queue)
{
    struct shuf__ready_user *user, *next = NULL;
    TAILQ_FOREACH (user, &queue->busy, busy_link)
        if (!next || user->used_ns < next->used_ns)
            next = user;
    return next;
}

/* Takes new events only when the user's ready sessions are served, so no event is reported twice.
 */
struct shuf__ready *shuf__ready_next(struct shuf__ready_queue *queue)
{
    struct shuf__ready_user *user;
    while ((user = next_user(queue)) != NULL) {
        struct shuf__ready *session = TAILQ_FIRST(&user->ready);
        if (!session) {
            take_events(user);
            continue;
        }
        queue->used_ns = user->used_ns;
        shuf__ready_remove(session);
        return session;
    }
    return NULL;
}
