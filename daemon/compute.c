/* SPDX-License-Identifier: MIT
 *
 * See compute.h. A job takes its memory when its turn has come, allocates it, has
 * the values computed, and then whatever is wanted of them. One that was launched
 * and is awaited with an event, or was not over at once, comes back to the engine to
 * be waited for.
 */
#include "compute.h"

#include "server.h"
#include "table.h"
#include "workspace.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* How long a quick job is waited for on the spot. It takes a few microseconds, unless others use
 * the device too. */
static const uint64_t patience_ns = 50000;

struct shuf__work {
    struct shuf__task task;
    struct shuf__server *server;
    struct shuf__result *result; /* holds a reference */
    /* From `begin` to `done`; NULL: it does without. */
    struct shuf__result *table; /* rank index */
    struct shuf__result *workspace;
    bool sparing;           /* with what it cannot do without: there was no memory for more */
    struct shuf__want want; /* of whoever was the first to wait */
    TAILQ_HEAD(, shuf__waiter) waiters;
    bool launched; /* and not known to be over */
    bool has_event;
    uint8_t event[SHUF__IPC_HANDLE];
    struct shuf__summary summary;
    struct shuf__error error;
};

/* ---- where the backend is driven: on either thread ---- */

static struct shuf__work *work_of(struct shuf__task *task)
{
    return (struct shuf__work *)((char *)task - offsetof(struct shuf__work, task));
}

static bool is_cancelled(void *context)
{
    const struct shuf__task *task = context;
    return atomic_load_explicit(&task->cancelled, memory_order_relaxed);
}

/* `task` may cancel it; NULL for none. */
static struct shuf__job job_of(const struct shuf__result *result, struct shuf__task *task)
{
    return (struct shuf__job){
        .request = result->key.request,
        .input = result->input ? &result->input->cell->block : NULL,
        .cancelled = task ? is_cancelled : NULL,
        .cancel_context = task,
    };
}

static shuf_status launch(struct shuf__backend *backend, struct shuf__result *result,
                          struct shuf__error *error)
{
    const struct shuf__job job = job_of(result, NULL);
    return backend->ops->launch(backend, &job, &result->cell->block, error);
}

static shuf_status finish(struct shuf__backend *backend, struct shuf__summary *summary,
                          struct shuf__error *error)
{
    for (bool over = false; !over;)
        if (backend->ops->wait(backend, UINT64_MAX, &over, &summary->device_ns, error))
            return error->status;
    return SHUF_OK;
}

/* ---- the loop's thread, where it is sooner done than another would wake ---- */

/* Fingerprints and sums use all cores, and edges in device memory cost as much as a job. */
static bool is_small(const struct shuf__backend *backend, const struct shuf__result *result,
                     const struct shuf__want *want)
{
    enum shuf__memory kind = result->key.kind;
    if (shuf__key_is_buffer(&result->key)) /* is only allocated, which may take its time */
        return false;
    if ((want->fingerprint && !result->summary.has_fingerprint) ||
        (want->sums && !result->summary.has_sums) ||
        (want->edges && !result->summary.has_edges && !shuf__memory_is_host(kind)))
        return false;
    return result->ready || (shuf__pool_of(kind) == shuf__pool_of(backend->ops->own) &&
                             shuf__backend_is_quick(backend->ops, &result->key.request) &&
                             shuf__workspace_wanted(result, backend).best == 0);
}

/* Of a small one that has its memory. Not *over: the values are launched, and take longer than
 * expected. */
static shuf_status do_here(struct shuf__backend *backend, struct shuf__result *result,
                           const struct shuf__want *want, struct shuf__summary *summary, bool *over,
                           struct shuf__error *error)
{
    *over = result->ready;
    if (!*over && (launch(backend, result, error) ||
                   backend->ops->wait(backend, patience_ns, over, &summary->device_ns, error)))
        return error->status;
    return *over ? shuf__describe(backend, result, want, summary, error) : SHUF_OK;
}

static bool run_here(struct shuf__task *task, struct shuf__backend *backend)
{
    bool over;
    struct shuf__work *work = work_of(task);
    struct shuf__result *result = work->result;
    if (work->launched || !result->cell->block.memory || !is_small(backend, result, &work->want))
        return false;
    work->error.status = do_here(backend, result, &work->want, &work->summary, &over, &work->error);
    work->launched = work->error.status == SHUF_OK && !over;
    return !work->launched;
}

