/* SPDX-License-Identifier: MIT
 *
 * See engine.h.
 */
#include "engine.h"

#include "lane.h"
#include "trace/trace.h"
#include "turns.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- The holder of the device ---- */

#define MS UINT64_C(1000000)

/* The next job waits no longer than this for a job that is told to pause. */
enum { HAND_OVER_DEVICE_MS = 40 };

/* The job that has the device, and its turn. A GPU completes the work that a job has launched, even
 * if the job is told to pause. So the job keeps the device until it has paused or ended, but at
 * most 40 ms longer. If the next job began at once, its work would wait on the GPU for that of all
 * paused jobs. On a CPU the next job begins at once, and the operating system divides the
 * processors. */
struct holder {
    const struct shuf__turns *turns;
    struct shuf__lanes *lanes;
    uint64_t turn_ns;                 /* length of a turn while other users wait */
    uint64_t hand_over_ns;            /* longest wait for a job that is told to pause */
    struct shuf__engine_job *running; /* NULL: none, or `leaving` has the device */
    struct shuf__engine_job *leaving; /* is told to pause, and still uses the device; or NULL */
    uint64_t begin_ns;                /* when the turn began */
    uint64_t leave_until_ns;
};

/* The job that has the device: `running` or `leaving`. NULL: none. */
static struct shuf__engine_job *job_on_device(const struct holder *holder)
{
    return holder->running ? holder->running : holder->leaving;
}

/* `on_host`: the device is the CPU. */
static void init_holder(struct holder *holder, const struct shuf__turns *turns,
                        struct shuf__lanes *lanes, bool on_host)
{
    *holder = (struct holder){
        .turns = turns,
        .lanes = lanes,
        .turn_ns = (on_host ? SHUF__TURN_HOST_MS : SHUF__TURN_DEVICE_MS) * MS,
        .hand_over_ns = on_host ? 0 : HAND_OVER_DEVICE_MS * MS,
    };
}

static void begin_turn(struct holder *holder)
{
    holder->begin_ns = uv_hrtime();
}

/* Charges the time since the turn began to the user, and begins another turn. */
static void end_turn(struct holder *holder, struct shuf__turn_user *user)
{
    const uint64_t now = uv_hrtime();
    user->virtual_ns += now - holder->begin_ns;
    holder->begin_ns = now;
}

/* The rest of the running job's turn, in nanoseconds; UINT64_MAX: no other user waits. */
static uint64_t time_left(const struct holder *holder)
{
    const uint64_t used = uv_hrtime() - holder->begin_ns;
    if (!shuf__turns_has_others(holder->turns, holder->running->user, true))
        return UINT64_MAX;
    return used < holder->turn_ns ? holder->turn_ns - used : 0;
}

/* Tells the running job to pause. */
static void pause_running(struct holder *holder)
{
    atomic_store(&holder->running->paused, true);
    holder->leaving = holder->running;
    holder->leave_until_ns = uv_hrtime() + holder->hand_over_ns;
    holder->running = NULL;
}

/* The time until now is part of the job's turn. */
static void end_leaving(struct holder *holder)
{
    end_turn(holder, holder->leaving->user);
    holder->leaving = NULL;
}

/* Takes the device from a job that has paused, or had the time to. Returns 0 if the next job may
 * begin, or the longest time until it may, in nanoseconds. A lane wakes the loop when its job has
 * paused or ended: then call it again. */
static uint64_t take_from_leaving(struct holder *holder)
{
    const uint64_t now = uv_hrtime();
    if (!holder->leaving)
        return 0;
    if (now < holder->leave_until_ns && !shuf__lanes_has_paused(holder->lanes, holder->leaving))
        return holder->leave_until_ns - now;
    end_leaving(holder);
    return 0;
}

/* The job has ended, or leaves its lane for another reason. */
static void forget_in_holder(struct holder *holder, const struct shuf__engine_job *job)
{
    if (holder->leaving == job)
        end_leaving(holder);
    if (holder->running != job)
        return;
    end_turn(holder, job->user);
    holder->running = NULL;
}

/* ---- The engine ---- */

enum {
    JOBS_PER_WAKE = 32,   /* ends of jobs, before the loop serves the sockets again, */
    NS_PER_WAKE = 100000, /* and their time, except for one that is longer */
};

