/* SPDX-License-Identifier: MIT
 *
 * See compute.h.
 */
#include "compute.h"

#include "memory/acquire.h"
#include "summary.h"
#include "trace/trace.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/queue.h>

/* ---- The job of an entry ---- */

/* `transitions` has the order of the states. */
enum job_state {
    JOB_QUEUED,      /* waits in the engine's queue, without memory */
    JOB_STARTED,     /* has its memory; from now on a lane's thread may use the job */
    JOB_LAUNCHED,    /* the device computes */
    JOB_EVENT_READY, /* LAUNCHED, and the IPC event of its end is made */
    JOB_COMPLETE,    /* values and summary are computed */
    JOB_FAILED,      /* `error` says why */
    JOB_STATES,
};

/* The job that computes one entry: its state, the memory that it holds, and its calls of the
 * backend. Only one thread at a time uses a job. The lanes' mutex guards the queues by which the
 * job goes from one thread to another. */
struct shuf__entry_job {
    struct shuf__engine_job engine_job;
    struct shuf__cache_entry *entry; /* a reference */
    enum job_state state;
    struct shuf__compute_options options; /* those of the first waiter */
    TAILQ_HEAD(, shuf__waiter) waiters;
    /* Memory beside the result, from STARTED until the job is over. */
    struct shuf__cache_entry *rank_index; /* NULL: none */
    struct shuf__held_workspace workspace;
    bool sparing; /* takes the smallest workspace: the device had no memory for a larger one */
    uint8_t event[SHUF__IPC_HANDLE];
    struct shuf__summary summary;
    struct shuf__error error;
};

/* ---- States ---- */

#define TO(state) (1u << JOB_##state)

/* The states that may follow each state. */
static const unsigned transitions[JOB_STATES] = {
    [JOB_QUEUED] = TO(STARTED) | TO(FAILED), /* FAILED: cancelled, or without memory */
    [JOB_STARTED] = TO(LAUNCHED) | TO(COMPLETE) | TO(FAILED),
    [JOB_LAUNCHED] = TO(EVENT_READY) | TO(COMPLETE) | TO(FAILED),
    [JOB_EVENT_READY] = TO(COMPLETE) | TO(FAILED),
    [JOB_COMPLETE] = TO(FAILED), /* the job of its input has failed */
    [JOB_FAILED] = TO(QUEUED),   /* the job is tried again */
};

static void set_state(struct shuf__entry_job *job, enum job_state state)
{
    assert(transitions[job->state] >> state & 1);
    job->state = state;
}

static void conclude(struct shuf__entry_job *job, shuf_status status)
{
    job->error.status = status;
    set_state(job, status ? JOB_FAILED : JOB_COMPLETE);
}

static bool is_launched(const struct shuf__entry_job *job)
{
    return job->state == JOB_LAUNCHED || job->state == JOB_EVENT_READY;
}

static struct shuf__entry_job *job_of(struct shuf__engine_job *engine_job)
{
    return (struct shuf__entry_job *)((char *)engine_job -
                                      offsetof(struct shuf__entry_job, engine_job));
}

/* ---- The computation ---- */

/* Returns the computation without workspace and rank index. It ends early if `job` is cancelled; if
 * `job` is NULL, nothing can cancel it. */
static struct shuf__computation computation_of(const struct shuf__cache_entry *entry,
                                               struct shuf__engine_job *job)
{
    return (struct shuf__computation){
        .request = entry->key.request,
        .input = entry->input ? &entry->input->allocation->block : NULL,
        .cancelled = job ? shuf__engine_job_is_cancelled : NULL,
        .cancel_context = job,
    };
}

/* Puts the bits of a named key into the request for the launch only, and removes them afterwards.
 */
static shuf_status launch_with_key(struct shuf__backend *backend,
                                   const struct shuf__cache_entry *entry,
                                   struct shuf__computation *computation, struct shuf__error *error)
{
    if (shuf__keyring_reveal(entry->cache->keyring, &computation->request, error))
        return error->status;
    const shuf_status status =
        backend->ops->launch(backend, computation, &entry->allocation->block, error);
    shuf__keyring_conceal(&computation->request);
    return status;
}

/* A buffer needs no workspace, because nothing is computed. */
static struct shuf__workspace workspace_of(const struct shuf__cache_entry *entry,
                                           const struct shuf__backend *backend)
{
    if (shuf__cache_key_is_buffer(&entry->key))
        return (struct shuf__workspace){.kind = SHUF__MEMORY_MEMFD};
    return backend->ops->workspace(backend, &entry->key.request, entry->key.memory);
}

