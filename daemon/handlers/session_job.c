/* SPDX-License-Identifier: MIT
 *
 * See session_job.h.
 */
#include "session_job.h"

#include <stddef.h>
#include <stdlib.h>

struct shuf__session_job *shuf__session_job_of(struct shuf__engine_job *engine_job)
{
    return (struct shuf__session_job *)((char *)engine_job -
                                        offsetof(struct shuf__session_job, engine_job));
}

static void reply_or_fail(struct shuf__session_job *job)
{
    struct shuf__session *session = job->session;
    shuf__session_end_pending(session, job->engine_job.started_ns);
    if (job->error.status)
        shuf__session_fail(session, &job->error);
    else
        job->reply(job);
    shuf__session_advance(session);
}

static void finish_session_job(struct shuf__engine_job *engine_job)
{
    struct shuf__session_job *job = shuf__session_job_of(engine_job);
    job->release(job);
    if (job->session)
        reply_or_fail(job);
    shuf__engine_report(engine_job->engine, &job->error);
    free(job);
}

static void cancel_job(struct shuf__pending *pending)
{
    struct shuf__session_job *job = (struct shuf__session_job *)pending;
    job->session = NULL;
    shuf__engine_cancel(&job->engine_job);
}

shuf_status shuf__session_job_submit(struct shuf__session_job *job, struct shuf__engine *engine,
                                     struct shuf__session *session, struct shuf__error *error)
{
    job->pending.cancel = cancel_job;
    job->engine_job.done = finish_session_job;
    job->engine_job.uid = session->client.uid;
    job->session = session;
    if (shuf__engine_submit(engine, &job->engine_job, error))
        return error->status;
    shuf__session_wait(session, &job->pending);
    return SHUF_OK;
}
