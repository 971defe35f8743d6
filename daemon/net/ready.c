/* SPDX-License-Identifier: MIT
 *
 * See ready.h.
 */
#include "ready.h"

#include <stdlib.h>

enum { TAKEN = 16 }; /* events of a user at a time */

void shuf__ready_init(struct shuf__ready_queue *queue, uv_loop_t *loop)
{
    LIST_INIT(&queue->users);
    TAILQ_INIT(&queue->busy);
    queue->loop = loop;
    queue->count = 0;
    queue->used_ns = 0;
}

/* ---- Users ---- */

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
    if (!shuf__event_set_open(&user->sockets, queue->loop)) {
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
    shuf__event_set_close(&user->sockets);
}

void shuf__ready_leave(struct shuf__ready *session)
{
    shuf__ready_remove(session);
    shuf__ready_user_unref(session->user);
}

/* ---- Sessions ---- */

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
    const int count = shuf__event_set_take(&user->sockets, events, TAKEN);
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