static struct shuf__job_memory memory_of(const struct shuf__cache_entry *entry,
                                         const struct shuf__backend *backend)
{
    return (struct shuf__job_memory){
        .result = shuf__cache_entry_memory_request(entry),
        .workspace = workspace_of(entry, backend),
        .input = entry->input ? entry->input->allocation : NULL,
    };
}

/* Waits until the launched computation of an entry is over. */
static shuf_status wait_for(struct shuf__backend *backend, struct shuf__summary *summary,
                            struct shuf__error *error)
{
    for (bool complete = false; !complete;)
        if (backend->ops->wait(backend, UINT64_MAX, &complete, &summary->device_ns, error))
            return error->status;
    return SHUF_OK;
}

/* ---- On a lane's thread ---- */

static shuf_status allocate_block(struct shuf__backend *backend,
                                  struct shuf__allocation *allocation, struct shuf__error *error)
{
    if (allocation->block.memory)
        return SHUF_OK;
    return (allocation->buffer ? shuf__backend_alloc_writable : backend->ops->alloc)(
        backend, allocation->kind, allocation->bytes, &allocation->block, error);
}

/* If there is no memory for a rank index, the computation runs without one. */
static shuf_status launch(struct shuf__entry_job *job, struct shuf__backend *backend)
{
    struct shuf__error ignored;
    const struct shuf__cache_entry *entry = job->entry;
    struct shuf__computation computation = computation_of(entry, &job->engine_job);
    const struct shuf__workspace needs = workspace_of(entry, backend);
    if (shuf__workspace_open(&job->workspace, &needs, backend, &computation.workspace, &job->error))
        return job->error.status;
    if (job->rank_index)
        computation.rank_index = shuf__rank_entry_open(job->rank_index, backend, &ignored);
    return launch_with_key(backend, entry, &computation, &job->error);
}

/* If the event cannot be made, the job fails. First it waits for the launched computation, which
 * still writes to the block. */
static shuf_status make_event(struct shuf__entry_job *job, struct shuf__backend *backend)
{
    struct shuf__error ignored;
    if (backend->ops->event(backend, &job->entry->allocation->block, job->event, &job->error)) {
        wait_for(backend, &job->summary, &ignored);
        return job->error.status;
    }
    set_state(job, JOB_EVENT_READY);
    return SHUF_OK;
}

/* Allocates the block and launches the computation. */
static shuf_status begin_values(struct shuf__entry_job *job, struct shuf__backend *backend)
{
    struct shuf__allocation *allocation = job->entry->allocation;
    if (shuf__engine_job_is_cancelled(&job->engine_job))
        return shuf__fail(&job->error, SHUF_CANCELLED, "result: cancelled");
    if (allocate_block(backend, allocation, &job->error))
        return job->error.status;
    if (allocation->buffer) /* the client fills it */
        return SHUF_OK;
    if (launch(job, backend))
        return job->error.status;
    set_state(job, JOB_LAUNCHED);
    return job->options.event && allocation->kind == SHUF__MEMORY_CUDA_IPC
               ? make_event(job, backend)
               : SHUF_OK;
}

static shuf_status finish_values(struct shuf__entry_job *job, struct shuf__backend *backend)
{
    if (is_launched(job) && wait_for(backend, &job->summary, &job->error))
        return job->error.status;
    return shuf__summary_complete(backend, job->entry, &job->options, &job->summary, &job->error);
}

/* For a job with an event, the engine calls this twice. Between the calls the waiters get the
 * event.
 */
static void run_job(struct shuf__engine_job *engine_job, struct shuf__backend *backend)
{
    struct shuf__entry_job *job = job_of(engine_job);
    shuf_status status = SHUF_OK;
    if (job->state == JOB_STARTED && !job->entry->ready) {
        status = begin_values(job, backend);
        if (status == SHUF_OK && job->state == JOB_EVENT_READY)
            return;
    }
    if (status == SHUF_OK)
        status = finish_values(job, backend);
    conclude(job, status);
}

/* ---- On the loop's thread: memory ---- */

