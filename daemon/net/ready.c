/* SPDX-License-Identifier: MIT
 *
 * See ready.h.
 */
#include "ready.h"

#include <stdlib.h>

void shuf__ready_init(struct shuf__ready_queue *queue)
{
    LIST_INIT(&queue->users);
    TAILQ_INIT(&queue->busy);
    queue->used_ns = 0;
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
    user->uid = uid;
    TAILQ_INIT(&user->ready);
    LIST_INSERT_HEAD(&queue->users, user, link);
    return user;
}

bool shuf__ready_join(struct shuf__ready_queue *queue, struct shuf__ready *session, uint32_t uid)
{
    struct shuf__ready_user *user = find_user(queue, uid);
    if (!user && !(user = add_user(queue, uid)))
        return false;
    user->connections++;
    session->user = user;
    session->is_ready = false;
    return true;
}

void shuf__ready_leave(struct shuf__ready_queue *queue, struct shuf__ready *session)
{
    struct shuf__ready_user *user = session->user;
    shuf__ready_remove(queue, session);
    if (--user->connections > 0)
        return;
    LIST_REMOVE(user, link);
    free(user);
}

/* A user that was idle begins with the used time of the user that was served last, so nobody saves
 * up time by being idle. */
static void set_busy(struct shuf__ready_queue *queue, struct shuf__ready_user *user)
{
    if (user->used_ns < queue->used_ns)
        user->used_ns = queue->used_ns;
    TAILQ_INSERT_TAIL(&queue->busy, user, busy_link);
}

void shuf__ready_add(struct shuf__ready_queue *queue, struct shuf__ready *session)
{
    struct shuf__ready_user *user = session->user;
    if (session->is_ready)
        return;
    if (TAILQ_EMPTY(&user->ready))
        set_busy(queue, user);
    session->is_ready = true;
    TAILQ_INSERT_TAIL(&user->ready, session, link);
}

void shuf__ready_remove(struct shuf__ready_queue *queue, struct shuf__ready *session)
{
    struct shuf__ready_user *user = session->user;
    if (!session->is_ready)
        return;
    session->is_ready = false;
    TAILQ_REMOVE(&user->ready, session, link);
    if (TAILQ_EMPTY(&user->ready))
        TAILQ_REMOVE(&queue->busy, user, busy_link);
}

struct shuf__ready *shuf__ready_next(struct shuf__ready_queue *queue)
{
    struct shuf__ready_user *user, *next = NULL;
    TAILQ_FOREACH (user, &queue->busy, busy_link)
        if (!next || user->used_ns < next->used_ns)
            next = user;
    if (!next)
        return NULL;
    struct shuf__ready *session = TAILQ_FIRST(&next->ready);
    queue->used_ns = next->used_ns;
    shuf__ready_remove(queue, session);
    return session;
}
