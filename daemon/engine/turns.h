/* SPDX-License-Identifier: MIT
 *
 * Whose job runs next. Users share the time of the device by start-time fair queueing (Goyal, Vin
 * and Cheng, SIGCOMM 1996, section 2): each user has a virtual time, which grows while a job of the
 * user runs, and the user with the least one is next. A user that comes back begins at the virtual
 * time of the user whose turn it is, so idleness earns nothing, and a short job waits for one time
 * slice. On the loop's thread only.
 */
#ifndef SHUFD_TURNS_H
#define SHUFD_TURNS_H

#include "job.h"

#include <sys/queue.h>

/* A user with jobs that wait or run. */
struct shuf__turn_user {
    uint32_t uid;
    struct shuf__job_queue waiting;
    uint64_t count;                  /* jobs that wait */
    struct shuf__engine_job *active; /* the one that has begun, running or paused; NULL: none */
    uint64_t virtual_ns;
    TAILQ_ENTRY(shuf__turn_user) link;
};

struct shuf__turns {
    TAILQ_HEAD(, shuf__turn_user) users;
    uint64_t virtual_ns; /* of the user whose turn it is */
};

void shuf__turns_init(struct shuf__turns *turns);

/* The user, who is added if there is no such user; NULL when out of memory. */
struct shuf__turn_user *shuf__turns_user(struct shuf__turns *turns, uint32_t uid);

/* The user with the least virtual time among those with a paused job and, if `may_begin`, those
 * with a waiting job. Only one job of a user is active. NULL: none. */
struct shuf__turn_user *shuf__turns_next(struct shuf__turns *turns, bool may_begin);

/* Whether a user other than `user` waits for a turn. */
bool shuf__turns_has_others(const struct shuf__turns *turns, const struct shuf__turn_user *user);

/* Forgets users without jobs. */
void shuf__turns_forget_idle(struct shuf__turns *turns);

#endif