/* Fails with SHUF_NO_MEMORY if a job for the entry could never get its memory. */
static shuf_status check_fit(const struct shuf__cache_entry *entry, struct shuf__error *error)
{
    const struct shuf__job_memory memory =
        memory_of(entry, shuf__engine_backend(shuf__cache_entry_engine(entry)));
    return shuf__workspace_check_fit(entry->cache->pool, &memory, error);
}

/* Whether the input of a shuffle is ready or is still being computed. The job of the input ends
 * before this job, because a user's jobs run one after the other. */
static bool has_input(const struct shuf__cache_entry *entry)
{
    return !entry->input || entry->input->ready || entry->input->job;
}

static shuf_status acquire(struct shuf__entry_job *job, const struct shuf__backend *backend)
{
    struct shuf__cache_entry *entry = job->entry;
    struct shuf__pool *pool = entry->cache->pool;
    const struct shuf__job_memory memory = memory_of(entry, backend);
    if (!has_input(entry))
        return shuf__fail(&job->error, SHUF_INVALID,
                          "lease of the input: its values could not be computed");
    if (shuf__workspace_check_room(pool, &memory, &entry->allocation, &job->error))
        return job->error.status;
    if (!entry->allocation &&
        !shuf__cache_entry_acquire(entry, SHUF__ACQUIRE_REQUIRED, &job->error))
        return job->error.status;
    return shuf__workspace_acquire(pool, &memory, job->sparing, &job->workspace, &job->error);
}

static void acquire_rank_index(struct shuf__entry_job *job, const struct shuf__backend *backend)
{
    struct shuf__error ignored;
    const struct shuf__cache_entry *entry = job->entry;
    const struct shuf__request *request = &entry->key.request;
    if (!shuf__cache_key_is_buffer(&entry->key) &&
        shuf__rank_index_helps(backend->ops->rank_index_limits, request))
        job->rank_index = shuf__rank_entry_acquire(entry->cache, job->engine_job.engine,
                                                   entry->key.uid, request, &ignored);
}

/* Acquires the job's memory. A job that only adds to the summary of a ready entry needs none. */
static enum shuf__begin begin_job(struct shuf__engine_job *engine_job)
{
    struct shuf__entry_job *job = job_of(engine_job);
    struct shuf__cache_entry *entry = job->entry;
    const struct shuf__backend *backend = shuf__engine_backend(engine_job->engine);
    if (!entry->ready && acquire(job, backend)) {
        const enum shuf__begin begin = shuf__pool_fail_begin(&job->error);
        if (begin == SHUF__BEGIN_FAILED)
            set_state(job, JOB_FAILED);
        return begin;
    }
    if (!entry->ready)
        acquire_rank_index(job, backend);
    set_state(job, JOB_STARTED);
    return SHUF__BEGIN_DONE;
}

/* Gives the memory beside the result back. The computation on the device must be over, because a
 * job in another lane may use this memory next. */
static void release_memory(struct shuf__entry_job *job)
{
    shuf__rank_entry_release(job->rank_index);
    job->rank_index = NULL;
    shuf__workspace_release(job->entry->cache->pool, &job->workspace, job->state != JOB_FAILED);
}

/* Updates the number of committed bytes of the entry's allocation. The kernel commits host memory
 * at its first write. So before the values are computed, no bytes of host memory count as
 * committed. */
static void note_memory(const struct shuf__cache_entry *entry)
{
    struct shuf__allocation *allocation = entry->allocation;
    if (!allocation || !allocation->block.memory)
        return;
    if (allocation->buffer)
        shuf__allocation_set_client_writable(allocation);
    else if (!shuf__memory_is_host(allocation->kind))
        shuf__allocation_commit(allocation, allocation->bytes);
    else
        shuf__allocation_commit(allocation, entry->ready ? entry->bytes : 0);
}

/* Marks the entry as ready: its values are computed. */
static void become_ready(struct shuf__cache_entry *entry)
{
    if (!entry->ready && !shuf__cache_key_is_buffer(&entry->key))
        shuf__cache_count_computed(entry->cache, entry->engine);
    entry->ready = true;
    shuf__request_disown(&entry->key.request); /* a computed plan needs no lists */
    shuf__cache_entry_end_input(entry);
}

/* Returns the allocation for which the device had no memory: the result's, the workspace's, or
 * NULL. */
static struct shuf__allocation **find_missing(struct shuf__entry_job *job)
{
    struct shuf__allocation **const own[] = {&job->entry->allocation, &job->workspace.allocation};
    for (int i = 0; i < 2; i++)
        if (*own[i] && !(*own[i])->block.memory)
            return own[i];
    return NULL;
}

