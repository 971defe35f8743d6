/* SPDX-License-Identifier: MIT
 *
 * Lanes: threads that run jobs, each with a backend of its own for the same device. A job in a lane
 * can be paused where it asks whether it is cancelled. Functions without a note are for the loop's
 * thread.
 */
#ifndef SHUFD_LANE_H
#define SHUFD_LANE_H

#include "job.h"

#include <uv.h>

enum {
    SHUF__LANES = 64,     /* users whose jobs can be active at the same time */
    SHUF__LANES_KEPT = 2, /* free lanes that are not closed */
};

/* The lanes for jobs that take turns, and the part that they share with the one for urgent jobs. */
struct shuf__lanes {
    const char *backend; /* as shuf__backend_open() takes it */
    unsigned threads;
    uv_async_t *wake; /* wakes the loop: a job is finished, or a lane is open */
    uv_mutex_t lock;  /* for the fields below, and for those of lanes up to `stop` */
    uv_cond_t resumed;
    struct shuf__job_queue finished;

    struct shuf__lane *lane[SHUF__LANES]; /* for the loop, as the counts */
    unsigned count, most;
};

enum shuf__lane_state { SHUF__LANE_OPENING, SHUF__LANE_OPEN, SHUF__LANE_FAILED };

struct shuf__lane {
    struct shuf__lanes *lanes;
    uv_cond_t changed;
    struct shuf__job_queue jobs;
    enum shuf__lane_state state;
    struct shuf__error error; /* if FAILED */
    bool stop;
    struct shuf__backend *backend; /* of the thread */
    uv_thread_t thread;
    struct shuf__engine_job *job; /* for the loop: the job that has the lane; NULL: it is free */
};

shuf_status shuf__lanes_init(struct shuf__lanes *lanes, struct shuf__error *error);
void shuf__lanes_destroy(struct shuf__lanes *lanes);

/* Opens the first lane of the set. */
shuf_status shuf__lanes_open_first(struct shuf__lanes *lanes, struct shuf__error *error);

/* A lane of the set without a job. NULL: all have one; another is being opened, and wakes the loop,
 * unless there are as many as there can be. */
struct shuf__lane *shuf__lanes_find_free(struct shuf__lanes *lanes);

/* Closes free lanes of the set, except SHUF__LANES_KEPT. */
void shuf__lanes_close_spare(struct shuf__lanes *lanes);

/* Closes all lanes of the set, which must be free. */
void shuf__lanes_close(struct shuf__lanes *lanes);

/* Starts a thread, which opens its backend. The lane is in no set. NULL with an error. */
struct shuf__lane *shuf__lane_start(struct shuf__lanes *lanes, struct shuf__error *error);

/* The lane must be free. Its thread closes the backend and ends. */
void shuf__lane_stop(struct shuf__lane *lane);

/* Waits until the lane is open or has failed. */
shuf_status shuf__lane_await(struct shuf__lane *lane, struct shuf__error *error);

/* The lane's thread calls job->run with `backend`, or with its own if that is NULL. */
void shuf__lane_dispatch(struct shuf__lane *lane, struct shuf__engine_job *job,
                         struct shuf__backend *backend);

/* All finished jobs, linked by `next`; NULL: none. */
struct shuf__engine_job *shuf__lanes_collect(struct shuf__lanes *lanes);

/* The job goes on from its pause, or will end because it is cancelled. */
void shuf__lanes_resume(struct shuf__lanes *lanes);

/* On a thread of a job: returns when the job is neither paused nor cancelled. */
void shuf__lanes_wait_paused(struct shuf__lanes *lanes, struct shuf__engine_job *job);

#endif
