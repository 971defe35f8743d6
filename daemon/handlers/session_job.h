/* SPDX-License-Identifier: MIT
 *
 * A job in the engine's queue that a session waits for, such as look-ups and writes.
 */
#ifndef SHUFD_SESSION_JOB_H
#define SHUFD_SESSION_JOB_H

#include "engine/engine.h"
#include "net/session.h"

/* The first member of a struct from malloc(). The caller sets engine_job.run (and .begin), release
 * and reply. */
struct shuf__session_job {
    struct shuf__pending pending;
    struct shuf__engine_job engine_job;
    struct shuf__session *session; /* NULL: it is closed */
    struct shuf__engine *engine;
    struct shuf__error error;                           /* status SHUF_OK: none */
    void (*release)(struct shuf__session_job *job);     /* its memory, when it is over */
    void (*reply)(const struct shuf__session_job *job); /* without an error; session is not NULL */
};

struct shuf__session_job *shuf__session_job_of(struct shuf__engine_job *engine_job);

/* Submits the job and lets the session wait for it. The job is freed after its reply. Fails with
 * SHUF_BUSY when the queue is full: the job is still the caller's then. */
shuf_status shuf__session_job_submit(struct shuf__session_job *job, struct shuf__session *session,
                                     struct shuf__error *error);

#endif