/* Call after a failure. If the device had no memory for the job, evicts idle memory and queues the
 * job again. Returns whether the job is queued again.
 * Other programs use the device too, so it may have less memory than the budget says. The memory
 * that the job already has is noted before the device is measured again. */
static bool retry(struct shuf__entry_job *job)
{
    struct shuf__error ignored;
    struct shuf__cache_entry *entry = job->entry;
    struct shuf__allocation **missing = find_missing(job);
    if (job->error.status != SHUF_NO_MEMORY || entry->ready || !missing ||
        shuf__engine_job_is_cancelled(&job->engine_job))
        return false;
    note_memory(entry);
    job->sparing = missing == &job->workspace.allocation;
    struct shuf__allocation *allocation = *missing;
    *missing = NULL;
    if (!shuf__pool_make_room(entry->cache->pool, allocation))
        return false;
    release_memory(job);
    set_state(job, JOB_QUEUED);
    if (shuf__engine_submit(job->engine_job.engine, &job->engine_job, &ignored) == SHUF_OK)
        return true;
    set_state(job, JOB_FAILED);
    return false;
}

static void free_job(struct shuf__entry_job *job)
{
    struct shuf__cache_entry *entry = job->entry;
    if (entry->job == job)
        entry->job = NULL;
    shuf__cache_entry_unref(entry);
    free(job);
}

/* ---- The start of a job ---- */

static enum shuf__loop_result run_on_loop(struct shuf__engine_job *engine_job,
                                          struct shuf__backend *backend);
static void finish_job(struct shuf__engine_job *engine_job);

static bool may_wait_for_client(const struct shuf__cache_entry *entry)
{
    const struct shuf__allocation *input = entry->input ? entry->input->allocation : NULL;
    return input && shuf__allocation_may_wait_for_client(input);
}

/* Makes a QUEUED job for the entry and takes a reference to it. NULL when out of memory. */
static struct shuf__entry_job *make_job(struct shuf__cache_entry *entry, struct shuf__error *error)
{
    struct shuf__entry_job *job = calloc(1, sizeof *job);
    if (!job) {
        shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
        return NULL;
    }
    job->engine_job.uid = entry->key.uid;
    job->engine_job.begin = begin_job;
    job->engine_job.run_on_loop = run_on_loop;
    job->engine_job.name = "shufd: compute";
    job->engine_job.may_wait_for_client = may_wait_for_client(entry);
    job->engine_job.run = run_job;
    job->engine_job.done = finish_job;
    job->state = JOB_QUEUED;
    job->entry = shuf__cache_entry_ref(entry);
    job->summary = entry->summary;
    shuf__fail(&job->error, SHUF_CANCELLED,
               "result: cancelled"); /* remains if the job never runs */
    TAILQ_INIT(&job->waiters);
    entry->job = job;
    return job;
}

/* The entry must not have a job. */
static struct shuf__entry_job *submit_job(struct shuf__cache_entry *entry,
                                          const struct shuf__compute_options *options,
                                          struct shuf__error *error)
{
    if (!entry->allocation && check_fit(entry, error))
        return NULL;
    struct shuf__entry_job *job = make_job(entry, error);
    if (!job)
        return NULL;
    job->options = *options;
    if (shuf__engine_submit(shuf__cache_entry_engine(entry), &job->engine_job, error) == SHUF_OK)
        return job;
    free_job(job);
    return NULL;
}

/* A job that already exists may not compute all parts of the summary that the waiter needs. Then
 * finish_waiters() submits another job. */
shuf_status shuf__compute_for(struct shuf__waiter *waiter, struct shuf__error *error)
{
    struct shuf__entry_job *job = waiter->entry->job;
    if (!job && !(job = submit_job(waiter->entry, &waiter->options, error)))
        return error->status;
    TAILQ_INSERT_TAIL(&job->waiters, waiter, link);
    return SHUF_OK;
}

shuf_status shuf__compute_ahead(struct shuf__cache_entry *entry, struct shuf__error *error)
{
    static const struct shuf__compute_options nothing;
    if (entry->ready || entry->job || submit_job(entry, &nothing, error))
        return SHUF_OK;
    return error->status;
}

/* ---- The end of a job ---- */

