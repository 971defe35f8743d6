/* SPDX-License-Identifier: MIT
 *
 * See outbox.h.
 */
#include "outbox.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- The payload ---- */

enum payload_state {
    PAYLOAD_READY,  /* there are bytes to send */
    PAYLOAD_WAIT,   /* a fetch runs; `ready` will be called at its end */
    PAYLOAD_END,    /* everything is sent */
    PAYLOAD_FAILED, /* payload->error says why */
};

static size_t chunk_at(const struct shuf__payload *payload, uint64_t offset)
{
    uint64_t left = payload->size - offset;
    return left < SHUF__PAYLOAD_CHUNK ? (size_t)left : SHUF__PAYLOAD_CHUNK;
}

static uint8_t *stage_of(const struct shuf__payload *payload, uint64_t offset)
{
    return payload->stage[offset / SHUF__PAYLOAD_CHUNK % SHUF__PAYLOAD_STAGES];
}

static struct shuf__payload *payload_of(struct shuf__engine_job *job)
{
    return (struct shuf__payload *)((char *)job - offsetof(struct shuf__payload, fetch));
}

static void run_fetch(struct shuf__engine_job *job, struct shuf__backend *backend)
{
    struct shuf__payload *payload = payload_of(job);
    uint64_t offset = payload->fetched;
    payload->error.status =
        backend->ops->read(backend, &payload->entry->allocation->block, offset,
                           chunk_at(payload, offset), stage_of(payload, offset), &payload->error);
}

/* Begins to fetch the next chunk, if one is left and a stage is free. */
static void fetch_more(struct shuf__payload *payload)
{
    uint64_t chunks = payload->fetched / SHUF__PAYLOAD_CHUNK - payload->sent / SHUF__PAYLOAD_CHUNK;
    if (payload->fetching || payload->fetched == payload->size || chunks >= SHUF__PAYLOAD_STAGES)
        return;
    payload->fetching = true;
    shuf__engine_submit_urgent(payload->entry->cache->engine, &payload->fetch);
}

static void end_fetch(struct shuf__engine_job *job)
{
    struct shuf__payload *payload = payload_of(job);
    payload->fetching = false;
    if (payload->error.status == SHUF_OK)
        payload->fetched += chunk_at(payload, payload->fetched);
    payload->ready(payload->context);
}

static shuf_status make_stages(struct shuf__payload *payload, struct shuf__error *error)
{
    for (size_t i = 0; i < SHUF__PAYLOAD_STAGES && i * SHUF__PAYLOAD_CHUNK < payload->size; i++) {
        payload->stage[i] = malloc(chunk_at(payload, i * SHUF__PAYLOAD_CHUNK));
        if (!payload->stage[i])
            return shuf__fail(error, SHUF_NO_MEMORY, "result: no memory for its chunks");
    }
    return SHUF_OK;
}

static void free_stages(struct shuf__payload *payload)
{
    for (size_t i = 0; i < SHUF__PAYLOAD_STAGES; i++) {
        free(payload->stage[i]);
        payload->stage[i] = NULL;
    }
}

shuf_status shuf__payload_begin(struct shuf__payload *payload, struct shuf__cache_entry *entry,
                                struct shuf__error *error)
{
    assert(!payload->entry && entry->bytes <= entry->allocation->block.bytes);
    payload->entry = entry;
    payload->size = entry->bytes;
    payload->sent = payload->fetched = 0;
    payload->since_ns = uv_hrtime();
    payload->error.status = SHUF_OK;
    payload->fetch.name = "shufd: read";
    payload->fetch.run = run_fetch;
    payload->fetch.done = end_fetch;
    payload->host = entry->allocation->block.host;
    if (payload->host)
        return SHUF_OK;
    if (make_stages(payload, error)) {
        free_stages(payload);
        payload->entry = NULL;
        return error->status;
    }
    fetch_more(payload);
    return SHUF_OK;
}

void shuf__payload_begin_text(struct shuf__payload *payload, char *text, size_t size)
{
    assert(!payload->entry && !payload->text);
    payload->text = text;
    payload->host = (const uint8_t *)text;
    payload->size = size;
    payload->sent = 0;
    payload->error.status = SHUF_OK;
}

/* The rest of the staged chunk that contains `sent`. */
static enum payload_state next_staged(struct shuf__payload *payload, const uint8_t **bytes,
                                      size_t *size)
{
    fetch_more(payload);
    if (payload->sent >= payload->fetched)
        return PAYLOAD_WAIT;
    size_t inside = payload->sent % SHUF__PAYLOAD_CHUNK;
    *bytes = stage_of(payload, payload->sent) + inside;
    *size = chunk_at(payload, payload->sent - inside) - inside;
    return PAYLOAD_READY;
}

