/* SPDX-License-Identifier: MIT
 *
 * The engine: one thread that drives the device, and a bounded queue of jobs on the loop's thread.
 * The engine hands one job at a time to its thread, and each job comes back to the loop.
 */
#ifndef SHUFD_ENGINE_H
#define SHUFD_ENGINE_H

#include "backend.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct shuf__engine;

/* Embedded in the struct that the job works on. Must not move until `done` is called. */
struct shuf__engine_job {
    /* On the loop's thread, when the job is first in the queue: takes the daemon's memory that the
     * job needs. False ends the job. May be NULL. */
    bool (*begin)(struct shuf__engine_job *job);
    /* On the loop's thread, after `begin`, when the engine is idle: runs the job if that takes less
     * time than waking the engine's thread. False leaves the job, or its rest, to `run`. May be
     * NULL. */
    bool (*run_on_loop)(struct shuf__engine_job *job, struct shuf__backend *backend);
    void (*run)(struct shuf__engine_job *job, struct shuf__backend *backend); /* engine's thread */
    void (*done)(struct shuf__engine_job *job);                               /* loop's thread */
    const char *name;                                                         /* for tracers */
    /* Set by shuf__engine_cancel(); `run` reads it. */
    atomic_bool cancelled;
    uint64_t started_ns; /* of uv_hrtime(), when it leaves the queue; 0: it waits */

    /* private to the engine */
    atomic_bool polled; /* `run` has read `cancelled` */
    bool urgent;
    struct shuf__engine_job *next;
};

struct shuf__engine_options {
    const char *backend; /* as shuf__backend_open() takes it */
    unsigned threads;
    uint64_t queue; /* jobs that may wait while another runs */
    /* Both are called on the loop's thread. */
    void (*idle)(void *context); /* all jobs are done */
    void (*device_failed)(void *context, const struct shuf__error *error);
    void *context;
};

/* Returns when the device is open, or has failed to open. On success *error says why better
 * backends were passed over (see shuf__backend_open). */
shuf_status shuf__engine_start(struct shuf__engine **engine, uv_loop_t *loop,
                               const struct shuf__engine_options *options,
                               struct shuf__error *error);

/* Ends the thread and closes the device; the engine must be idle. Its memory is freed when the loop
 * has run once more. */
void shuf__engine_stop(struct shuf__engine *engine);

/* The functions below are for the loop's thread only. */

/* Queues a job. Fails with SHUF_BUSY when the queue is full. `done` is never called before this
 * returns. */
shuf_status shuf__engine_submit(struct shuf__engine *engine, struct shuf__engine_job *job,
                                struct shuf__error *error);

/* Cancels a job. A waiting job leaves the queue at once and does not run; a running job sees
 * `cancelled`. `done` is called later in both cases. */
void shuf__engine_cancel(struct shuf__engine *engine, struct shuf__engine_job *job);

/* Whether the job is cancelled; `job` is a struct shuf__engine_job. On any thread. A long
 * computation calls it now and then, which also shows that it is not stuck. */
bool shuf__engine_job_is_cancelled(void *job);

/* Whether the device has done anything since the last call: a job has run, or the running one has
 * asked whether it is cancelled. */
bool shuf__engine_progressed(struct shuf__engine *engine);

/* Queues an urgent job, such as the read of a result or a free. Never refused, and run before the
 * next job starts. */
void shuf__engine_submit_urgent(struct shuf__engine *engine, struct shuf__engine_job *job);

/* Lends the backend to the caller until it returns to the loop; NULL while the engine has other
 * work. For work that takes less time than waking the engine's thread. */
struct shuf__backend *shuf__engine_borrow(struct shuf__engine *engine);

/* Reports an error with status SHUF_DEVICE to options.device_failed; ignores other errors. */
void shuf__engine_report(struct shuf__engine *engine, const struct shuf__error *error);

bool shuf__engine_is_idle(const struct shuf__engine *engine);

/* The number of jobs that wait or run. */
uint64_t shuf__engine_queued(const struct shuf__engine *engine);

/* Only its names and the calls that backend.h marks "on any thread" are safe. All other calls
 * belong in a job, or need shuf__engine_borrow(). */
struct shuf__backend *shuf__engine_backend(const struct shuf__engine *engine);

#endif