struct shuf__engine {
    struct shuf__engine_options options;
    struct shuf__engine *next; /* see shuf__engine_next() */
    /* Has the loop's backend and the urgent lane: another engine of the same device, or this one.
     */
    struct shuf__engine *base;
    uv_async_t wake; /* the lanes use it to wake the loop */
    uv_timer_t turn_timer;
    int handles; /* number of handles that are not closed */
    struct shuf__lanes lanes;
    struct shuf__backend *backend;         /* of the loop's thread */
    struct shuf__engine_job *launched_job; /* uses `backend` until it is done, or NULL */
    struct shuf__lane *urgent;

    struct shuf__turns turns;
    struct holder holder;                    /* the job that has the device */
    struct shuf__job_queue finished_on_loop; /* `done` is not yet called */
    struct shuf__job_queue finished_urgent;  /* in the urgent lane; `done` is not yet called */
    uint64_t queued;                         /* jobs that wait or run, without the urgent ones */
    size_t dispatched;                       /* jobs that a lane runs or has run, until `done` */
    bool calling_done;
    bool progressed; /* see shuf__engine_progressed() */
};

static void dispatch(struct shuf__engine *engine, struct shuf__lane *lane,
                     struct shuf__engine_job *job, struct shuf__backend *backend)
{
    engine->dispatched++;
    atomic_store(&job->paused, false);
    job->lanes = &engine->lanes;
    job->lane = lane;
    shuf__lane_dispatch(lane, job, backend);
}

/* ---- Turns ---- */

static void resume(struct shuf__engine *engine, struct shuf__engine_job *job)
{
    atomic_store(&job->paused, false);
    shuf__lanes_resume(&engine->lanes);
    engine->holder.running = job;
}

/* Finishes a job that no lane has. As for all jobs, the loop calls its `done` later. Its user may
 * be forgotten before. */
static void finish_on_loop(struct shuf__engine *engine, struct shuf__engine_job *job)
{
    engine->queued--;
    job->user = NULL;
    shuf__job_queue_push(&engine->finished_on_loop, job);
    if (!engine->calling_done)
        uv_async_send(&engine->wake);
}

static enum shuf__loop_result run_on_loop(struct shuf__engine *engine, struct shuf__engine_job *job)
{
    if (!job->run_on_loop || engine->base->launched_job)
        return SHUF__LOOP_NOTHING;
    const enum shuf__loop_result result = job->run_on_loop(job, engine->base->backend);
    engine->progressed |= result == SHUF__LOOP_COMPLETE;
    return result;
}

static void run_in_lane(struct shuf__engine *engine, struct shuf__engine_job *job,
                        struct shuf__lane *lane, bool launched)
{
    lane->job = job->user->active = engine->holder.running = job;
    if (launched)
        engine->base->launched_job = job;
    dispatch(engine, lane, job, launched ? engine->base->backend : NULL);
}

/* The user's jobs wait for shuf__engine_begin_again(). Meanwhile other users have their turns. */
static void begin_later(struct shuf__engine *engine, struct shuf__engine_job *job)
{
    job->started_ns = 0;
    job->user->count++;
    job->user->waits = true;
    shuf__job_queue_push_first(&job->user->waiting, job);
    uv_async_send(&engine->wake);
}

/* Begins the user's next job. False if no lane runs it: it is over already, or waits again. Then
 * call_done() begins another job after the loop has served the sockets. */
static bool begin_job(struct shuf__engine *engine, struct shuf__turn_user *user,
                      struct shuf__lane *lane)
{
    struct shuf__engine_job *job = shuf__job_queue_pop(&user->waiting);
    enum shuf__loop_result result = SHUF__LOOP_COMPLETE;
    user->count--;
    job->started_ns = uv_hrtime();
    const enum shuf__begin begin = job->begin ? job->begin(job) : SHUF__BEGIN_DONE;
    if (begin == SHUF__BEGIN_DONE)
        result = run_on_loop(engine, job);
    if (result != SHUF__LOOP_COMPLETE) {
        run_in_lane(engine, job, lane, result == SHUF__LOOP_LAUNCHED);
        return true;
    }
    if (begin == SHUF__BEGIN_LATER)
        begin_later(engine, job);
    else
        finish_on_loop(engine, job);
    end_turn(&engine->holder, user);
    return false;
}

