/* SPDX-License-Identifier: MIT
 *
 * Sessions with work for the loop's thread: a request to handle, or room for more of a reply. Users
 * share the thread's time as they share the device (engine/turns.h): the user whose sessions have
 * used the least time is next, so a user with many busy connections delays another user by one
 * request. The sessions of a user take turns in order. On the loop's thread only.
 */
#ifndef SHUFD_READY_H
#define SHUFD_READY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* A user with connections. */
struct shuf__ready_user {
    uint32_t uid;
    uint64_t connections, used_ns;
    TAILQ_HEAD(, shuf__ready) ready;
    LIST_ENTRY(shuf__ready_user) link;
    TAILQ_ENTRY(shuf__ready_user) busy_link;
};

/* A session's place; embedded in the session. */
struct shuf__ready {
    struct shuf__ready_user *user;
    bool is_ready;
    TAILQ_ENTRY(shuf__ready) link;
};

struct shuf__ready_queue {
    LIST_HEAD(, shuf__ready_user) users;
    TAILQ_HEAD(, shuf__ready_user) busy; /* with ready sessions */
    uint64_t used_ns;                    /* of the user that was next most recently */
};

void shuf__ready_init(struct shuf__ready_queue *queue);

/* False: out of memory. */
bool shuf__ready_join(struct shuf__ready_queue *queue, struct shuf__ready *session, uint32_t uid);
void shuf__ready_leave(struct shuf__ready_queue *queue, struct shuf__ready *session);

/* Both do nothing if the session is in the queue, or is not. */
void shuf__ready_add(struct shuf__ready_queue *queue, struct shuf__ready *session);
void shuf__ready_remove(struct shuf__ready_queue *queue, struct shuf__ready *session);

/* Removes the session whose turn it is; NULL: none is ready. */
struct shuf__ready *shuf__ready_next(struct shuf__ready_queue *queue);

static inline bool shuf__ready_is_empty(const struct shuf__ready_queue *queue)
{
    return TAILQ_EMPTY(&queue->busy);
}

#endif
