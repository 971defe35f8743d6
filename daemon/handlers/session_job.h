/* SPDX-License-Identifier: MIT
 *
 * A job of the engine for which a session waits, such as a look-up or a write.
 */
#ifndef SHUFD_SESSION_JOB_H
#define SHUFD_SESSION_JOB_H

#include "engine/engine.h"
#include "net/session.h"

/* The first member of the struct of a kind of job, which malloc() has made. The caller sets
 * release, reply and engine_job.run, and may set engine_job.begin. */
struct shuf__session_job {
    struct shuf__pending pending;
    struct shuf__engine_job engine_job;
    struct shuf__session *session;                      /* NULL: the session is closed */
    struct shuf__error error;                           /* status SHUF_OK: none */
    void (*release)(struct shuf__session_job *job);     /* gives its memory back at the end */
    void (*reply)(const struct shuf__session_job *job); /* if no error, and session is not NULL */
};

struct shuf__session_job *shuf__session_job_of(struct shuf__engine_job *engine_job);

/* Submits the job to the engine and lets the session wait for it. The job is freed after its reply.
 * Fails with SHUF_BUSY when the queue is full. After a failure the caller still owns the job. */
shuf_status shuf__session_job_submit(struct shuf__session_job *job, struct shuf__engine *engine,
                                     struct shuf__session *session, struct shuf__error *error);

#endif
