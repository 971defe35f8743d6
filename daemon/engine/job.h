/* SPDX-License-Identifier: MIT
 *
 * A job of the engine, and queues of jobs: first in, first out.
 */
#ifndef SHUFD_JOB_H
#define SHUFD_JOB_H

#include "backend.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct shuf__engine;
struct shuf__lane;
struct shuf__lanes;
struct shuf__turn_user;

/* The uid of jobs and memory of the daemon itself. It has no account and no limits, and takes turns
 * like a user. It is not the uid of the daemon's process, and (uid_t)-1 is no user's uid. */
enum { SHUF__UID_DAEMON = UINT32_MAX };

/* The part of a job that the loop's thread has done. */
enum shuf__loop_result {
    SHUF__LOOP_NOTHING,  /* none: `run` does the job */
    SHUF__LOOP_COMPLETE, /* the whole job */
    SHUF__LOOP_LAUNCHED, /* the loop's backend computes; a lane calls `run` with it to wait */
};

/* The end of a job's `begin`. */
enum shuf__begin {
    SHUF__BEGIN_FAILED, /* the job is over */
    SHUF__BEGIN_DONE,   /* the job may run */
    SHUF__BEGIN_LATER,  /* the engine calls `begin` again after shuf__engine_begin_again() */
};

/* The caller embeds the job in the struct of its work. The job must not move until `done` is
 * called. */
struct shuf__engine_job {
    uint32_t uid; /* the user of the job; the caller sets it */
    /* On the loop's thread, when it is the job's turn: acquires the memory that the job needs. May
     * be NULL. */
    enum shuf__begin (*begin)(struct shuf__engine_job *job);
    /* On the loop's thread, after `begin`: runs the job if that takes less time than waking another
     * thread. May be NULL. */
    enum shuf__loop_result (*run_on_loop)(struct shuf__engine_job *job,
                                          struct shuf__backend *backend);
    void (*run)(struct shuf__engine_job *job, struct shuf__backend *backend); /* a lane's thread */
    void (*done)(struct shuf__engine_job *job);                               /* loop's thread */
    const char *name;                                                         /* for tracers */
    /* The kernel may stop `run` for as long as the job's client wants, so a stop says nothing about
     * the device. The caller sets it. */
    bool may_wait_for_client;
    /* Set by shuf__engine_cancel(); `run` reads it. */
    atomic_bool cancelled;
    struct shuf__engine *engine; /* set when the job is submitted */
    uint64_t started_ns;         /* uv_hrtime() when the job leaves the queue; 0: it waits */
    uint64_t paused_ns;          /* total time in pauses; read it when the job has ended */

    /* private to the engine */
    atomic_bool polled; /* `run` has read `cancelled` */
    atomic_bool paused;
    bool urgent;
    struct shuf__lanes *lanes;
    struct shuf__lane *lane;       /* the lane that runs it, or has run it */
    struct shuf__backend *backend; /* for `run`; NULL: the backend of the lane */
    struct shuf__turn_user *user;  /* while the job waits, or a lane has it */
    unsigned pausing;              /* threads that wait for the end of the pause */
    uint64_t pause_begin_ns;
    struct shuf__engine_job *next;
};

/* Subtracts the job's pauses from `ns`, a time since started_ns. */
static inline uint64_t shuf__engine_job_active_ns(const struct shuf__engine_job *job, uint64_t ns)
{
    return ns > job->paused_ns ? ns - job->paused_ns : 0;
}

/* Whether the job is cancelled; `job` is a struct shuf__engine_job. Any thread may call it. A long
 * computation must call it at least every few milliseconds. The calls also show that the
 * computation is not stuck. If the job is paused, a call returns only when the job continues or is
 * cancelled. */
bool shuf__engine_job_is_cancelled(void *job);

/* ---- Queues ---- */

struct shuf__job_queue {
    struct shuf__engine_job *first, **end;
};

static inline void shuf__job_queue_init(struct shuf__job_queue *queue)
{
    queue->first = NULL;
    queue->end = &queue->first;
}

static inline void shuf__job_queue_push(struct shuf__job_queue *queue, struct shuf__engine_job *job)
{
    job->next = NULL;
    *queue->end = job;
    queue->end = &job->next;
}

static inline void shuf__job_queue_push_first(struct shuf__job_queue *queue,
                                              struct shuf__engine_job *job)
{
    job->next = queue->first;
    if (!queue->first)
        queue->end = &job->next;
    queue->first = job;
}

/* NULL when the queue is empty. */
static inline struct shuf__engine_job *shuf__job_queue_pop(struct shuf__job_queue *queue)
{
    struct shuf__engine_job *job = queue->first;
    if (job && !(queue->first = job->next))
        queue->end = &queue->first;
    return job;
}

/* False when the job is not in the queue. */
static inline bool shuf__job_queue_withdraw(struct shuf__job_queue *queue,
                                            const struct shuf__engine_job *job)
{
    struct shuf__engine_job **at = &queue->first;
    while (*at && *at != job)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = job->next;
    if (!*at)
        queue->end = at;
    return true;
}

#endif
