/* SPDX-License-Identifier: MIT
 *
 * See lane.h.
 */
#include "lane.h"

#include "trace/trace.h"

#include <stdlib.h>

/* ---- A lane's thread ---- */

static struct shuf__engine_job *next_job(struct shuf__lane *lane)
{
    struct shuf__engine_job *job;
    uv_mutex_lock(&lane->lanes->lock);
    while (!(job = shuf__job_queue_pop(&lane->jobs)) && !lane->stop)
        uv_cond_wait(&lane->changed, &lane->lanes->lock);
    uv_mutex_unlock(&lane->lanes->lock);
    return job;
}

static void finish(struct shuf__lanes *lanes, struct shuf__engine_job *job)
{
    uv_mutex_lock(&lanes->lock);
    shuf__job_queue_push(&lanes->finished, job);
    uv_mutex_unlock(&lanes->lock);
    uv_async_send(lanes->wake);
}

static bool open_backend(struct shuf__lane *lane)
{
    struct shuf__lanes *lanes = lane->lanes;
    struct shuf__error error = {0};
    const shuf_status status =
        shuf__backend_open(lanes->backend, lanes->threads, &lane->backend, &error);
    uv_mutex_lock(&lanes->lock);
    lane->state = status ? SHUF__LANE_FAILED : SHUF__LANE_OPEN;
    lane->error = error;
    uv_cond_signal(&lane->changed);
    uv_mutex_unlock(&lanes->lock);
    uv_async_send(lanes->wake);
    return status == SHUF_OK;
}

static void run(struct shuf__lane *lane, struct shuf__engine_job *job)
{
    SHUF__RANGE_BEGIN(job->name);
    SHUF__PROBE(job_begin, job, job->name, job->urgent, 0);
    job->run(job, job->backend ? job->backend : lane->backend);
    SHUF__PROBE(job_end, job, job->name, job->urgent, 0);
    SHUF__RANGE_END();
    finish(lane->lanes, job);
}

static void drive(void *context)
{
    struct shuf__lane *lane = context;
    struct shuf__engine_job *job;
    if (!open_backend(lane))
        return;
    while ((job = next_job(lane)) != NULL)
        run(lane, job);
    lane->backend->ops->close(lane->backend);
}

/* A thread of a job calls it. Returns when the job is no longer paused, or is cancelled.
 * A pause begins when the first thread of the job waits here, and ends when the last one leaves. */
static void wait_paused(struct shuf__lanes *lanes, struct shuf__engine_job *job)
{
    uv_mutex_lock(&lanes->lock);
    if (job->pausing++ == 0) {
        job->pause_begin_ns = uv_hrtime();
        uv_async_send(lanes->wake);
    }
    while (atomic_load(&job->paused) && !atomic_load(&job->cancelled))
        uv_cond_wait(&lanes->resumed, &lanes->lock);
    if (--job->pausing == 0)
        job->paused_ns += uv_hrtime() - job->pause_begin_ns;
    uv_mutex_unlock(&lanes->lock);
}

bool shuf__engine_job_is_cancelled(void *job)
{
    struct shuf__engine_job *j = job;
    /* Many threads call this function, and a write takes the cache line from the other threads. So
     * it writes only if the value changes. */
    if (!atomic_load_explicit(&j->polled, memory_order_relaxed))
        atomic_store_explicit(&j->polled, true, memory_order_relaxed);
    if (atomic_load_explicit(&j->paused, memory_order_relaxed))
        wait_paused(j->lanes, j);
    return atomic_load_explicit(&j->cancelled, memory_order_relaxed);
}

/* ---- The loop's thread ---- */

shuf_status shuf__lanes_init(struct shuf__lanes *lanes, struct shuf__error *error)
{
    int result = uv_mutex_init(&lanes->lock);
    shuf__job_queue_init(&lanes->finished);
    lanes->most = SHUF__LANES;
    if (result == 0 && (result = uv_cond_init(&lanes->resumed)) != 0)
        uv_mutex_destroy(&lanes->lock);
    return result ? shuf__fail(error, SHUF_IO, "engine: %s", uv_strerror(result)) : SHUF_OK;
}

void shuf__lanes_destroy(struct shuf__lanes *lanes)
{
    uv_cond_destroy(&lanes->resumed);
    uv_mutex_destroy(&lanes->lock);
}

struct shuf__lane *shuf__lane_start(struct shuf__lanes *lanes, struct shuf__error *error)
{
    struct shuf__lane *lane = calloc(1, sizeof *lane);
    int result = UV_ENOMEM;
    if (lane && (result = uv_cond_init(&lane->changed)) == 0) {
        lane->lanes = lanes;
        lane->start_ns = uv_hrtime();
        shuf__job_queue_init(&lane->jobs);
        if ((result = uv_thread_create(&lane->thread, drive, lane)) == 0)
            return lane;
        uv_cond_destroy(&lane->changed);
    }
    free(lane);
    shuf__fail(error, SHUF_IO,
               "engine: thread: %s; raise the limits of processes (ulimit -u, pids.max, TasksMax= "
               "of the unit) and of memory (ulimit -v)",
               uv_strerror(result));
    return NULL;
}

