/* SPDX-License-Identifier: MIT
 *
 * The one thread that drives the device, so that the socket thread never waits
 * for it. Jobs wait in a bounded queue on the loop's side, one at a time goes to the
 * thread, and each comes back to the loop.
 */
#ifndef SHUFD_ENGINE_H
#define SHUFD_ENGINE_H

#include "backend.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct shuf__engine;

/* Embedded in whatever is to be done; must stay where it is until `done`. */
struct shuf__engine_job {
    /* Loop's thread, when the job's turn has come: takes what it needs of the daemon's memory, for
     * which it is too early before. False ends it there. NULL for nothing. */
    bool (*begin)(struct shuf__engine_job *task);
    /* Loop's thread, after `begin`, when the engine has nothing else: does the job where that takes
     * less time than waking the engine's thread. False: `run` is to do it, or what is left of it.
     * NULL where it never is so small. */
    bool (*run_on_loop)(struct shuf__engine_job *task, struct shuf__backend *backend);
    void (*run)(struct shuf__engine_job *task, struct shuf__backend *backend); /* engine's thread */
    void (*done)(struct shuf__engine_job *task);                               /* loop's thread */
    /* Nobody waits for the task any more (shuf__engine_cancel); `run` looks at it. */
    atomic_bool cancelled;

    /* the engine's own */
    bool job;
    struct shuf__engine_job *next;
};

struct shuf__engine_options {
    const char *backend; /* as shuf__backend_open() takes it */
    unsigned threads;
    uint64_t queue;              /* jobs that may wait while another runs */
    void (*idle)(void *context); /* on the loop's thread: all that was given is done */
    void *context;
};

/* Returns when the device is open, or why it is not. On success *error tells why
 * better backends were passed over (see shuf__backend_open). */
shuf_status shuf__engine_start(struct shuf__engine **engine, uv_loop_t *loop,
                               const struct shuf__engine_options *options,
                               struct shuf__error *error);

/* Ends the thread and closes the device; the engine must be idle. Its memory goes
 * when the loop has run once more. */
void shuf__engine_stop(struct shuf__engine *engine);

/* The rest is for the loop's thread. */

/* Queues a job; false when the queue is full, and the task was not taken. `done` is never called
 * before this returns. */
bool shuf__engine_submit(struct shuf__engine *engine, struct shuf__engine_job *task);

/* Nobody waits for the task any more. A job that has not begun leaves the queue at once and is
 * not run; what runs is told by its flag. `done` is called in any case, later. */
void shuf__engine_cancel(struct shuf__engine *engine, struct shuf__engine_job *task);

/* Queues what follows from a job that was accepted (reading it, freeing it): never
 * refused, and done before the next job starts. */
void shuf__engine_follow_up(struct shuf__engine *engine, struct shuf__engine_job *task);

/* The backend, for the caller to drive until it returns to the loop, or NULL when there is other
 * work for it. For what takes less time than waking another thread would. */
struct shuf__backend *shuf__engine_borrow(struct shuf__engine *engine);

bool shuf__engine_is_idle(const struct shuf__engine *engine);

/* Jobs waiting or running. */
uint64_t shuf__engine_queued(const struct shuf__engine *engine);

/* Its names and its `memory` only: everything else is whose turn it is. */
struct shuf__backend *shuf__engine_backend(const struct shuf__engine *engine);

#endif
