/* SPDX-License-Identifier: MIT
 *
 * See engine.h. Follow-ups overtake jobs, which wait on the loop's side: they are short,
 * each session has two at most, and a client that takes its bytes should not wait
 * behind others' work.
 */
#include "engine.h"

#include <assert.h>
#include <stdlib.h>

enum { TURN_JOBS = 32 }; /* small jobs done here before the sockets have their turn */

struct queue {
    struct shuf__engine_job *first, **end;
};

struct shuf__engine {
    struct shuf__engine_options options;
    uv_thread_t thread;
    uv_async_t wake; /* the loop: something is finished */

    struct shuf__backend *backend; /* written before `opened`, then constant */
    struct shuf__error error;

    /* the loop's thread alone */
    struct queue jobs, ended; /* waiting; over without the thread, `done` not yet called */
    uint64_t queued;          /* jobs waiting or running */
    size_t given;             /* tasks with the thread, or finished and not yet done */
    bool busy;                /* one of them is a job */
    bool delivering;

    uv_mutex_t lock; /* for all below */
    uv_cond_t changed;
    struct queue taken, finished;
    bool opened, stop;
};

static void queue_init(struct queue *queue)
{
    queue->first = NULL;
    queue->end = &queue->first;
}

static void push(struct queue *queue, struct shuf__engine_job *task)
{
    task->next = NULL;
    *queue->end = task;
    queue->end = &task->next;
}

static struct shuf__engine_job *pop(struct queue *queue)
{
    struct shuf__engine_job *task = queue->first;
    if (task && !(queue->first = task->next))
        queue->end = &queue->first;
    return task;
}

/* False when it is not in the queue. */
static bool withdraw(struct queue *queue, const struct shuf__engine_job *task)
{
    struct shuf__engine_job **at = &queue->first;
    while (*at && *at != task)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = task->next;
    if (!*at)
        queue->end = at;
    return true;
}

/* ---- the engine's thread ---- */

static struct shuf__engine_job *take(struct shuf__engine *engine)
{
    struct shuf__engine_job *task;
    uv_mutex_lock(&engine->lock);
    while (!(task = pop(&engine->taken)) && !engine->stop)
        uv_cond_wait(&engine->changed, &engine->lock);
    uv_mutex_unlock(&engine->lock);
    return task;
}

static void finish(struct shuf__engine *engine, struct shuf__engine_job *task)
{
    uv_mutex_lock(&engine->lock);
    push(&engine->finished, task);
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
    struct shuf__engine_job *task;
    if (open_backend(engine) != SHUF_OK)
        return;
    while ((task = take(engine)) != NULL) {
        task->run(task, engine->backend);
        finish(engine, task);
    }
    engine->backend->ops->close(engine->backend);
}

/* ---- the loop's thread ---- */

static void give(struct shuf__engine *engine, struct shuf__engine_job *task)
{
    engine->given++;
    uv_mutex_lock(&engine->lock);
    push(&engine->taken, task);
    uv_cond_signal(&engine->changed);
    uv_mutex_unlock(&engine->lock);
}

/* A job that the thread has not seen, or not to its end. Its `done` is called from the loop like
 * everybody's. */
static void end_here(struct shuf__engine *engine, struct shuf__engine_job *task)
{
    engine->queued--;
    push(&engine->ended, task);
    if (!engine->delivering)
        uv_async_send(&engine->wake);
}

/* Gives the thread the next job, where it has none and the job is not done here. */
static void start_next(struct shuf__engine *engine)
{
    struct shuf__engine_job *task;
    while (!engine->busy && (task = pop(&engine->jobs)) != NULL) {
        bool begun = !task->begin || task->begin(task);
        if (!begun ||
            (engine->given == 0 && task->run_on_loop && task->run_on_loop(task, engine->backend))) {
            end_here(engine, task);
            return; /* deliver() goes on: others have their turn in between */
        }
        engine->busy = true;
        give(engine, task);
    }
}

static struct shuf__engine_job *collect(struct shuf__engine *engine)
{
    uv_mutex_lock(&engine->lock);
    struct shuf__engine_job *task = engine->finished.first;
    queue_init(&engine->finished);
    uv_mutex_unlock(&engine->lock);
    return task;
}

static void end_finished(struct shuf__engine *engine)
{
    struct shuf__engine_job *next, *task = collect(engine);
    for (; task; task = next) {
        next = task->next;
        engine->given--;
        if (task->job) {
            engine->busy = false;
            engine->queued--;
        }
        task->done(task);
    }
}

static void deliver(uv_async_t *wake)
{
    struct shuf__engine_job *task;
    struct shuf__engine *engine = wake->data;
    engine->delivering = true;
    end_finished(engine);
    start_next(engine);
    for (int i = 0; i < TURN_JOBS && (task = pop(&engine->ended)) != NULL; i++) {
        task->done(task);
        start_next(engine);
    }
    engine->delivering = false;
    if (engine->ended.first)
        uv_async_send(&engine->wake);
    if (shuf__engine_is_idle(engine))
        engine->options.idle(engine->options.context);
}

bool shuf__engine_submit(struct shuf__engine *engine, struct shuf__engine_job *task)
{
    if (engine->queued > engine->options.queue)
        return false;
    task->job = true;
    engine->queued++;
    push(&engine->jobs, task);
    start_next(engine);
    return true;
}

void shuf__engine_cancel(struct shuf__engine *engine, struct shuf__engine_job *task)
{
    atomic_store(&task->cancelled, true);
    if (withdraw(&engine->jobs, task))
        end_here(engine, task);
}

void shuf__engine_follow_up(struct shuf__engine *engine, struct shuf__engine_job *task)
{
    task->job = false;
    give(engine, task);
}

struct shuf__backend *shuf__engine_borrow(struct shuf__engine *engine)
{
    return engine->given == 0 && engine->queued == 0 ? engine->backend : NULL;
}

/* What `done` is at work on may have more to give. */
bool shuf__engine_is_idle(const struct shuf__engine *engine)
{
    return !engine->delivering && engine->given == 0 && engine->queued == 0 && !engine->ended.first;
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
    queue_init(&engine->jobs);
    queue_init(&engine->ended);
    queue_init(&engine->taken);
    queue_init(&engine->finished);
    int result;
    if ((result = uv_mutex_init(&engine->lock)) != 0)
        goto free_memory;
    if ((result = uv_cond_init(&engine->changed)) != 0)
        goto destroy_lock;
    if ((result = uv_async_init(loop, &engine->wake, deliver)) != 0)
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