/* Sets *bytes and *size to the bytes to send next, at most SHUF__PAYLOAD_CHUNK. */
static enum payload_state next_chunk(struct shuf__payload *payload, const uint8_t **bytes,
                                     size_t *size)
{
    *size = 0;
    if (!payload->fetching && payload->error.status) /* a running fetch may write the error */
        return PAYLOAD_FAILED;
    if ((!payload->entry && !payload->text) || payload->sent == payload->size)
        return PAYLOAD_END;
    if (!payload->host)
        return next_staged(payload, bytes, size);
    *bytes = payload->host + payload->sent;
    *size = chunk_at(payload, payload->sent);
    return PAYLOAD_READY;
}

/* Call when `sent` of these bytes are sent. */
static void advance_payload(struct shuf__payload *payload, size_t sent)
{
    payload->sent += sent;
    assert(payload->sent <= payload->size);
}

void shuf__payload_abandon(struct shuf__payload *payload, const char *why)
{
    const bool ended = shuf__payload_end(payload);
    assert(ended);
    (void)ended;
    shuf__fail(&payload->error, SHUF_BUSY, "%s", why);
}

bool shuf__payload_end(struct shuf__payload *payload)
{
    if (payload->fetching)
        return false;
    free_stages(payload);
    if (payload->entry)
        shuf__cache_entry_unref(payload->entry);
    payload->entry = NULL;
    free(payload->text);
    payload->text = NULL;
    return true;
}

/* ---- The reply ---- */

void shuf__outbox_put(struct shuf__outbox *outbox, const Shuf__Reply *reply)
{
    outbox->sent = 0;
    outbox->size = shuf__message_pack(&reply->base, outbox->reply, sizeof outbox->reply);
    assert(outbox->size > 0); /* all strings of a reply are bounded */
}

static void attach(struct msghdr *message, int descriptor)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
}

/* Sends the rest of the reply and a chunk of the payload. Returns the sent bytes, or -1 with errno.
 */
static ssize_t send_parts(const struct shuf__outbox *outbox, int fd, const uint8_t *chunk,
                          size_t size, int descriptor)
{
    struct iovec parts[2] = {
        {(void *)(uintptr_t)(outbox->reply + outbox->sent), outbox->size - outbox->sent},
        {(void *)(uintptr_t)chunk, size},
    };
    union {
        struct cmsghdr header; /* only gives the union its alignment */
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (descriptor >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        attach(&message, descriptor);
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static ssize_t send_lent(const struct shuf__outbox *outbox, int fd, int descriptor)
{
    const ssize_t sent = send_parts(outbox, fd, NULL, 0, descriptor);
    const int cause = errno;
    close(descriptor);
    errno = cause;
    return sent;
}

static void note_sent(struct shuf__outbox *outbox, size_t sent)
{
    const size_t left = outbox->size - outbox->sent, of_reply = sent < left ? sent : left;
    outbox->sent += of_reply;
    advance_payload(&outbox->payload, sent - of_reply);
}

enum shuf__outbox_state shuf__outbox_send(struct shuf__outbox *outbox, int fd)
{
    const uint8_t *chunk = NULL;
    size_t size;
    enum payload_state state = next_chunk(&outbox->payload, &chunk, &size);
    if (state == PAYLOAD_FAILED)
        return SHUF__OUTBOX_FAILED;
    if (outbox->sent == outbox->size && state == PAYLOAD_WAIT)
        return SHUF__OUTBOX_WAIT;
    const int descriptor =
        outbox->lent.allocation ? shuf__allocation_export(outbox->lent.allocation) : -1;
    if (outbox->lent.allocation && descriptor < 0)
        return SHUF__OUTBOX_UNLENT;
    const ssize_t sent = descriptor >= 0 ? send_lent(outbox, fd, descriptor)
                                         : send_parts(outbox, fd, chunk, size, -1);
    if (sent < 0)
        return errno == EAGAIN || errno == EINTR ? SHUF__OUTBOX_MORE
               : errno == ETOOMANYREFS           ? SHUF__OUTBOX_UNLENT
                                                 : SHUF__OUTBOX_LOST;
    outbox->lent.allocation = NULL;
    outbox->has_lent |= descriptor >= 0;
    note_sent(outbox, (size_t)sent);
    if (outbox->sent < outbox->size || next_chunk(&outbox->payload, &chunk, &size) != PAYLOAD_END)
        return SHUF__OUTBOX_MORE;
    outbox->sent = outbox->size = 0;
    return SHUF__OUTBOX_SENT;
}
