/* SPDX-License-Identifier: MIT
 *
 * See engine.h. Urgent jobs overtake the jobs in the queue. Most are short, and a client that
 * reads its bytes must not wait for the jobs of others.
 */
#include "engine.h"

#include "trace/probes.h"
#include "trace/ranges.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

enum { JOBS_PER_WAKE = 32 }; /* small jobs run on the loop before it serves the sockets again */

struct queue {
    struct shuf__engine_job *first, **end;
};

struct shuf__engine {
    struct shuf__engine_options options;
    uv_thread_t thread;
    uv_async_t wake; /* wakes the loop: a job is finished */

    struct shuf__backend *backend; /* written before `opened`, then constant */
    struct shuf__error error;

    /* on the loop's thread only */
    struct queue waiting;
    struct queue finished_on_loop;    /* `done` is not yet called */
    uint64_t queued;                  /* jobs that wait or run, without the urgent ones */
    size_t dispatched;                /* all jobs with the thread, until `done` */
    struct shuf__engine_job *running; /* the one of them that is not urgent */
    bool calling_done;
    bool progressed; /* see shuf__engine_progressed() */

    uv_mutex_t lock; /* for all fields below */
    uv_cond_t changed;
    struct queue for_thread, finished; /* the thread takes from one and adds to the other */
    bool opened, stop;
};

static void queue_init(struct queue *queue)
{
    queue->first = NULL;
    queue->end = &queue->first;
}

static void push(struct queue *queue, struct shuf__engine_job *job)
{
    job->next = NULL;
    *queue->end = job;
    queue->end = &job->next;
}

static struct shuf__engine_job *pop(struct queue *queue)
{
    struct shuf__engine_job *job = queue->first;
    if (job && !(queue->first = job->next))
        queue->end = &queue->first;
    return job;
}

/* False when the job is not in the queue. */
static bool withdraw(struct queue *queue, const struct shuf__engine_job *job)
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

/* ---- the engine's thread ---- */

static struct shuf__engine_job *next_dispatched(struct shuf__engine *engine)
{
    struct shuf__engine_job *job;
    uv_mutex_lock(&engine->lock);
    while (!(job = pop(&engine->for_thread)) && !engine->stop)
        uv_cond_wait(&engine->changed, &engine->lock);
    uv_mutex_unlock(&engine->lock);
    return job;
}

static void finish(struct shuf__engine *engine, struct shuf__engine_job *job)
{
    uv_mutex_lock(&engine->lock);
    push(&engine->finished, job);
    uv_mutex_unlock(&engine->lock);
    uv_async_send(&engine->wake);
}

static shuf_status open_backend(struct shuf__engine *engine)
{
    shuf_status status = shuf__backend_open(engine->options.backend, engine->options.threads,
                                            &engine->backend, &engine->error);
    engine->error.status = status;
    uv_mutex_lock(&engine->lock);
    engine->opened = true;
    uv_cond_signal(&engine->changed);
    uv_mutex_unlock(&engine->lock);
    return status;
}

static void drive(void *context)
{
    struct shuf__engine *engine = context;
    struct shuf__engine_job *job;
    if (open_backend(engine) != SHUF_OK)
        return;
    while ((job = next_dispatched(engine)) != NULL) {
        SHUF__RANGE_BEGIN(job->name);
        SHUF__PROBE(job_begin, job, job->name, job->urgent, 0);
        job->run(job, engine->backend);
        SHUF__PROBE(job_end, job, job->name, job->urgent, 0);
        SHUF__RANGE_END();
        finish(engine, job);
    }
    engine->backend->ops->close(engine->backend);
}

/* ---- the loop's thread ---- */

static void dispatch(struct shuf__engine *engine, struct shuf__engine_job *job)
{
    engine->dispatched++;
    uv_mutex_lock(&engine->lock);
    push(&engine->for_thread, job);
    uv_cond_signal(&engine->changed);
    uv_mutex_unlock(&engine->lock);
}

/* Finishes a job that the thread does not have. Its `done` is called from the loop, as for all
 * jobs. */
static void finish_on_loop(struct shuf__engine *engine, struct shuf__engine_job *job)
{
    engine->queued--;
    push(&engine->finished_on_loop, job);
    if (!engine->calling_done)
        uv_async_send(&engine->wake);
}

static bool run_on_loop(struct shuf__engine *engine, struct shuf__engine_job *job)
{
    bool over =
        engine->dispatched == 0 && job->run_on_loop && job->run_on_loop(job, engine->backend);
    engine->progressed |= over;
    return over;
}

/* Runs the next job on the loop or dispatches it to the thread, if the thread has none. */
static void start_next(struct shuf__engine *engine)
{
    struct shuf__engine_job *job;
    while (!engine->running && (job = pop(&engine->waiting)) != NULL) {
        job->started_ns = uv_hrtime();
        bool begun = !job->begin || job->begin(job);
        if (!begun || run_on_loop(engine, job)) {
            finish_on_loop(engine, job);
            return; /* call_done() starts the next job, after the sockets */
        }
        engine->running = job;
        dispatch(engine, job);
    }
}

static struct shuf__engine_job *collect(struct shuf__engine *engine)
{
    uv_mutex_lock(&engine->lock);
    struct shuf__engine_job *job = engine->finished.first;
    queue_init(&engine->finished);
    uv_mutex_unlock(&engine->lock);
    return job;
}

static void call_done_of_finished(struct shuf__engine *engine)
{
    struct shuf__engine_job *next, *job = collect(engine);
    for (; job; job = next) {
        next = job->next;
        engine->dispatched--;
        engine->progressed = true;
        if (!job->urgent) {
            engine->running = NULL;
            engine->queued--;
        }
        job->done(job);
    }
}

