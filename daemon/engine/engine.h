/* SPDX-License-Identifier: MIT
 *
 * The engine: who uses the device, when, and on which thread. Jobs of different users take turns
 * (turns.h): when a user's time slice is over and another user waits, the running job is paused
 * and the other user's job runs in a lane of its own (lane.h). A user's jobs run one after the
 * other. Small computations run on the loop's thread, which has a backend too, and urgent jobs,
 * such as reads and frees, in a lane of their own: neither waits for long computations of others.
 */
#ifndef SHUFD_ENGINE_H
#define SHUFD_ENGINE_H

#include "job.h"

#include <uv.h>

struct shuf__engine;

struct shuf__engine_options {
    const char *backend; /* as shuf__backend_open() takes it */
    unsigned threads;
    uint64_t queue; /* jobs of a user that may wait while another runs */
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

/* Ends the threads and closes the device; the engine must be idle. Its memory is freed when the
 * loop has run once more. */
void shuf__engine_stop(struct shuf__engine *engine);

/* The functions below are for the loop's thread only. */

/* Queues a job. Fails with SHUF_BUSY when the user's queue is full. `done` is never called before
 * this returns. */
shuf_status shuf__engine_submit(struct shuf__engine *engine, struct shuf__engine_job *job,
                                struct shuf__error *error);

/* Cancels a job. A waiting job leaves the queue at once and does not run; a running job sees
 * `cancelled`. `done` is called later in both cases. */
void shuf__engine_cancel(struct shuf__engine *engine, struct shuf__engine_job *job);

/* Whether the job is cancelled; `job` is a struct shuf__engine_job. On any thread. A long
 * computation calls it every few milliseconds at least, which also shows that it is not stuck.
 * While the job is paused, it returns only when the job goes on or is cancelled. */
bool shuf__engine_job_is_cancelled(void *job);

/* Whether the device has done anything since the last call: a job has run, or the running one has
 * asked whether it is cancelled. */
bool shuf__engine_progressed(struct shuf__engine *engine);

/* Queues an urgent job, such as the read of a result or a free. Never refused. Waits for other
 * urgent jobs only. */
void shuf__engine_submit_urgent(struct shuf__engine *engine, struct shuf__engine_job *job);

/* In `done` of a job that has launched a computation: the same lane calls `run` once more, to wait
 * for its end. */
void shuf__engine_continue(struct shuf__engine *engine, struct shuf__engine_job *job);

/* Lends the loop's backend to the caller until it returns to the loop, for work that takes less
 * time than waking another thread. NULL while a job waits for that backend's computation. */
struct shuf__backend *shuf__engine_borrow(struct shuf__engine *engine);

/* A computation that the caller has launched with the borrowed backend takes longer: a lane waits
 * for it, in job->run. */
void shuf__engine_hand_over(struct shuf__engine *engine, struct shuf__engine_job *job);

/* Reports an error with status SHUF_DEVICE to options.device_failed; ignores other errors. */
void shuf__engine_report(struct shuf__engine *engine, const struct shuf__error *error);

bool shuf__engine_is_idle(const struct shuf__engine *engine);

/* The number of jobs that wait or run. */
uint64_t shuf__engine_queued(const struct shuf__engine *engine);

/* Only its names and the calls that backend.h marks "on any thread" are safe. All other calls
 * belong in a job, or need shuf__engine_borrow(). */
struct shuf__backend *shuf__engine_backend(const struct shuf__engine *engine);

#endif
