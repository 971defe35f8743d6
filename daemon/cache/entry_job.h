/* SPDX-License-Identifier: MIT
 *
 * The job that computes one entry of the cache: its states, the memory that it holds, and its calls
 * of the backend. Only one thread at a time uses a job. The lanes' mutex guards the queues by which
 * the job goes from one thread to another.
 */
#ifndef SHUFD_ENTRY_JOB_H
#define SHUFD_ENTRY_JOB_H

#include "memory/workspace.h"
#include "summary.h"

#include <sys/queue.h>

struct shuf__waiter; /* compute.h */

/* entry_job.c has the table of transitions. */
enum shuf__job_state {
    SHUF__JOB_QUEUED,      /* waits in the engine's queue, without memory */
    SHUF__JOB_STARTED,     /* has its memory; from now on a lane's thread may use the job */
    SHUF__JOB_LAUNCHED,    /* the device computes */
    SHUF__JOB_EVENT_READY, /* LAUNCHED, and the IPC event of its end is made */
    SHUF__JOB_COMPLETE,    /* values and summary are computed */
    SHUF__JOB_FAILED,      /* `error` says why */
    SHUF__JOB_STATES,
};

struct shuf__entry_job {
    struct shuf__engine_job engine_job;
    struct shuf__cache_entry *entry; /* a reference */
    enum shuf__job_state state;
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

/* Makes a QUEUED job for the entry and takes a reference to it. The caller sets engine_job.done.
 * NULL when out of memory. */
struct shuf__entry_job *shuf__entry_job_make(struct shuf__cache_entry *entry);

void shuf__entry_job_free(struct shuf__entry_job *job);

struct shuf__entry_job *shuf__entry_job_of(struct shuf__engine_job *engine_job);

void shuf__entry_job_set_state(struct shuf__entry_job *job, enum shuf__job_state state);

/* ---- on the loop's thread ---- */

/* Fails with SHUF_NO_MEMORY if a job for the entry could never get its memory. */
shuf_status shuf__entry_job_check_fit(const struct shuf__cache_entry *entry,
                                      struct shuf__error *error);

/* Gives the memory beside the result back. The computation on the device must be over, because a
 * job in another lane may use this memory next. */
void shuf__entry_job_release(struct shuf__entry_job *job);

/* Call after a failure. If the device had no memory for the job, evicts idle memory and queues the
 * job again. Returns whether the job is queued again. */
bool shuf__entry_job_retry(struct shuf__entry_job *job);

/* Updates the number of committed bytes of the entry's allocation. */
void shuf__entry_note_memory(const struct shuf__cache_entry *entry);

/* Marks the entry as ready: its values are computed. */
void shuf__entry_become_ready(struct shuf__cache_entry *entry);

/* ---- on the thread that has the backend ---- */

/* Whether computing the entry is quick (compute.h). */
bool shuf__entry_is_quick(const struct shuf__backend *backend,
                          const struct shuf__cache_entry *entry,
                          const struct shuf__compute_options *options);

/* Computes a quick entry that has its memory. *complete is false if the computation is launched but
 * takes longer than expected. */
shuf_status shuf__entry_compute_quick(struct shuf__backend *backend,
                                      const struct shuf__cache_entry *entry,
                                      const struct shuf__compute_options *options,
                                      struct shuf__summary *summary, bool *complete,
                                      struct shuf__error *error);

/* Waits until the launched computation of an entry is over. */
shuf_status shuf__entry_wait(struct shuf__backend *backend, struct shuf__summary *summary,
                             struct shuf__error *error);

#endif