static void call_done(uv_async_t *wake)
{
    struct shuf__engine_job *job;
    struct shuf__engine *engine = wake->data;
    engine->calling_done = true;
    call_done_of_finished(engine);
    start_next(engine);
    for (int i = 0; i < JOBS_PER_WAKE && (job = pop(&engine->finished_on_loop)) != NULL; i++) {
        job->done(job);
        start_next(engine);
    }
    engine->calling_done = false;
    if (engine->finished_on_loop.first)
        uv_async_send(&engine->wake);
    if (shuf__engine_is_idle(engine))
        engine->options.idle(engine->options.context);
}

shuf_status shuf__engine_submit(struct shuf__engine *engine, struct shuf__engine_job *job,
                                struct shuf__error *error)
{
    if (engine->queued > engine->options.queue)
        return shuf__fail(error, SHUF_BUSY,
                          "queue %" PRIu64 ": the most jobs that may wait; try again later",
                          engine->options.queue);
    job->urgent = false;
    engine->queued++;
    push(&engine->waiting, job);
    start_next(engine);
    return SHUF_OK;
}

void shuf__engine_cancel(struct shuf__engine *engine, struct shuf__engine_job *job)
{
    atomic_store(&job->cancelled, true);
    if (withdraw(&engine->waiting, job))
        finish_on_loop(engine, job);
}

void shuf__engine_submit_urgent(struct shuf__engine *engine, struct shuf__engine_job *job)
{
    job->urgent = true;
    dispatch(engine, job);
}

bool shuf__engine_job_is_cancelled(void *job)
{
    struct shuf__engine_job *j = job;
    /* Many threads ask, and a write would take the cache line from the others. */
    if (!atomic_load_explicit(&j->polled, memory_order_relaxed))
        atomic_store_explicit(&j->polled, true, memory_order_relaxed);
    return atomic_load_explicit(&j->cancelled, memory_order_relaxed);
}

bool shuf__engine_progressed(struct shuf__engine *engine)
{
    bool polled = engine->running && atomic_exchange(&engine->running->polled, false);
    bool progressed = engine->progressed || polled;
    engine->progressed = false;
    return progressed;
}

struct shuf__backend *shuf__engine_borrow(struct shuf__engine *engine)
{
    return engine->dispatched == 0 && engine->queued == 0 ? engine->backend : NULL;
}

void shuf__engine_report(struct shuf__engine *engine, const struct shuf__error *error)
{
    if (error->status == SHUF_DEVICE)
        engine->options.device_failed(engine->options.context, error);
}

/* A `done` that is being called may submit more jobs. */
bool shuf__engine_is_idle(const struct shuf__engine *engine)
{
    return !engine->calling_done && engine->dispatched == 0 && engine->queued == 0 &&
           !engine->finished_on_loop.first;
}

uint64_t shuf__engine_queued(const struct shuf__engine *engine)
{
    return engine->queued;
}

struct shuf__backend *shuf__engine_backend(const struct shuf__engine *engine)
{
    return engine->backend;
}

static void free_engine(uv_handle_t *wake)
{
    struct shuf__engine *engine = wake->data;
    uv_cond_destroy(&engine->changed);
    uv_mutex_destroy(&engine->lock);
    free(engine);
}

static shuf_status await_open(struct shuf__engine *engine, struct shuf__error *error)
{
    uv_mutex_lock(&engine->lock);
    while (!engine->opened)
        uv_cond_wait(&engine->changed, &engine->lock);
    uv_mutex_unlock(&engine->lock);
    *error = engine->error;
    return error->status;
}

static shuf_status start_thread(struct shuf__engine *engine, struct shuf__error *error)
{
    int result = uv_thread_create(&engine->thread, drive, engine);
    if (result)
        return shuf__fail(error, SHUF_IO, "engine: thread: %s", uv_strerror(result));
    if (await_open(engine, error) == SHUF_OK)
        return SHUF_OK;
    uv_thread_join(&engine->thread);
    return error->status;
}

shuf_status shuf__engine_start(struct shuf__engine **out, uv_loop_t *loop,
                               const struct shuf__engine_options *options,
                               struct shuf__error *error)
{
    struct shuf__engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return shuf__fail(error, SHUF_NO_MEMORY, "engine: out of memory");
    engine->options = *options;
    queue_init(&engine->waiting);
    queue_init(&engine->finished_on_loop);
    queue_init(&engine->for_thread);
    queue_init(&engine->finished);
    int result;
    if ((result = uv_mutex_init(&engine->lock)) != 0)
        goto free_memory;
    if ((result = uv_cond_init(&engine->changed)) != 0)
        goto destroy_lock;
    if ((result = uv_async_init(loop, &engine->wake, call_done)) != 0)
        goto destroy_cond;
    engine->wake.data = engine;
    if (start_thread(engine, error)) {
        uv_close((uv_handle_t *)&engine->wake, free_engine);
        return error->status;
    }
    *out = engine;
    return SHUF_OK;
destroy_cond:
    uv_cond_destroy(&engine->changed);
destroy_lock:
    uv_mutex_destroy(&engine->lock);
free_memory:
    free(engine);
    return shuf__fail(error, SHUF_IO, "engine: %s", uv_strerror(result));
}

void shuf__engine_stop(struct shuf__engine *engine)
{
    assert(shuf__engine_is_idle(engine));
    uv_mutex_lock(&engine->lock);
    engine->stop = true;
    uv_cond_signal(&engine->changed);
    uv_mutex_unlock(&engine->lock);
    uv_thread_join(&engine->thread);
    uv_close((uv_handle_t *)&engine->wake, free_engine);
}