static void finish_event_waiters(struct shuf__entry_job *job)
{
    struct shuf__waiter *waiter = TAILQ_FIRST(&job->waiters), *next;
    for (; waiter; waiter = next) {
        next = TAILQ_NEXT(waiter, link);
        if (!waiter->options.event)
            continue;
        TAILQ_REMOVE(&job->waiters, waiter, link);
        waiter->started_ns = job->engine_job.started_ns;
        waiter->finished(waiter, NULL, job->event);
    }
}

/* The caller must set entry->job to NULL first, because `finished` may lead to a new request, and
 * so to a new job for the entry. If a waiter needs a part of the summary that this job has not
 * computed, it waits for another job.
 */
static void finish_waiters(struct shuf__entry_job *job)
{
    struct shuf__waiter *waiter;
    while ((waiter = TAILQ_FIRST(&job->waiters)) != NULL) {
        struct shuf__error error = job->error;
        TAILQ_REMOVE(&job->waiters, waiter, link);
        if (error.status == SHUF_OK && !shuf__summary_has(job->entry, &waiter->options) &&
            shuf__compute_for(waiter, &error) == SHUF_OK)
            continue;
        waiter->started_ns = job->engine_job.started_ns;
        waiter->finished(waiter, error.status ? &error : NULL, NULL);
    }
}

/* The job continues in its lane and waits for the device there. Its waiters get the event, so they
 * can already use the result on the device. */
static void send_event(struct shuf__entry_job *job)
{
    shuf__engine_continue(&job->engine_job);
    finish_event_waiters(job);
}

static void keep_result(struct shuf__entry_job *job)
{
    struct shuf__cache_entry *entry = job->entry;
    if (entry->input && !entry->input->ready) {
        shuf__fail(&job->error, SHUF_INVALID,
                   "lease of the input: its values could not be computed");
        set_state(job, JOB_FAILED);
        return;
    }
    become_ready(entry);
    job->summary.device_ns = shuf__engine_job_active_ns(&job->engine_job, job->summary.device_ns);
    entry->summary = job->summary;
}

static void finish_job(struct shuf__engine_job *engine_job)
{
    struct shuf__entry_job *job = job_of(engine_job);
    struct shuf__engine *engine = engine_job->engine;
    if (job->state == JOB_QUEUED) /* cancelled */
        set_state(job, JOB_FAILED);
    if (job->state == JOB_FAILED && retry(job))
        return;
    note_memory(job->entry);
    if (job->state == JOB_EVENT_READY) {
        send_event(job);
        return;
    }
    release_memory(job);
    if (job->state == JOB_COMPLETE)
        keep_result(job);
    note_memory(job->entry);
    const struct shuf__error error = job->error;
    job->entry->job = NULL;
    finish_waiters(job);
    free_job(job);
    shuf__engine_report(engine, &error);
}

/* ---- Cancelling ---- */

/* If only the job has a reference to the entry, nobody needs the result. */
static void cancel_if_unused(struct shuf__cache_entry *entry)
{
    if (!entry->job || entry->refs > 1 || entry->ready)
        return;
    shuf__cache_entry_hide(entry);
    shuf__engine_cancel(&entry->job->engine_job);
}

void shuf__compute_leave(struct shuf__waiter *waiter)
{
    TAILQ_REMOVE(&waiter->entry->job->waiters, waiter, link);
}

void shuf__compute_unref(struct shuf__cache_entry *entry)
{
    bool last = entry->refs == 1;
    shuf__cache_entry_unref(entry);
    if (!last)
        cancel_if_unused(entry);
}

/* ---- Quick computations, on the loop's thread ---- */

/* How long the loop waits for a quick computation. It takes a few microseconds if no other program
 * uses the device. */
static const uint64_t timeout_ns = 50000;

/* Whether the loop may compute the missing parts of the summary. It computes no fingerprint and no
 * sums, because these use all cores. It reads no samples from device memory, because that takes as
 * long as a computation. */
static bool is_quick_summary(const struct shuf__cache_entry *entry,
                             const struct shuf__compute_options *options)
{
    const struct shuf__summary *has = &entry->summary;
    return shuf__summary_has_fingerprint(has, options) && !(options->sums && !has->has_sums) &&
           !(options->samples && !has->has_samples && !shuf__memory_is_host(entry->key.memory));
}

