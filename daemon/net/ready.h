/* SPDX-License-Identifier: MIT
 *
 * The queue of ready sessions. A session is ready if it has a request to handle, or if its socket
 * has room for more of a reply. Users share the time of the loop's thread as they share the device
 * (engine/turns.h). The user whose sessions have used the least time is next. So even a user with
 * many busy connections delays another user by only one request. The sessions of a user take turns
 * in order. The sockets of a user are in a set of their own (struct shuf__event_set), and the queue
 * takes their events in the user's turn. New connections have a turn too, as those of another user
 * (acceptor.h). All calls are on the loop's thread.
 */
#ifndef SHUFD_READY_H
#define SHUFD_READY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <uv.h>

/* A set of sockets (epoll) inside the set of the loop. The loop gets one event for all sockets of
 * the set, and the owner takes their events when it is ready to handle them. So sockets with events
 * cost the loop nothing until then, however many there are. */
struct shuf__event_set {
    int fd;
    uv_poll_t poll;
    bool is_watched;  /* by the loop */
    unsigned repeats; /* reports since the owner has taken the events */
    /* The owner sets these. */
    void (*has_events)(struct shuf__event_set *set); /* the loop's event */
    void (*closed)(struct shuf__event_set *set);     /* the last call: frees the memory of `set` */
};

/* The uid for new connections, whose users are not known yet. */
static const uint32_t SHUF__READY_NOBODY = UINT32_MAX;

/* A user with connections. */
struct shuf__ready_user {
    struct shuf__ready_queue *queue;
    uint32_t uid;
    uint64_t refs; /* sessions, and the turn that runs */
    uint64_t used_ns;
    struct shuf__event_set sockets;
    bool has_events; /* the set may have events */
    bool is_busy;    /* has events or ready sessions */
    TAILQ_HEAD(, shuf__ready) ready;
    LIST_ENTRY(shuf__ready_user) link;
    TAILQ_ENTRY(shuf__ready_user) busy_link;
};

/* The place of a session in the queue. The session embeds it, and sets the functions. */
struct shuf__ready {
    /* Gets the events (EPOLLIN, ...) of the socket. It may not free a session. */
    void (*report)(struct shuf__ready *ready, uint32_t events);
    void (*serve)(struct shuf__ready *ready); /* the turn; it may free the session */
    struct shuf__ready_user *user;
    bool is_ready;
    TAILQ_ENTRY(shuf__ready) link;
};

struct shuf__ready_queue {
    uv_loop_t *loop;
    LIST_HEAD(, shuf__ready_user) users;
    TAILQ_HEAD(, shuf__ready_user) busy;
    uint64_t count;   /* users */
    uint64_t used_ns; /* the used time of the user that was served last */
};

void shuf__ready_init(struct shuf__ready_queue *queue, uv_loop_t *loop);

/* A session joins when it is made, and leaves when it is freed. False: there is no memory, or no
 * descriptor for the sockets of a new user. */
bool shuf__ready_join(struct shuf__ready_queue *queue, struct shuf__ready *session, uint32_t uid);
void shuf__ready_leave(struct shuf__ready *session);
void shuf__ready_user_unref(struct shuf__ready_user *user);

/* Watches the session's socket for the events `wanted` (EPOLLIN, EPOLLOUT, EPOLLRDHUP; 0: none)
 * instead of those of the last call, `before`. A closed socket leaves the set. False: there is no
 * memory, or the user has too many watched sockets. */
bool shuf__ready_watch(struct shuf__ready *session, int fd, uint32_t before, uint32_t wanted);

/* Does nothing if the session is in the queue already. */
void shuf__ready_add(struct shuf__ready *session);
/* Does nothing if the session is not in the queue. */
void shuf__ready_remove(struct shuf__ready *session);

/* Whether the session is the only ready one of its user. */
static inline bool shuf__ready_is_only(const struct shuf__ready *session)
{
    return session->is_ready && TAILQ_FIRST(&session->user->ready) == session &&
           !TAILQ_NEXT(session, link);
}

/* Takes the session whose turn it is out of the queue. NULL: none is ready. */
struct shuf__ready *shuf__ready_next(struct shuf__ready_queue *queue);

/* The time for turns before the loop handles other events. A request that arrives meanwhile waits
 * for the rest of this time. So if several users are connected, it ends after about one turn. */
static inline uint64_t shuf__ready_turn_ns(const struct shuf__ready_queue *queue)
{
    return queue->count > 2 ? 10000 : 100000; /* one of them is SHUF__READY_NOBODY */
}

static inline bool shuf__ready_is_empty(const struct shuf__ready_queue *queue)
{
    return TAILQ_EMPTY(&queue->busy);
}

#endif