static void start_timer(struct shuf__engine *engine, uint64_t ns)
{
    uv_timer_start(&engine->turn_timer, engine->turn_timer.timer_cb, ns / 1000000 + 1, 0);
}

/* Whether the running job's turn goes on. If another user waits, starts the timer for its end. If
 * another user comes later, shuf__engine_submit() starts the timer. */
static bool turn_goes_on(struct shuf__engine *engine)
{
    const uint64_t left = time_left(&engine->holder);
    if (left > 0 && left != UINT64_MAX)
        start_timer(engine, left);
    return left > 0;
}

/* False: the next job still waits for the one that was told to pause. The timer ends this wait. */
static bool try_hand_over(struct shuf__engine *engine)
{
    const uint64_t left = take_from_leaving(&engine->holder);
    if (left > 0)
        start_timer(engine, left);
    return left == 0;
}

/* Pauses the running job, if a job of another user can run. False: a job still has the device.
 * Without a free lane, waiting jobs cannot run: the engine schedules again when a lane opens or a
 * job ends. */
static bool try_pause(struct shuf__engine *engine, bool may_begin)
{
    const struct shuf__turn_user *user = engine->holder.running->user;
    if (!shuf__turns_has_others(&engine->turns, user, may_begin))
        return false;
    pause_running(&engine->holder);
    return try_hand_over(engine);
}

/* Gives the device to the user whose turn it is. A lane begins to open before the running job
 * pauses. */
static void schedule(struct shuf__engine *engine)
{
    if (!try_hand_over(engine) || (engine->holder.running && turn_goes_on(engine)))
        return;
    struct shuf__lane *lane = shuf__lanes_find_free(&engine->lanes);
    if (engine->holder.running && !try_pause(engine, lane != NULL))
        return;
    struct shuf__turn_user *user = shuf__turns_next(&engine->turns, lane != NULL);
    begin_turn(&engine->holder);
    if (!user)
        return;
    if (user->active)
        resume(engine, user->active);
    else if (!begin_job(engine, user, lane))
        return;
    if (!turn_goes_on(engine))
        start_timer(engine, 0); /* a slow begin has used the turn */
}

static void on_turn_end(uv_timer_t *timer)
{
    schedule(timer->data);
}

/* ---- The end of jobs ---- */

/* The job may not be the running one: a job that is cancelled in a pause ends while another job
 * runs. A job that ends before it asks never notices its pause. */
static void leave_lane(struct shuf__engine *engine, struct shuf__engine_job *job)
{
    atomic_store(&job->paused, false);
    forget_in_holder(&engine->holder, job);
    if (job->user->active == job)
        job->user->active = NULL;
    if (job->lane->job == job)
        job->lane->job = NULL;
    engine->queued--;
}

static void call_done_in_lane(struct shuf__engine *engine, struct shuf__engine_job *job)
{
    engine->dispatched--;
    engine->progressed = true;
    if (engine->base->launched_job == job)
        engine->base->launched_job = NULL;
    if (!job->urgent)
        leave_lane(engine, job);
    job->done(job);
}

/* There may be thousands of urgent jobs, which free blocks. */
static void call_done_of_finished(struct shuf__engine *engine)
{
    struct shuf__engine_job *next, *job = shuf__lanes_collect(&engine->lanes);
    for (; job; job = next) {
        next = job->next;
        if (job->urgent)
            shuf__job_queue_push(&engine->finished_urgent, job);
        else
            call_done_in_lane(engine, job);
    }
    for (int i = 0;
         i < JOBS_PER_WAKE && (job = shuf__job_queue_pop(&engine->finished_urgent)) != NULL; i++)
        call_done_in_lane(engine, job);
}

static void call_done(uv_async_t *wake)
{
    struct shuf__engine_job *job;
    struct shuf__engine *engine = wake->data;
    engine->calling_done = true;
    call_done_of_finished(engine);
    schedule(engine);
    const uint64_t end = uv_hrtime() + NS_PER_WAKE;
    for (int i = 0; i < JOBS_PER_WAKE && (i == 0 || uv_hrtime() < end) &&
                    (job = shuf__job_queue_pop(&engine->finished_on_loop)) != NULL;
         i++) {
        job->done(job);
        schedule(engine);
    }
    engine->calling_done = false;
    shuf__turns_forget_idle(&engine->turns);
    shuf__lanes_close_spare(&engine->lanes);
    if (engine->finished_on_loop.first || engine->finished_urgent.first)
        uv_async_send(&engine->wake);
    if (shuf__engine_is_idle(engine))
        engine->options.idle(engine->options.context);
}