/* Whether computing the entry is quick. */
static bool is_quick(const struct shuf__backend *backend, const struct shuf__cache_entry *entry,
                     const struct shuf__compute_options *options)
{
    if (shuf__cache_key_is_buffer(&entry->key) || !is_quick_summary(entry, options) ||
        may_wait_for_client(entry))
        return false;
    return entry->ready || (shuf__side_of(entry->key.memory) == shuf__side_of(backend->ops->own) &&
                            shuf__backend_is_quick(backend->ops, &entry->key.request) &&
                            workspace_of(entry, backend).best == 0);
}

static shuf_status launch_quick(struct shuf__backend *backend,
                                const struct shuf__cache_entry *entry, struct shuf__error *error)
{
    struct shuf__computation computation = computation_of(entry, NULL);
    return launch_with_key(backend, entry, &computation, error);
}

/* Computes a quick entry that has its memory. *complete is false if the computation is launched but
 * takes longer than expected. */
static shuf_status run_quick(struct shuf__backend *backend, const struct shuf__cache_entry *entry,
                             const struct shuf__compute_options *options,
                             struct shuf__summary *summary, bool *complete,
                             struct shuf__error *error)
{
    *complete = entry->ready;
    if (!*complete &&
        (launch_quick(backend, entry, error) ||
         backend->ops->wait(backend, timeout_ns, complete, &summary->device_ns, error)))
        return error->status;
    return *complete ? shuf__summary_complete(backend, entry, options, summary, error) : SHUF_OK;
}

static enum shuf__loop_result run_on_loop(struct shuf__engine_job *engine_job,
                                          struct shuf__backend *backend)
{
    bool complete;
    struct shuf__entry_job *job = job_of(engine_job);
    const struct shuf__cache_entry *entry = job->entry;
    if (!entry->allocation->block.memory || !is_quick(backend, entry, &job->options))
        return SHUF__LOOP_NOTHING;
    shuf_status status =
        run_quick(backend, entry, &job->options, &job->summary, &complete, &job->error);
    if (status == SHUF_OK && !complete) {
        set_state(job, JOB_LAUNCHED);
        return SHUF__LOOP_LAUNCHED;
    }
    conclude(job, status);
    return SHUF__LOOP_COMPLETE;
}

/* The computation is launched but takes longer than expected, so a lane's thread waits for it.
 * Without memory for a job, the loop's thread waits and the request fails. */
static shuf_status hand_over(struct shuf__backend *backend, struct shuf__cache_entry *entry,
                             struct shuf__error *error)
{
    struct shuf__error failed;
    struct shuf__entry_job *job = make_job(entry, error);
    if (job) {
        set_state(job, JOB_STARTED);
        set_state(job, JOB_LAUNCHED);
        shuf__engine_hand_over(entry->engine, &job->engine_job);
        return SHUF_OK;
    }
    if (wait_for(backend, &entry->summary, &failed))
        *error = failed;
    return error->status;
}

static shuf_status compute_quick(struct shuf__backend *backend, struct shuf__cache_entry *entry,
                                 const struct shuf__compute_options *options, bool *complete,
                                 struct shuf__error *error)
{
    SHUF__RANGE_BEGIN("shufd: compute at once");
    const shuf_status status = run_quick(backend, entry, options, &entry->summary, complete, error);
    SHUF__RANGE_END();
    return status;
}

static bool can_compute_now(const struct shuf__cache_entry *entry)
{
    return !entry->job && (!entry->input || entry->input->ready);
}

shuf_status shuf__compute_now(struct shuf__cache_entry *entry,
                              const struct shuf__compute_options *options, bool *has_all,
                              struct shuf__error *error)
{
    bool complete;
    struct shuf__backend *backend;
    *has_all = shuf__summary_has(entry, options);
    if (*has_all || !can_compute_now(entry) ||
        !(backend = shuf__engine_borrow(shuf__cache_entry_engine(entry))) ||
        !is_quick(backend, entry, options))
        return SHUF_OK;
    if (!entry->allocation && !shuf__cache_entry_acquire(entry, SHUF__ACQUIRE_SPARE, NULL))
        return SHUF_OK;
    if (!entry->allocation->block.memory) /* a prefetch found no memory; a job tries again */
        return SHUF_OK;
    if (compute_quick(backend, entry, options, &complete, error))
        return error->status;
    if (!complete)
        return hand_over(backend, entry, error);
    become_ready(entry);
    *has_all = true;
    note_memory(entry);
    return SHUF_OK;
}
