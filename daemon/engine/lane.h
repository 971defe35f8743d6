/* SPDX-License-Identifier: MIT
 *
 * Lanes: threads that run jobs. Each lane has a backend of its own for the same device. A job in a
 * lane can be paused when it asks whether it is cancelled. Call the functions on the loop's thread,
 * except where a comment says otherwise.
 */
#ifndef SHUFD_LANE_H
#define SHUFD_LANE_H

#include "job.h"

#include <uv.h>

enum {
    SHUF__LANES = 64,     /* users whose jobs can be active at the same time */
    SHUF__LANES_KEPT = 2, /* free lanes that are not closed */
};

/* The set of lanes for jobs that take turns, and the fields that they share with the lane for
 * urgent jobs. */
struct shuf__lanes {
    const char *backend; /* as shuf__backend_open() takes it */
    unsigned threads;
    uv_async_t *wake; /* wakes the loop: a job is finished or paused, or a lane is open */
    /* Guards `finished` below, the fields `jobs` to `stop` of each lane, and the times of the jobs'
     * pauses. */
    uv_mutex_t lock;
    uv_cond_t resumed;
    struct shuf__job_queue finished;

    struct shuf__lane *lane[SHUF__LANES]; /* only the loop uses it and the counts */
    unsigned count, most;
};

enum shuf__lane_state { SHUF__LANE_OPENING, SHUF__LANE_OPEN, SHUF__LANE_FAILED };

struct shuf__lane {
    struct shuf__lanes *lanes;
    uv_cond_t changed;
    struct shuf__job_queue jobs;
    enum shuf__lane_state state;
    struct shuf__error error; /* if the state is FAILED */
    bool stop;
    struct shuf__backend *backend; /* only the lane's thread uses it */
    uv_thread_t thread;
    uint64_t start_ns;
    struct shuf__engine_job *job; /* the job that has the lane, set by the loop; NULL: none */
};

shuf_status shuf__lanes_init(struct shuf__lanes *lanes, struct shuf__error *error);
void shuf__lanes_destroy(struct shuf__lanes *lanes);

/* Opens the first lane of the set. */
shuf_status shuf__lanes_open_first(struct shuf__lanes *lanes, struct shuf__error *error);

/* A lane of the set without a job. NULL: every lane has a job. In this case it begins to open
 * another lane, if the set may have more. The new lane wakes the loop when it is open. */
struct shuf__lane *shuf__lanes_find_free(struct shuf__lanes *lanes);

/* Whether a lane of the set has been opening its backend for so long. */
bool shuf__lanes_open_slowly(struct shuf__lanes *lanes, uint64_t nanoseconds);

/* Closes free lanes of the set, except SHUF__LANES_KEPT. */
void shuf__lanes_close_spare(struct shuf__lanes *lanes);

/* Closes all lanes of the set. None may have a job. */
void shuf__lanes_close(struct shuf__lanes *lanes);

/* Starts a lane outside of the set. Its thread opens a backend. On failure returns NULL and sets
 * *error. */
struct shuf__lane *shuf__lane_start(struct shuf__lanes *lanes, struct shuf__error *error);

/* Ends the lane, which must not have a job. Its thread closes the backend. */
void shuf__lane_stop(struct shuf__lane *lane);

/* Waits until the lane is open or has failed. */
shuf_status shuf__lane_await(struct shuf__lane *lane, struct shuf__error *error);

/* The lane's thread calls job->run with `backend`. If `backend` is NULL, it uses its own. */
void shuf__lane_dispatch(struct shuf__lane *lane, struct shuf__engine_job *job,
                         struct shuf__backend *backend);

/* All finished jobs, linked by `next`; NULL: none. */
struct shuf__engine_job *shuf__lanes_collect(struct shuf__lanes *lanes);

/* Wakes paused jobs: each looks whether it may continue or is cancelled. */
void shuf__lanes_resume(struct shuf__lanes *lanes);

/* Whether a thread of the job waits in its pause. */
bool shuf__lanes_has_paused(struct shuf__lanes *lanes, const struct shuf__engine_job *job);

#endif
