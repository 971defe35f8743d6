/* SPDX-License-Identifier: MIT
 *
 * Write: fills a part of a buffer, by a job. The loop never touches the memory of a buffer: a
 * client that punches holes in it makes each access wait in the kernel.
 */
#include "cache/compute.h"
#include "handlers.h"
#include "parse.h"
#include "session_job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct write_job {
    struct shuf__session_job job;
    struct shuf__cache_entry *buffer; /* a reference */
    uint64_t offset;
    size_t count;
    uint8_t data[];
};

static void reply_write(struct shuf__session *session)
{
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__WriteReply body = SHUF__WRITE_REPLY__INIT;
    reply.body_case = SHUF__REPLY__BODY_WRITE;
    reply.write = &body;
    shuf__session_reply(session, &reply, NULL, NULL);
}

static void run_write(struct shuf__engine_job *engine_job, struct shuf__backend *backend)
{
    struct write_job *w = (struct write_job *)shuf__session_job_of(engine_job);
    w->job.error.status = backend->ops->write(backend, &w->buffer->allocation->block, w->offset,
                                              w->count, w->data, &w->job.error);
}

static void release_write(struct shuf__session_job *job)
{
    shuf__compute_unref(((struct write_job *)job)->buffer);
}

static void reply_write_job(const struct shuf__session_job *job)
{
    reply_write(job->session);
}

static struct write_job *make_write_job(struct shuf__cache_entry *buffer,
                                        const Shuf__Write *message)
{
    struct write_job *w = malloc(sizeof *w + message->data.len);
    if (!w)
        return NULL;
    *w = (struct write_job){
        .job = {.engine_job = {.name = "shufd: write", .run = run_write},
                .release = release_write,
                .reply = reply_write_job},
        .buffer = buffer,
        .offset = message->offset,
        .count = message->data.len,
    };
    memcpy(w->data, message->data.data, message->data.len);
    return w;
}

static void submit_write(struct shuf__session *session, struct shuf__cache_entry *buffer,
                         const Shuf__Write *message)
{
    struct shuf__error error;
    struct write_job *w = make_write_job(buffer, message);
    struct shuf__engine *engine = shuf__cache_entry_engine(buffer);
    if (!w)
        shuf__fail(&error, SHUF_NO_MEMORY, "request: out of memory");
    else if (shuf__session_job_submit(&w->job, engine, session, &error) == SHUF_OK) {
        shuf__cache_entry_ref(buffer);
        return;
    }
    free(w);
    shuf__session_fail(session, &error);
}

/* ---- the request ---- */

static shuf_status parse_write(const struct shuf__session *session, const Shuf__Write *message,
                               struct shuf__cache_entry **buffer, struct shuf__error *error)
{
    const struct shuf__lease *lease = shuf__lease_find(&session->leases, message->lease, error);
    if (!lease)
        return error->status;
    *buffer = lease->entry;
    if (!shuf__cache_key_is_buffer(&lease->entry->key))
        return shuf__fail(error, SHUF_INVALID,
                          "lease %" PRIu64 ": a result, expected a buffer to write to",
                          message->lease);
    if (message->data.len == 0 || message->data.len > SHUF__WRITE_MAX)
        return shuf__fail(error, SHUF_INVALID, "data of %zu bytes: expected 1 to %d",
                          message->data.len, SHUF__WRITE_MAX);
    return shuf__write_check(message->lease, message->offset, message->data.len,
                             lease->entry->bytes, error);
}

void shuf__handle_write(struct shuf__session *session, const Shuf__Request *message)
{
    struct shuf__error error;
    struct shuf__cache_entry *buffer = NULL;
    const Shuf__Write *write = message->write;
    if (parse_write(session, write, &buffer, &error))
        shuf__session_fail(session, &error);
    else
        submit_write(session, buffer, write);
}
