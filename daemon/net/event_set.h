/* SPDX-License-Identifier: MIT
 *
 * A set of sockets (epoll) inside the set of the loop. The loop gets one event for all sockets of
 * the set, and the owner takes their events when it is ready to handle them. So sockets with events
 * cost the loop nothing until then, however many there are. All calls are on the loop's thread.
 */
#ifndef SHUFD_EVENT_SET_H
#define SHUFD_EVENT_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <uv.h>

struct shuf__event_set {
    int fd;
    uv_poll_t poll;
    bool is_watched;  /* by the loop */
    unsigned repeats; /* reports since the last shuf__event_set_take() */
    /* The owner sets these. */
    void (*has_events)(struct shuf__event_set *set); /* the loop's event */
    void (*closed)(struct shuf__event_set *set);     /* the last call: frees the memory of `set` */
};

/* False: there are no descriptors or no memory. Then the set needs no close. */
bool shuf__event_set_open(struct shuf__event_set *set, uv_loop_t *loop);

/* Watches a socket for the events `wanted` (EPOLLIN, EPOLLOUT, EPOLLRDHUP; 0: none) instead of
 * those of the last call, `before`. `data` comes back with the events. A closed socket leaves the
 * set. False: there is no memory, or the user has too many watched sockets. */
bool shuf__event_set_watch(const struct shuf__event_set *set, int fd, uint32_t before,
                           uint32_t wanted, void *data);

/* Takes at most `most` events, in turn among the sockets. If it returns fewer, the loop reports
 * later ones. */
int shuf__event_set_take(struct shuf__event_set *set, struct epoll_event *events, int most);

/* Ends in a later turn of the loop, with closed(). */
void shuf__event_set_close(struct shuf__event_set *set);

#endif
