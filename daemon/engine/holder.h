/* SPDX-License-Identifier: MIT
 *
 * The job that has the device, and its turn. A GPU completes the work that a job has launched, even
 * if the job is told to pause. So the job keeps the device until it has paused or ended, but at
 * most 40 ms longer. If the next job began at once, its work would wait on the GPU for that of all
 * paused jobs. On a CPU the next job begins at once, and the operating system divides the
 * processors. All calls are on the loop's thread.
 */
#ifndef SHUFD_HOLDER_H
#define SHUFD_HOLDER_H

#include "job.h"
#include "lane.h"
#include "turns.h"

/* The next job waits no longer than this for a job that is told to pause. */
enum { SHUF__HAND_OVER_DEVICE_MS = 40 };

struct shuf__holder {
    const struct shuf__turns *turns;
    struct shuf__lanes *lanes;
    uint64_t turn_ns;                 /* length of a turn while other users wait */
    uint64_t hand_over_ns;            /* longest wait for a job that is told to pause */
    struct shuf__engine_job *running; /* NULL: none, or `leaving` has the device */
    struct shuf__engine_job *leaving; /* is told to pause, and still uses the device; or NULL */
    uint64_t begin_ns;                /* when the turn began */
    uint64_t leave_until_ns;
};

/* `on_host`: the device is the CPU. */
void shuf__holder_init(struct shuf__holder *holder, const struct shuf__turns *turns,
                       struct shuf__lanes *lanes, bool on_host);

void shuf__holder_begin_turn(struct shuf__holder *holder);

/* The job that has the device: `running` or `leaving`. NULL: none. */
static inline struct shuf__engine_job *shuf__holder_job(const struct shuf__holder *holder)
{
    return holder->running ? holder->running : holder->leaving;
}

/* Charges the time since the turn began to the user, and begins another turn. */
void shuf__holder_end_turn(struct shuf__holder *holder, struct shuf__turn_user *user);

/* The rest of the running job's turn, in nanoseconds; UINT64_MAX: no other user waits. */
uint64_t shuf__holder_time_left(const struct shuf__holder *holder);

/* Tells the running job to pause. */
void shuf__holder_pause(struct shuf__holder *holder);

/* Takes the device from a job that has paused, or had the time to. Returns 0 if the next job may
 * begin, or the longest time until it may, in nanoseconds. A lane wakes the loop when its job has
 * paused or ended: then call it again. */
uint64_t shuf__holder_try_hand_over(struct shuf__holder *holder);

/* The job has ended, or leaves its lane for another reason. */
void shuf__holder_forget(struct shuf__holder *holder, const struct shuf__engine_job *job);

#endif