/* ---- the engine's thread ---- */

static shuf_status allocate(struct shuf__backend *backend, struct shuf__cell *cell,
                            struct shuf__error *error)
{
    if (cell->block.memory)
        return SHUF_OK;
    return (cell->buffer ? shuf__backend_alloc_open : backend->ops->alloc)(
        backend, cell->kind, cell->bytes, &cell->block, error);
}

/* Without memory for its table it goes without. */
static shuf_status launch_work(struct shuf__work *work, struct shuf__backend *backend)
{
    struct shuf__error ignored;
    struct shuf__job job = job_of(work->result, &work->task);
    if (shuf__workspace_open(work->workspace, work->result, backend, &job.workspace, &work->error))
        return work->error.status;
    if (work->table)
        job.rank_index = shuf__table_open(work->table, backend, &ignored);
    return backend->ops->launch(backend, &job, &work->result->cell->block, &work->error);
}

static shuf_status begin_values(struct shuf__work *work, struct shuf__backend *backend)
{
    struct shuf__error *error = &work->error;
    struct shuf__cell *cell = work->result->cell;
    if (is_cancelled(&work->task))
        return shuf__fail(error, SHUF_CANCELLED, "result: cancelled");
    if (allocate(backend, cell, error))
        return error->status;
    if (cell->buffer) /* its client computes it */
        return SHUF_OK;
    if (launch_work(work, backend))
        return error->status;
    work->launched = true;
    if (!work->want.event || cell->kind != SHUF__MEMORY_CUDA_IPC)
        return SHUF_OK;
    work->has_event = backend->ops->event(backend, &cell->block, work->event, error) == SHUF_OK;
    if (work->has_event)
        return SHUF_OK;
    struct shuf__error later; /* what was launched must be waited for, whatever else fails */
    finish(backend, &work->summary, &later);
    work->launched = false;
    return error->status;
}

/* With an event it is called twice: the clients are told in between. */
static void run(struct shuf__task *task, struct shuf__backend *backend)
{
    struct shuf__work *work = work_of(task);
    struct shuf__result *result = work->result;
    shuf_status *status = &work->error.status;
    *status = SHUF_OK;
    work->has_event = false;
    if (!result->ready && !work->launched) {
        *status = begin_values(work, backend);
        if (*status || work->has_event)
            return;
    }
    if (work->launched)
        *status = finish(backend, &work->summary, &work->error);
    work->launched = false;
    if (*status == SHUF_OK)
        *status = shuf__describe(backend, result, &work->want, &work->summary, &work->error);
}

/* ---- the loop's thread ---- */

static void take_table(struct shuf__work *work)
{
    struct shuf__error ignored;
    const struct shuf__result *result = work->result;
    const struct shuf__request *request = &result->key.request;
    if (!result->ready && !work->launched && !shuf__key_is_buffer(&result->key) &&
        shuf__rank_index_helps(shuf__engine_backend(work->server->engine)->ops->rank_index_limits,
                               request))
        work->table = shuf__table_take(result->all, result->key.uid,
                                       shuf__request_permutation(request), &ignored);
}

static shuf_status no_input(struct shuf__error *error)
{
    return shuf__fail(error, SHUF_INVALID, "lease of the input: its values could not be computed");
}

/* One that was leased by its event, and is not there yet, comes before what is launched now. */
static bool input_comes(const struct shuf__result *input)
{
    return !input || input->ready || input->work;
}

static bool begin(struct shuf__task *task)
{
    struct shuf__work *work = work_of(task);
    struct shuf__result *result = work->result;
    const struct shuf__backend *backend = shuf__engine_backend(work->server->engine);
    const bool computed = !result->ready && !work->launched;
    if (!result->ready && !input_comes(result->input)) {
        no_input(&work->error);
        return false;
    }
    if (computed && shuf__workspace_make_sure(result, backend, &work->error))
        return false;
    if (!result->cell && shuf__result_take_cell(result, &work->error))
        return false;
    if (computed &&
        shuf__workspace_take(result, backend, work->sparing, &work->workspace, &work->error))
        return false;
    take_table(work);
    return true;
}