/* ---- Jobs ---- */

shuf_status shuf__engine_submit(struct shuf__engine *engine, struct shuf__engine_job *job,
                                struct shuf__error *error)
{
    struct shuf__turn_user *user = shuf__turns_user(&engine->turns, job->uid);
    if (!user)
        return shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
    if (user->count >= engine->options.queue + !user->active)
        return shuf__fail(error, SHUF_BUSY,
                          "queue %" PRIu64
                          ": the most jobs of a user that may wait; try again later",
                          engine->options.queue);
    job->engine = engine;
    job->urgent = false;
    job->user = user;
    engine->queued++;
    user->count++;
    shuf__job_queue_push(&user->waiting, job);
    schedule(engine);
    return SHUF_OK;
}

void shuf__engine_begin_again(struct shuf__engine *engine)
{
    shuf__turns_end_waits(&engine->turns);
    if (!engine->calling_done) /* call_done() schedules once for all ends of jobs */
        schedule(engine);
}

void shuf__engine_cancel(struct shuf__engine_job *job)
{
    struct shuf__engine *engine = job->engine;
    atomic_store(&job->cancelled, true);
    if (job->user && shuf__job_queue_withdraw(&job->user->waiting, job)) {
        job->user->count--;
        finish_on_loop(engine, job);
    } else {
        shuf__lanes_resume(&engine->lanes);
    }
}

void shuf__engine_submit_urgent(struct shuf__engine *engine, struct shuf__engine_job *job)
{
    assert(engine->urgent);
    job->engine = engine;
    job->urgent = true;
    dispatch(engine, engine->urgent, job, NULL);
}

void shuf__engine_continue(struct shuf__engine_job *job)
{
    struct shuf__engine *engine = job->engine;
    assert(!job->lane->job && !job->user->active);
    engine->queued++;
    job->lane->job = job->user->active = job;
    if (!job_on_device(&engine->holder))
        engine->holder.running = job;
    dispatch(engine, job->lane, job, job->backend);
}

void shuf__engine_hand_over(struct shuf__engine *engine, struct shuf__engine_job *job)
{
    struct shuf__engine *base = engine->base;
    assert(!base->launched_job);
    base->launched_job = job;
    job->engine = base;
    job->urgent = true;
    dispatch(base, base->urgent, job, base->backend);
}

bool shuf__engine_progressed(struct shuf__engine *engine, uint64_t open_ns)
{
    struct shuf__engine_job *job = job_on_device(&engine->holder);
    bool polled = job && (atomic_exchange(&job->polled, false) || job->may_wait_for_client);
    bool progressed = engine->progressed || polled;
    engine->progressed = false;
    return progressed && !shuf__lanes_open_slowly(&engine->lanes, open_ns);
}

struct shuf__backend *shuf__engine_borrow(struct shuf__engine *engine)
{
    return engine->base->launched_job ? NULL : engine->base->backend;
}

void shuf__engine_report(struct shuf__engine *engine, const struct shuf__error *error)
{
    if (error->status == SHUF_DEVICE)
        engine->options.device_failed(engine->options.context, error);
}

/* While a `done` is called the engine is not idle, because `done` may submit more jobs. */
bool shuf__engine_is_idle(const struct shuf__engine *engine)
{
    return !engine->calling_done && engine->dispatched == 0 && engine->queued == 0 &&
           !engine->finished_on_loop.first;
}

uint64_t shuf__engine_queued(const struct shuf__engine *engine)
{
    return engine->queued;
}

uint64_t shuf__engine_ahead(const struct shuf__engine *engine, uint32_t uid)
{
    return shuf__turns_ahead(&engine->turns, uid);
}

struct shuf__engine *shuf__engine_next(const struct shuf__engine *engine)
{
    return engine->next;
}

struct shuf__backend *shuf__engine_backend(const struct shuf__engine *engine)
{
    return engine->base->backend;
}

