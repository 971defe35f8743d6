/* SPDX-License-Identifier: MIT
 *
 * Write: fills a part of a buffer. Host memory is written to on the spot, since a copy of
 * one frame takes microseconds; device memory by whoever drives the device.
 */
#include "cache/compute.h"
#include "handlers.h"
#include "parse.h"
#include "server.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* One that the engine is at. */
struct shuf__writing {
    struct shuf__engine_job task;
    struct shuf__session *session; /* NULL: it has left */
    struct shuf__server *server;
    struct shuf__cache_entry *buffer; /* a reference */
    uint64_t offset;
    struct shuf__error error;
    size_t count;
    uint8_t data[];
};

static struct shuf__writing *writing_of(struct shuf__engine_job *task)
{
    return (struct shuf__writing *)((char *)task - offsetof(struct shuf__writing, task));
}

static void reply(struct shuf__session *session, const struct shuf__error *error)
{
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__WriteReply body = SHUF__WRITE_REPLY__INIT;
    if (error->status) {
        shuf__session_fail(session, error);
        return;
    }
    reply.body_case = SHUF__REPLY__BODY_WRITE;
    reply.write = &body;
    shuf__session_reply(session, &reply, NULL, -1);
}

static void run(struct shuf__engine_job *task, struct shuf__backend *backend)
{
    struct shuf__writing *w = writing_of(task);
    w->error.status = backend->ops->write(backend, &w->buffer->allocation->block, w->offset,
                                          w->count, w->data, &w->error);
}

static void done(struct shuf__engine_job *task)
{
    struct shuf__writing *w = writing_of(task);
    struct shuf__session *session = w->session;
    if (session) {
        session->writing = NULL;
        shuf__session_resume(session);
        reply(session, &w->error);
        shuf__session_continue(session);
    }
    shuf__compute_unref(w->buffer);
    if (w->error.status == SHUF_DEVICE)
        shuf__server_device_failed(w->server, &w->error);
    free(w);
}

void shuf__writing_drop(struct shuf__writing *w)
{
    w->session->writing = NULL;
    w->session = NULL;
    shuf__engine_cancel(w->server->engine, &w->task);
}

static struct shuf__writing *make_writing(struct shuf__session *session,
                                          struct shuf__cache_entry *buffer,
                                          const Shuf__Write *request)
{
    struct shuf__writing *w = malloc(sizeof *w + request->data.len);
    if (!w)
        return NULL;
    *w = (struct shuf__writing){
        .task = {.run = run, .done = done},
        .session = session,
        .server = session->server,
        .buffer = buffer,
        .offset = request->offset,
        .count = request->data.len,
    };
    memcpy(w->data, request->data.data, request->data.len);
    return w;
}

static shuf_status hand_over(struct shuf__session *session, struct shuf__cache_entry *buffer,
                             const Shuf__Write *request, struct shuf__error *error)
{
    struct shuf__server *server = session->server;
    struct shuf__writing *w = make_writing(session, buffer, request);
    if (!w)
        return shuf__fail(error, SHUF_NO_MEMORY, "request: out of memory");
    if (!shuf__engine_submit(server->engine, &w->task)) {
        free(w);
        return shuf__fail(error, SHUF_BUSY,
                          "queue %" PRIu64 ": the most jobs that may wait; try again later",
                          server->config->queue);
    }
    shuf__cache_entry_ref(buffer);
    shuf__session_work(session, NULL);
    session->writing = w;
    return SHUF_OK;
}

static shuf_status parse(const struct shuf__session *session, const Shuf__Write *request,
                         struct shuf__cache_entry **buffer, struct shuf__error *error)
{
    const struct shuf__lease *lease = shuf__lease_find(session, request->lease, error);
    if (!lease)
        return error->status;
    *buffer = lease->result;
    if (!shuf__key_is_buffer(&lease->result->key))
        return shuf__fail(error, SHUF_INVALID,
                          "lease %" PRIu64 ": a result, expected a buffer to write to",
                          request->lease);
    if (request->data.len == 0 || request->data.len > SHUF__WRITE_MAX)
        return shuf__fail(error, SHUF_INVALID, "data of %zu bytes: expected 1 to %d",
                          request->data.len, SHUF__WRITE_MAX);
    return shuf__write_check(request->lease, request->offset, request->data.len,
                             lease->result->bytes, error);
}

void shuf__handle_write(struct shuf__session *session, const Shuf__Request *request)
{
    struct shuf__error error = {0};
    struct shuf__cache_entry *buffer = NULL;
    const Shuf__Write *write = request->write;
    struct shuf__backend *backend = shuf__engine_backend(session->server->engine);
    if (parse(session, write, &buffer, &error)) {
        shuf__session_fail(session, &error);
        return;
    }
    if (buffer->allocation->kind == SHUF__MEMORY_MEMFD) {
        error.status = backend->ops->write(backend, &buffer->allocation->block, write->offset,
                                           write->data.len, write->data.data, &error);
        reply(session, &error);
    } else if (hand_over(session, buffer, write, &error)) {
        shuf__session_fail(session, &error);
    }
}