static void done(struct shuf__task *task);

static struct shuf__work *make_work(struct shuf__server *server, struct shuf__result *result)
{
    struct shuf__work *work = calloc(1, sizeof *work);
    if (!work)
        return NULL;
    work->task.begin = begin;
    work->task.run_here = run_here;
    work->task.run = run;
    work->task.done = done;
    work->server = server;
    work->result = shuf__result_ref(result);
    work->summary = result->summary;
    shuf__fail(&work->error, SHUF_CANCELLED, "result: cancelled"); /* until it has run */
    TAILQ_INIT(&work->waiters);
    result->work = work;
    return work;
}

static void free_work(struct shuf__work *work)
{
    struct shuf__result *result = work->result;
    result->work = NULL;
    shuf__result_unref(result);
    free(work);
}

/* A new job for what is not at work. */
static struct shuf__work *start(struct shuf__server *server, struct shuf__result *result,
                                const struct shuf__want *want, struct shuf__error *error)
{
    if (!result->cell &&
        shuf__workspace_could_fit(result, shuf__engine_backend(server->engine), error))
        return NULL;
    struct shuf__work *work = make_work(server, result);
    if (!work) {
        shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
        return NULL;
    }
    work->want = *want;
    if (shuf__engine_submit(server->engine, &work->task))
        return work;
    free_work(work);
    shuf__fail(error, SHUF_BUSY, "queue %" PRIu64 ": the most jobs that may wait; try again later",
               server->config->queue);
    return NULL;
}

/* One that is at work already may be past what is wanted in addition: then there is another job
 * (tell_all). */
shuf_status shuf__compute_for(struct shuf__server *server, struct shuf__waiter *waiter,
                              struct shuf__error *error)
{
    struct shuf__work *work = waiter->result->work;
    if (!work && !(work = start(server, waiter->result, &waiter->want, error)))
        return error->status;
    TAILQ_INSERT_TAIL(&work->waiters, waiter, link);
    return SHUF_OK;
}

shuf_status shuf__compute_ahead(struct shuf__server *server, struct shuf__result *result,
                                struct shuf__error *error)
{
    static const struct shuf__want nothing;
    if (result->ready || result->work || start(server, result, &nothing, error))
        return SHUF_OK;
    return error->status;
}

/* The job's own reference is the last: nobody would see what it makes. */
static void cancel_if_unwanted(struct shuf__result *result)
{
    if (!result->work || result->refs > 1 || result->ready)
        return;
    shuf__result_hide(result);
    shuf__engine_cancel(result->work->server->engine, &result->work->task);
}

void shuf__compute_leave(struct shuf__waiter *waiter)
{
    TAILQ_REMOVE(&waiter->result->work->waiters, waiter, link);
}

void shuf__compute_unref(struct shuf__result *result)
{
    bool last = result->refs == 1;
    shuf__result_unref(result);
    if (!last)
        cancel_if_unwanted(result);
}

static void tell_event(struct shuf__work *work)
{
    struct shuf__waiter *waiter = TAILQ_FIRST(&work->waiters), *next;
    for (; waiter; waiter = next) {
        next = TAILQ_NEXT(waiter, link);
        if (!waiter->want.event)
            continue;
        TAILQ_REMOVE(&work->waiters, waiter, link);
        waiter->told(waiter, NULL, work->event);
    }
}

/* Each may bring new requests, and so new jobs, even for this result: the list is taken off it
 * first. */
static void tell_all(struct shuf__work *work)
{
    struct shuf__waiter *waiter;
    struct shuf__result *result = work->result;
    while ((waiter = TAILQ_FIRST(&work->waiters)) != NULL) {
        struct shuf__error error = work->error;
        TAILQ_REMOVE(&work->waiters, waiter, link);
        if (error.status == SHUF_OK && !shuf__described(result, &waiter->want) &&
            shuf__compute_for(work->server, waiter, &error) == SHUF_OK)
            continue;
        waiter->told(waiter, error.status ? &error : NULL, NULL);
    }
}

/* Already where the job is launched and not over: the next one, which wants them first, may begin
 * then. What it does with them comes behind, on the device too. */