/* ---- Start and stop ---- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct shuf__engine *engine = handle->data;
    if (--engine->handles > 0)
        return;
    shuf__lanes_destroy(&engine->lanes);
    free(engine);
}

static void close_handles(struct shuf__engine *engine)
{
    uv_close((uv_handle_t *)&engine->wake, on_handle_closed);
    uv_close((uv_handle_t *)&engine->turn_timer, on_handle_closed);
}

static void close_everything(struct shuf__engine *engine)
{
    shuf__lanes_close(&engine->lanes);
    if (engine->urgent)
        shuf__lane_stop(engine->urgent);
    if (engine->backend)
        engine->backend->ops->close(engine->backend);
    close_handles(engine);
}

/* All lanes open the same device as the loop. */
static shuf_status open_lanes(struct shuf__engine *engine, struct shuf__error *error)
{
    const char *spec = engine->options.backend;
    SHUF__RANGES_INIT();
    init_holder(&engine->holder, &engine->turns, &engine->lanes,
                shuf__memory_is_host(shuf__engine_backend(engine)->ops->own));
    engine->lanes.backend =
        strcmp(spec, "auto") == 0 ? shuf__engine_backend(engine)->ops->name : spec;
    if (engine->base == engine && (!(engine->urgent = shuf__lane_start(&engine->lanes, error)) ||
                                   shuf__lane_await(engine->urgent, error)))
        return error->status;
    return shuf__lanes_open_first(&engine->lanes, error);
}

static shuf_status init_handles(struct shuf__engine *engine, uv_loop_t *loop,
                                struct shuf__error *error)
{
    const int result = uv_async_init(loop, &engine->wake, call_done);
    if (result)
        return shuf__fail(error, SHUF_IO, "engine: %s", uv_strerror(result));
    uv_timer_init(loop, &engine->turn_timer);
    engine->turn_timer.timer_cb = on_turn_end;
    engine->turn_timer.data = engine->wake.data = engine;
    engine->handles = 2;
    return SHUF_OK;
}

static struct shuf__engine *make_engine(const struct shuf__engine_options *options, uv_loop_t *loop,
                                        struct shuf__error *error)
{
    struct shuf__engine *engine = calloc(1, sizeof *engine);
    if (!engine) {
        shuf__fail(error, SHUF_NO_MEMORY, "engine: out of memory");
        return NULL;
    }
    engine->options = *options;
    engine->lanes.threads = options->threads;
    engine->lanes.wake = &engine->wake;
    shuf__job_queue_init(&engine->finished_on_loop);
    shuf__job_queue_init(&engine->finished_urgent);
    shuf__turns_init(&engine->turns);
    if (shuf__lanes_init(&engine->lanes, error) == SHUF_OK) {
        if (init_handles(engine, loop, error) == SHUF_OK)
            return engine;
        shuf__lanes_destroy(&engine->lanes);
    }
    free(engine);
    return NULL;
}

/* `base` NULL: the engine is its own. */
static shuf_status start(struct shuf__engine **out, struct shuf__engine *base, uv_loop_t *loop,
                         const struct shuf__engine_options *options, struct shuf__error *error)
{
    struct shuf__error failed;
    shuf_status status = SHUF_OK;
    struct shuf__engine *engine = make_engine(options, loop, error);
    if (!engine)
        return error->status;
    engine->base = base ? base : engine;
    if (!base)
        status = shuf__backend_open(options->backend, options->threads, &engine->backend, error);
    if (status == SHUF_OK && (status = open_lanes(engine, &failed)) != SHUF_OK)
        *error = failed;
    if (status == SHUF_OK)
        *out = engine;
    else
        close_everything(engine);
    return status;
}

/* On success, *error keeps the reason why the backend is not a better one. */
shuf_status shuf__engine_start(struct shuf__engine **engine, uv_loop_t *loop,
                               const struct shuf__engine_options *options,
                               struct shuf__error *error)
{
    return start(engine, NULL, loop, options, error);
}

shuf_status shuf__engine_start_beside(struct shuf__engine *engine, bool shares, uv_loop_t *loop,
                                      const struct shuf__engine_options *options,
                                      struct shuf__error *error)
{
    struct shuf__engine **next = &engine->next;
    while (*next)
        next = &(*next)->next;
    return start(next, shares ? engine : NULL, loop, options, error);
}

void shuf__engine_stop(struct shuf__engine *engine)
{
    assert(shuf__engine_is_idle(engine));
    close_everything(engine);
}
