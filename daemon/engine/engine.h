/* SPDX-License-Identifier: MIT
 *
 * The engine decides which job uses the device, when, and on which thread. Users take turns
 * (turns.h). At the end of a user's turn, if another user waits, the running job is paused
 * (struct holder in engine.c). The other user's job then runs in a lane of its own (lane.h). A
 * user's jobs run one after the other. Quick computations (cache/compute.h) run on the loop's
 * thread, which has its own backend. Urgent jobs, such as reads and frees, have a lane of their
 * own. So quick computations and urgent jobs do not wait for long computations.
 *
 * A device may have several engines: see engines.h.
 */
#ifndef SHUFD_ENGINE_H
#define SHUFD_ENGINE_H

#include "job.h"

#include <uv.h>

struct shuf__engine;

struct shuf__engine_options {
    const char *backend; /* as shuf__backend_open() takes it */
    unsigned threads;
    uint64_t queue; /* most jobs of a user that wait while one of the user's jobs runs */
    /* The engine calls both on the loop's thread. */
    void (*idle)(void *context); /* all jobs are done */
    void (*device_failed)(void *context, const struct shuf__error *error);
    void *context;
};

/* Returns when the device is open or cannot be opened. On success *error says why better backends
 * could not be used (see shuf__backend_open). */
shuf_status shuf__engine_start(struct shuf__engine **engine, uv_loop_t *loop,
                               const struct shuf__engine_options *options,
                               struct shuf__error *error);

/* Starts another engine and links it behind `engine`. If it `shares`, it is of the same device and
 * uses the loop's backend of `engine`, and it takes no urgent jobs. */
shuf_status shuf__engine_start_beside(struct shuf__engine *engine, bool shares, uv_loop_t *loop,
                                      const struct shuf__engine_options *options,
                                      struct shuf__error *error);

/* The engine that was started beside it after this one; NULL: none. */
struct shuf__engine *shuf__engine_next(const struct shuf__engine *engine);

/* Ends the threads and closes the device. The engine must be idle. Run the loop once more: it frees
 * the memory. */
void shuf__engine_stop(struct shuf__engine *engine);

/* The functions below are for the loop's thread only. */

/* Queues a job. Fails with SHUF_BUSY when the user's queue is full. Never calls `done` itself; the
 * loop does later. */
shuf_status shuf__engine_submit(struct shuf__engine *engine, struct shuf__engine_job *job,
                                struct shuf__error *error);

/* Cancels a job. A waiting job leaves the queue at once and does not run. A running job reads
 * `cancelled`. In both cases the loop calls `done` later. */
void shuf__engine_cancel(struct shuf__engine_job *job);

/* Whether the device has worked since the last call: a job has ended, or the job that has the
 * device has asked whether it is cancelled. False if the device has not answered a new lane for
 * `open_ns`, although other lanes may work. */
bool shuf__engine_progressed(struct shuf__engine *engine, uint64_t open_ns);

/* Queues an urgent job, such as the read of a result or a free. It is never refused, and waits only
 * for other urgent jobs. */
void shuf__engine_submit_urgent(struct shuf__engine *engine, struct shuf__engine_job *job);

/* Begins the jobs whose `begin` has returned SHUF__BEGIN_LATER. */
void shuf__engine_begin_again(struct shuf__engine *engine);

/* For a job that has launched a computation: call it in the job's `done`. The same lane then calls
 * `run` once more, which waits for the end of the computation. */
void shuf__engine_continue(struct shuf__engine_job *job);

/* Lends the loop's backend to the caller, until the caller returns to the loop. Use it for work
 * that takes less time than waking another thread. NULL while that backend still computes. */
struct shuf__backend *shuf__engine_borrow(struct shuf__engine *engine);

/* The caller has launched a computation with the borrowed backend, but it takes longer than
 * expected. The lane of urgent jobs calls job->run, which waits for the computation. */
void shuf__engine_hand_over(struct shuf__engine *engine, struct shuf__engine_job *job);

/* Reports an error with status SHUF_DEVICE to options.device_failed; ignores other errors. */
void shuf__engine_report(struct shuf__engine *engine, const struct shuf__error *error);

bool shuf__engine_is_idle(const struct shuf__engine *engine);

/* The number of jobs that wait or run. */
uint64_t shuf__engine_queued(const struct shuf__engine *engine);

/* The jobs that come before a new one of this user. Users take turns, so these are the user's own
 * and one of each other user. */
uint64_t shuf__engine_ahead(const struct shuf__engine *engine, uint32_t uid);

/* The loop's backend, for its names and the calls that backend.h marks "on any thread". Make all
 * other calls in a job, or after shuf__engine_borrow(). */
struct shuf__backend *shuf__engine_backend(const struct shuf__engine *engine);

#endif