static void give_back(struct shuf__work *work)
{
    shuf__table_give_back(work->table);
    shuf__workspace_give_back(work->workspace, work->error.status == SHUF_OK);
    work->table = work->workspace = NULL;
}

/* Of the job's own cells the one that the device had no memory for, or NULL. */
static struct shuf__result *starved(struct shuf__work *work)
{
    struct shuf__result *const own[] = {work->result, work->workspace};
    for (int i = 0; i < 2; i++)
        if (own[i] && own[i]->cell && !own[i]->cell->block.memory)
            return own[i];
    return NULL;
}

static void become_ready(struct shuf__server *server, struct shuf__result *result)
{
    server->results.computed += !result->ready && !shuf__key_is_buffer(&result->key);
    result->ready = true;
    shuf__result_end_input(result);
}

static void keep(struct shuf__work *work)
{
    become_ready(work->server, work->result);
    work->result->summary = work->summary;
}

/* What the system has given by now: of host memory only what was written to for certain. */
static void note_memory(const struct shuf__result *result)
{
    if (!result->cell || !result->cell->block.memory)
        return;
    if (result->cell->buffer)
        shuf__cell_open(result->cell);
    else
        shuf__cell_back(result->cell, !shuf__memory_is_host(result->cell->kind)
                                          ? result->cell->bytes
                                      : result->ready ? result->bytes
                                                      : 0);
}

/* The budget was wrong about the device, which others use too. What the job has by now is taken
 * into account before it is asked again. */
static bool try_again(struct shuf__work *work)
{
    struct shuf__result *result = work->result, *lacking = starved(work);
    if (work->error.status != SHUF_NO_MEMORY || result->ready || !lacking ||
        atomic_load(&work->task.cancelled))
        return false;
    note_memory(result);
    work->sparing = lacking == work->workspace;
    if (!shuf__result_make_room(lacking))
        return false;
    give_back(work);
    return shuf__engine_submit(work->server->engine, &work->task);
}

static void done(struct shuf__task *task)
{
    struct shuf__work *work = work_of(task);
    struct shuf__server *server = work->server;
    if (try_again(work))
        return;
    give_back(work);
    note_memory(work->result);
    if (work->has_event && work->error.status == SHUF_OK) {
        shuf__engine_follow_up(server->engine, task);
        tell_event(work);
        return;
    }
    if (work->error.status == SHUF_OK && work->result->input && !work->result->input->ready)
        no_input(&work->error);
    if (work->error.status == SHUF_OK)
        keep(work);
    note_memory(work->result);
    const struct shuf__error error = work->error;
    work->result->work = NULL; /* what is still wanted of it is a new job's */
    tell_all(work);
    shuf__result_unref(work->result);
    free(work);
    if (error.status == SHUF_DEVICE)
        shuf__server_device_failed(server, &error);
}

/* ---- at once, for a request that just came ---- */

/* What is under way and takes its time is given to the engine, which has nothing else. */
static shuf_status hand_over(struct shuf__server *server, struct shuf__backend *backend,
                             struct shuf__result *result, struct shuf__error *error)
{
    struct shuf__error failed;
    struct shuf__work *work = make_work(server, result);
    if (work) {
        work->launched = true;
        bool taken = shuf__engine_submit(server->engine, &work->task);
        assert(taken);
        (void)taken;
        return SHUF_OK;
    }
    shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
    if (finish(backend, &result->summary, &failed))
        *error = failed;
    return error->status;
}

shuf_status shuf__compute_now(struct shuf__server *server, struct shuf__result *result,
                              const struct shuf__want *want, bool *there, struct shuf__error *error)
{
    bool over;
    struct shuf__backend *backend;
    *there = shuf__described(result, want);
    if (result->input && !result->input->ready)
        return SHUF_OK;
    if (*there || result->work || !(backend = shuf__engine_borrow(server->engine)) ||
        !is_small(backend, result, want))
        return SHUF_OK;
    if (!result->cell && !shuf__result_reuse_cell(result))
        return SHUF_OK;
    if (do_here(backend, result, want, &result->summary, &over, error))
        return error->status;
    if (!over)
        return hand_over(server, backend, result, error);
    become_ready(server, result);
    *there = true;
    note_memory(result);
    return SHUF_OK;
}
