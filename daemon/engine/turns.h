/* SPDX-License-Identifier: MIT
 *
 * Decides which user's job runs next. Users share the time of the device by start-time fair
 * queueing (Goyal, Vin and Cheng, SIGCOMM 1996, section 2). Each user has a virtual time, which
 * grows while a job of the user runs. The user with the smallest virtual time is next. A new user,
 * or one that was idle, begins with the virtual time of the user whose turn it is. So nobody saves
 * up time by being idle, and a short job waits for one turn. All calls are on the loop's thread.
 */
#ifndef SHUFD_TURNS_H
#define SHUFD_TURNS_H

#include "job.h"

#include <sys/queue.h>

/* The length of a turn while other users wait. */
enum {
    SHUF__TURN_HOST_MS = 10, /* much longer than a job needs to fill the CPU's caches again */
    SHUF__TURN_DEVICE_MS = 2,
};

/* A user with jobs that wait or run. */
struct shuf__turn_user {
    uint32_t uid;
    struct shuf__job_queue waiting;
    uint64_t count;                  /* jobs that wait */
    struct shuf__engine_job *active; /* the job that runs or is paused; NULL: none */
    bool waits;                      /* no waiting job may begin: SHUF__BEGIN_LATER */
    uint64_t virtual_ns;
    TAILQ_ENTRY(shuf__turn_user) link;
};

struct shuf__turns {
    TAILQ_HEAD(, shuf__turn_user) users;
    uint64_t virtual_ns; /* the virtual time of the user whose turn it is */
};

void shuf__turns_init(struct shuf__turns *turns);

/* Finds the user, or adds it. NULL when out of memory. */
struct shuf__turn_user *shuf__turns_user(struct shuf__turns *turns, uint32_t uid);

/* The user with the smallest virtual time among the users with a paused job. If `may_begin`, users
 * with a waiting job take part too. NULL: there is none. */
struct shuf__turn_user *shuf__turns_next(struct shuf__turns *turns, bool may_begin);

/* Whether a user other than `user` has a paused job or, if `may_begin`, a waiting job. */
bool shuf__turns_has_others(const struct shuf__turns *turns, const struct shuf__turn_user *user,
                            bool may_begin);

/* The jobs that come before a new one of this user: the user's own, and one of each other user. */
uint64_t shuf__turns_ahead(const struct shuf__turns *turns, uint32_t uid);

/* The waiting jobs of all users may begin. */
void shuf__turns_end_waits(struct shuf__turns *turns);

/* Forgets users without jobs. */
void shuf__turns_forget_idle(struct shuf__turns *turns);

#endif
