/* SPDX-License-Identifier: MIT
 *
 * See compute.h.
 */
#include "compute.h"

#include "entry_job.h"
#include "trace/trace.h"

/* ---- the end of a job ---- */

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
        shuf__entry_job_set_state(job, SHUF__JOB_FAILED);
        return;
    }
    shuf__entry_become_ready(entry);
    job->summary.device_ns = shuf__engine_job_active_ns(&job->engine_job, job->summary.device_ns);
    entry->summary = job->summary;
}

static void finish_job(struct shuf__engine_job *engine_job)
{
    struct shuf__entry_job *job = shuf__entry_job_of(engine_job);
    struct shuf__engine *engine = engine_job->engine;
    if (job->state == SHUF__JOB_QUEUED) /* cancelled */
        shuf__entry_job_set_state(job, SHUF__JOB_FAILED);
    if (job->state == SHUF__JOB_FAILED && shuf__entry_job_retry(job))
        return;
    shuf__entry_note_memory(job->entry);
    if (job->state == SHUF__JOB_EVENT_READY) {
        send_event(job);
        return;
    }
    shuf__entry_job_release(job);
    if (job->state == SHUF__JOB_COMPLETE)
        keep_result(job);
    shuf__entry_note_memory(job->entry);
    const struct shuf__error error = job->error;
    job->entry->job = NULL;
    finish_waiters(job);
    shuf__entry_job_free(job);
    shuf__engine_report(engine, &error);
}

/* ---- the start of a job ---- */

static struct shuf__entry_job *make_entry_job(struct shuf__cache_entry *entry,
                                              struct shuf__error *error)
{
    struct shuf__entry_job *job = shuf__entry_job_make(entry);
    if (job)
        job->engine_job.done = finish_job;
    else
        shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
    return job;
}

/* The entry must not have a job. */
static struct shuf__entry_job *submit_job(struct shuf__cache_entry *entry,
                                          const struct shuf__compute_options *options,
                                          struct shuf__error *error)
{
    if (!entry->allocation && shuf__entry_job_check_fit(entry, error))
        return NULL;
    struct shuf__entry_job *job = make_entry_job(entry, error);
    if (!job)
        return NULL;
    job->options = *options;
    if (shuf__engine_submit(shuf__cache_entry_engine(entry), &job->engine_job, error) == SHUF_OK)
        return job;
    shuf__entry_job_free(job);
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

/* ---- cancelling ---- */

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

/* ---- at once, on the loop's thread ---- */

/* The computation is launched but takes longer than expected, so a lane's thread waits for it.
 * Without memory for a job, the loop's thread waits and the request fails. */
static shuf_status hand_over(struct shuf__backend *backend, struct shuf__cache_entry *entry,
                             struct shuf__error *error)
{
    struct shuf__error failed;
    struct shuf__entry_job *job = make_entry_job(entry, error);
    if (job) {
        shuf__entry_job_set_state(job, SHUF__JOB_STARTED);
        shuf__entry_job_set_state(job, SHUF__JOB_LAUNCHED);
        shuf__engine_hand_over(entry->engine, &job->engine_job);
        return SHUF_OK;
    }
    if (shuf__entry_wait(backend, &entry->summary, &failed))
        *error = failed;
    return error->status;
}

static shuf_status compute_quick(struct shuf__backend *backend, struct shuf__cache_entry *entry,
                                 const struct shuf__compute_options *options, bool *complete,
                                 struct shuf__error *error)
{
    SHUF__RANGE_BEGIN("shufd: compute at once");
    const shuf_status status =
        shuf__entry_compute_quick(backend, entry, options, &entry->summary, complete, error);
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
        !shuf__entry_is_quick(backend, entry, options))
        return SHUF_OK;
    if (!entry->allocation && !shuf__cache_entry_acquire(entry, SHUF__ACQUIRE_SPARE, NULL))
        return SHUF_OK;
    if (!entry->allocation->block.memory) /* a prefetch found no memory; a job tries again */
        return SHUF_OK;
    if (compute_quick(backend, entry, options, &complete, error))
        return error->status;
    if (!complete)
        return hand_over(backend, entry, error);
    shuf__entry_become_ready(entry);
    *has_all = true;
    shuf__entry_note_memory(entry);
    return SHUF_OK;
}