void shuf__lane_stop(struct shuf__lane *lane)
{
    uv_mutex_lock(&lane->lanes->lock);
    lane->stop = true;
    uv_cond_signal(&lane->changed);
    uv_mutex_unlock(&lane->lanes->lock);
    uv_thread_join(&lane->thread);
    uv_cond_destroy(&lane->changed);
    free(lane);
}

shuf_status shuf__lane_await(struct shuf__lane *lane, struct shuf__error *error)
{
    uv_mutex_lock(&lane->lanes->lock);
    while (lane->state == SHUF__LANE_OPENING)
        uv_cond_wait(&lane->changed, &lane->lanes->lock);
    if (lane->state == SHUF__LANE_FAILED)
        *error = lane->error;
    uv_mutex_unlock(&lane->lanes->lock);
    return lane->state == SHUF__LANE_OPEN ? SHUF_OK : error->status;
}

void shuf__lane_dispatch(struct shuf__lane *lane, struct shuf__engine_job *job,
                         struct shuf__backend *backend)
{
    job->backend = backend;
    uv_mutex_lock(&lane->lanes->lock);
    shuf__job_queue_push(&lane->jobs, job);
    uv_cond_signal(&lane->changed);
    uv_mutex_unlock(&lane->lanes->lock);
}

struct shuf__engine_job *shuf__lanes_collect(struct shuf__lanes *lanes)
{
    uv_mutex_lock(&lanes->lock);
    struct shuf__engine_job *job = lanes->finished.first;
    shuf__job_queue_init(&lanes->finished);
    uv_mutex_unlock(&lanes->lock);
    return job;
}

void shuf__lanes_resume(struct shuf__lanes *lanes)
{
    uv_mutex_lock(&lanes->lock);
    uv_cond_broadcast(&lanes->resumed);
    uv_mutex_unlock(&lanes->lock);
}

bool shuf__lanes_has_paused(struct shuf__lanes *lanes, const struct shuf__engine_job *job)
{
    uv_mutex_lock(&lanes->lock);
    const bool paused = job->pausing > 0;
    uv_mutex_unlock(&lanes->lock);
    return paused;
}

/* ---- The set, on the loop's thread ---- */

static enum shuf__lane_state state_of(struct shuf__lane *lane)
{
    uv_mutex_lock(&lane->lanes->lock);
    const enum shuf__lane_state state = lane->state;
    uv_mutex_unlock(&lane->lanes->lock);
    return state;
}

static void close_lane(struct shuf__lanes *lanes, unsigned i)
{
    shuf__lane_stop(lanes->lane[i]);
    lanes->lane[i] = lanes->lane[--lanes->count];
}

static struct shuf__lane *open_lane(struct shuf__lanes *lanes, struct shuf__error *error)
{
    struct shuf__lane *lane = shuf__lane_start(lanes, error);
    if (lane)
        lanes->lane[lanes->count++] = lane;
    return lane;
}

shuf_status shuf__lanes_open_first(struct shuf__lanes *lanes, struct shuf__error *error)
{
    struct shuf__lane *lane = open_lane(lanes, error);
    return lane ? shuf__lane_await(lane, error) : error->status;
}

/* Closes lanes whose backend could not be opened. The device has no room for more backends, so no
 * more lanes are opened from now on. */
static void close_failed(struct shuf__lanes *lanes)
{
    for (unsigned i = lanes->count; i-- > 0;)
        if (state_of(lanes->lane[i]) == SHUF__LANE_FAILED) {
            close_lane(lanes, i);
            lanes->most = lanes->count;
        }
}

struct shuf__lane *shuf__lanes_find_free(struct shuf__lanes *lanes)
{
    struct shuf__error ignored;
    bool opening = false;
    close_failed(lanes);
    for (unsigned i = 0; i < lanes->count; i++) {
        const bool open = state_of(lanes->lane[i]) == SHUF__LANE_OPEN;
        if (open && !lanes->lane[i]->job)
            return lanes->lane[i];
        opening |= !open;
    }
    if (!opening && lanes->count < lanes->most)
        open_lane(lanes, &ignored);
    return NULL;
}

bool shuf__lanes_open_slowly(struct shuf__lanes *lanes, uint64_t nanoseconds)
{
    const uint64_t now = uv_hrtime();
    for (unsigned i = 0; i < lanes->count; i++)
        if (state_of(lanes->lane[i]) == SHUF__LANE_OPENING &&
            now - lanes->lane[i]->start_ns >= nanoseconds)
            return true;
    return false;
}

void shuf__lanes_close_spare(struct shuf__lanes *lanes)
{
    unsigned spare = 0;
    for (unsigned i = lanes->count; i-- > 0;) {
        struct shuf__lane *lane = lanes->lane[i];
        if (!lane->job && state_of(lane) == SHUF__LANE_OPEN && ++spare > SHUF__LANES_KEPT)
            close_lane(lanes, i);
    }
}

void shuf__lanes_close(struct shuf__lanes *lanes)
{
    while (lanes->count > 0)
        close_lane(lanes, lanes->count - 1);
}
