/* SPDX-License-Identifier: MIT
 *
 * See bulk.h.
 */
#include "bulk.h"

#include <assert.h>
#include <stdlib.h>

static size_t chunk_at(const struct shuf__bulk *bulk, uint64_t offset)
{
    uint64_t left = bulk->size - offset;
    return left < SHUF__BULK_CHUNK ? (size_t)left : SHUF__BULK_CHUNK;
}

static uint8_t *stage_of(const struct shuf__bulk *bulk, uint64_t offset)
{
    return bulk->stage[offset / SHUF__BULK_CHUNK % SHUF__BULK_STAGES];
}

static struct shuf__bulk *bulk_of(struct shuf__task *task)
{
    return (struct shuf__bulk *)((char *)task - offsetof(struct shuf__bulk, fetch));
}

static void run_fetch(struct shuf__task *task, struct shuf__backend *backend)
{
    struct shuf__bulk *bulk = bulk_of(task);
    uint64_t offset = bulk->fetched;
    bulk->error.status =
        backend->ops->read(backend, &bulk->result->cell->block, offset, chunk_at(bulk, offset),
                           stage_of(bulk, offset), &bulk->error);
}

/* Begins the next fetch where there is a chunk left and a stage free for it. */
static void fetch_more(struct shuf__bulk *bulk)
{
    uint64_t chunks = bulk->fetched / SHUF__BULK_CHUNK - bulk->sent / SHUF__BULK_CHUNK;
    if (bulk->fetching || bulk->fetched == bulk->size || chunks >= SHUF__BULK_STAGES)
        return;
    bulk->fetching = true;
    shuf__engine_follow_up(bulk->engine, &bulk->fetch);
}

static void end_fetch(struct shuf__task *task)
{
    struct shuf__bulk *bulk = bulk_of(task);
    bulk->fetching = false;
    if (bulk->error.status == SHUF_OK)
        bulk->fetched += chunk_at(bulk, bulk->fetched);
    bulk->ready(bulk->context);
}

static shuf_status make_stages(struct shuf__bulk *bulk, struct shuf__error *error)
{
    for (size_t i = 0; i < SHUF__BULK_STAGES && i * SHUF__BULK_CHUNK < bulk->size; i++) {
        bulk->stage[i] = malloc(chunk_at(bulk, i * SHUF__BULK_CHUNK));
        if (!bulk->stage[i])
            return shuf__fail(error, SHUF_NO_MEMORY, "result: no memory for its chunks");
    }
    return SHUF_OK;
}

static void free_stages(struct shuf__bulk *bulk)
{
    for (size_t i = 0; i < SHUF__BULK_STAGES; i++) {
        free(bulk->stage[i]);
        bulk->stage[i] = NULL;
    }
}

shuf_status shuf__bulk_begin(struct shuf__bulk *bulk, struct shuf__result *result,
                             struct shuf__engine *engine, uint64_t size, struct shuf__error *error)
{
    assert(!bulk->result && size <= result->cell->block.bytes);
    bulk->engine = engine;
    bulk->size = size;
    bulk->sent = bulk->fetched = 0;
    bulk->error.status = SHUF_OK;
    if (!result->cell->block.host && make_stages(bulk, error)) {
        free_stages(bulk);
        return error->status;
    }
    bulk->result = result;
    bulk->fetch.run = run_fetch;
    bulk->fetch.done = end_fetch;
    if (!result->cell->block.host)
        fetch_more(bulk);
    return SHUF_OK;
}

/* The chunks of a staged result: the rest of the one that `sent` stands in. */
static enum shuf__bulk_state next_staged(struct shuf__bulk *bulk, const uint8_t **bytes,
                                         size_t *size)
{
    fetch_more(bulk);
    if (bulk->sent >= bulk->fetched)
        return SHUF__BULK_WAIT;
    size_t inside = bulk->sent % SHUF__BULK_CHUNK;
    *bytes = stage_of(bulk, bulk->sent) + inside;
    *size = chunk_at(bulk, bulk->sent - inside) - inside;
    return SHUF__BULK_READY;
}

enum shuf__bulk_state shuf__bulk_next(struct shuf__bulk *bulk, const uint8_t **bytes, size_t *size)
{
    *size = 0;
    if (!bulk->result || bulk->sent == bulk->size)
        return SHUF__BULK_END;
    if (!bulk->fetching && bulk->error.status) /* the engine's own while it fetches */
        return SHUF__BULK_FAILED;
    if (!bulk->result->cell->block.host)
        return next_staged(bulk, bytes, size);
    *bytes = (const uint8_t *)bulk->result->cell->block.host + bulk->sent;
    *size = chunk_at(bulk, bulk->sent);
    return SHUF__BULK_READY;
}

void shuf__bulk_advance(struct shuf__bulk *bulk, size_t sent)
{
    bulk->sent += sent;
    assert(bulk->sent <= bulk->size);
}

bool shuf__bulk_end(struct shuf__bulk *bulk)
{
    if (bulk->fetching)
        return false;
    free_stages(bulk);
    if (bulk->result)
        shuf__result_unref(bulk->result);
    bulk->result = NULL;
    return true;
}
