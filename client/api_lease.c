/* SPDX-License-Identifier: MIT
 *
 * See api_lease.h. The public calls for leases: take, release, read, write and prefetch.
 */
#include "api_lease.h"

#include "arguments.h"
#include "call.h"
#include "interrupt.h"
#include "result_message.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The end of a lease ---- */

/* Unmaps the values; the object stays. Fills *release, and returns true if it must be sent. It must
 * not be sent if the connection of the lease has ended, or if the lease belongs to the parent of
 * this process. */
static bool end_held_lease(struct shuf__held_lease *lease, struct shuf__release_message *release)
{
    shuf *h = lease->handle;
    const bool ours = shuf__handle_is_ours(h);
    const bool must_send = lease->public_lease.id != 0 && ours && h->connection.fd >= 0 &&
                           lease->generation == h->connection.generation;
    if (!ours)
        shuf__gpus_forget(h->mappings.gpus);
    shuf__release_message_init(release, lease->public_lease.id);
    if (lease->public_lease.event)
        shuf__gpu_event_close(&lease->mapping->view, lease->public_lease.event);
    if (lease->mapping)
        release->message.n_unmapped =
            shuf__mapping_release(&h->mappings, lease->mapping, must_send, release->blocks);
    lease->mapping = NULL;
    LIST_REMOVE(lease, link);
    return must_send;
}

static void free_lease(struct shuf__held_lease *lease)
{
    if (lease)
        free(lease->copy);
    free(lease);
}

/* Fails with SHUF_INVALID, and the message in the handle, if the handle does not hold the lease: it
 * may be released, so its memory is not read. */
static shuf_status check_lease(shuf *handle, const shuf_lease *lease)
{
    const struct shuf__held_lease *held = LIST_FIRST(&handle->leases);
    while (held && &held->public_lease != lease)
        held = LIST_NEXT(held, link);
    if (held || !lease)
        return SHUF_OK;
    return shuf__fail(&handle->error, SHUF_INVALID,
                      "lease %p: released or of another handle, expected one of this handle",
                      (const void *)lease);
}

shuf_status shuf_lease_release(shuf *handle, shuf_lease **lease)
{
    struct shuf__release_message release;
    SHUF__BEGIN_CALL(call, handle);
    if (!call)
        return SHUF_INVALID;
    if (!lease || !*lease)
        return SHUF_OK;
    if (check_lease(handle, *lease))
        return handle->error.status;
    struct shuf__held_lease *l = (struct shuf__held_lease *)*lease;
    const bool must_send = end_held_lease(l, &release);
    free_lease(l);
    *lease = NULL;
    return must_send ? shuf__release_send(handle, &release.message, &handle->error) : SHUF_OK;
}

void shuf__release_quietly(shuf *handle, shuf_lease *lease)
{
    struct shuf__error kept = handle->error;
    shuf_lease_release(handle, &lease);
    handle->error = kept;
}

void shuf__held_leases_free(shuf *handle)
{
    struct shuf__release_message ignored;
    struct shuf__held_lease *lease;
    while ((lease = LIST_FIRST(&handle->leases))) {
        end_held_lease(lease, &ignored);
        free_lease(lease);
    }
}

/* ---- The beginning ---- */

struct lease_take {
    struct shuf__request_message request;
    struct shuf__release_message release; /* of the old lease, which this one replaces */
    struct shuf__mapping_info info;
    struct shuf__held_lease *lease;
};

static shuf_status reserve_copy(struct shuf__held_lease *lease, uint64_t bytes,
                                struct shuf__error *error)
{
    if (bytes <= lease->copy_size)
        return SHUF_OK;
    free(lease->copy);
    lease->copy = bytes > SIZE_MAX ? NULL : malloc(bytes);
    lease->copy_size = lease->copy ? bytes : 0;
    if (lease->copy)
        return SHUF_OK;
    return shuf__fail(error, SHUF_NO_MEMORY,
                      "bytes %" PRIu64 ": out of memory for a copy of the values", bytes);
}

static shuf_status read_lease_reply(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                                    struct shuf__error *error)
{
    struct lease_take *t = trip->context;
    shuf_result *result = &t->lease->public_lease.result;
    if (shuf__request_message_read_reply(&t->request, reply, result, error) ||
        shuf__mapping_info_read(reply->result, t->request.transports, &result->shape,
                                shuf__request_message_is_buffer(&t->request), &t->info, error))
        return error->status;
    if (t->info.lease != 0) {
        trip->payload_bytes = trip->delivered = 0;
        return SHUF_OK;
    }
    if (reserve_copy(t->lease, result->shape.bytes, error))
        return error->status;
    trip->payload_bytes = result->shape.bytes;
    trip->memory = t->lease->copy;
    return SHUF_OK;
}

/* The daemon does not have the old lease any more: its connection has ended, or the refused request
 * has given it back. */
static void drop_old_release(struct shuf__round_trip *trip)
{
    struct lease_take *t = trip->context;
    shuf__request_message_give_back(&t->request, NULL);
}

static shuf_status open_event(struct lease_take *t, struct shuf__error *error)
{
    if (!t->info.has_event)
        return SHUF_OK;
    return shuf__gpu_event_open(&t->lease->mapping->view, t->info.event,
                                &t->lease->public_lease.event, error);
}

/* This process cannot use the new lease: gives it back, or closes the connection. */
static shuf_status reject_lease(shuf *h, struct lease_take *t)
{
    struct shuf__error ignored;
    if (h->error.status == SHUF_PROTOCOL) {
        shuf__connection_close(&h->connection, SHUF__CLOSED_BY_ERROR);
        return h->error.status;
    }
    shuf__release_message_init(&t->release, t->info.lease);
    t->release.blocks[0] = t->info.block;
    t->release.message.n_unmapped = !shuf__mapping_exists(&h->mappings, t->info.block);
    shuf__release_send(h, &t->release.message, &ignored);
    return h->error.status;
}

static shuf_status map_lease(shuf *h, struct lease_take *t)
{
    int fd = shuf__connection_descriptor(&h->connection);
    struct shuf__held_lease *lease = t->lease;
    shuf__mappings_set_generation(&h->mappings, h->connection.generation);
    shuf_status status =
        shuf__mapping_acquire(&h->mappings, &t->info, fd, &lease->mapping, &h->error);
    if (fd >= 0)
        close(fd);
    if (status != SHUF_OK)
        return reject_lease(h, t);
    if (open_event(t, &h->error)) {
        uint64_t blocks[SHUF__UNMAPPED_MAX];
        shuf__mapping_release(&h->mappings, lease->mapping, false, blocks);
        return reject_lease(h, t);
    }
    return SHUF_OK;
}

static void set_public_lease(struct lease_take *t)
{
    const struct shuf__mapping_info *info = &t->info;
    shuf_lease *lease = &t->lease->public_lease;
    const void *values = t->lease->mapping ? shuf__mapping_at(t->lease->mapping, info->offset)
                         : info->writable  ? NULL
                                           : t->lease->copy;
    t->lease->is_buffer = info->writable;
    lease->data = lease->result.shape.bytes > 0 ? values : NULL;
    lease->buffer = info->writable ? (void *)(uintptr_t)lease->data : NULL;
    lease->transport = info->transport;
    memcpy(lease->device_id, info->device_id, sizeof lease->device_id);
    lease->shared = info->shared;
    lease->id = info->lease;
    lease->block = info->block;
    lease->block_bytes = info->block_bytes;
}

/* After a failure the caller frees t->lease. */
static shuf_status request_lease(shuf *h, struct lease_take *t, bool with_release)
{
    struct shuf__round_trip trip = {
        .request = &t->request.message,
        .prepare_retry = drop_old_release,
        .read_reply = read_lease_reply,
        .context = t,
        .generation = t->request.generation,
        .needs_buffer = t->request.needs_buffer,
    };
    if (with_release)
        shuf__request_message_give_back(&t->request, &t->release.message);
    t->lease->handle = h;
    t->lease->public_lease.event = NULL;
    t->lease->public_lease.result = (shuf_result){.shape = t->request.shape};
    if (shuf__call_run(h, &trip))
        return h->error.status;
    if (t->info.transport != SHUF_INLINE && map_lease(h, t))
        return h->error.status;
    set_public_lease(t);
    t->lease->generation = h->connection.generation;
    LIST_INSERT_HEAD(&h->leases, t->lease, link);
    return SHUF_OK;
}

/* Rejects a lease with the transport INLINE: the daemon cannot read this process's own memory. */
shuf_status shuf__set_input(struct shuf__request_message *m, const shuf_request *request,
                            struct shuf__error *error)
{
    if (request->kind != SHUF_RECORDS)
        return SHUF_OK;
    const shuf_lease *input = request->records.input;
    const struct shuf__held_lease *held = (const struct shuf__held_lease *)input;
    if (input->id == 0)
        return shuf__fail(error, SHUF_INVALID,
                          "input by %s: a copy in this process, expected a buffer, or a lease by "
                          "memfd, cuda-fd or cuda-ipc",
                          shuf_transport_name(input->transport));
    m->result.shuffle.lease = input->id;
    m->generation = held->generation;
    m->needs_buffer = held->is_buffer;
    return shuf__shuffle_check_input(&m->request, input->id, input->result.shape.bytes, error);
}

static shuf_status make_request(struct shuf__request_message *m, const shuf_request *request,
                                const shuf_lease_options *lease_options, struct shuf__error *error)
{
    unsigned transports = lease_options ? lease_options->transports : 0;
    if (transports == 0)
        transports = SHUF_MEMFD | SHUF_INLINE;
    if (shuf__request_message_make(m, request, error) || shuf__set_input(m, request, error))
        return error->status;
    if (lease_options && lease_options->event && (transports & SHUF_CUDA_IPC))
        shuf__request_message_set_event(m);
    return shuf__request_message_accept(m, transports, error);
}

static shuf_status prepare_lease(struct lease_take *t, const shuf_request *request,
                                 const shuf_lease_options *lease_options, struct shuf__error *error)
{
    if (make_request(&t->request, request, lease_options, error))
        return error->status;
    if (!t->lease)
        t->lease = calloc(1, sizeof *t->lease);
    return t->lease ? SHUF_OK : shuf__fail(error, SHUF_NO_MEMORY, "lease: out of memory");
}

shuf_status shuf__input_check(shuf *handle, const shuf_request *request, const shuf_lease *old)
{
    const shuf_lease *input = request->records.input;
    if (request->kind != SHUF_RECORDS)
        return SHUF_OK;
    if (!input)
        return shuf__fail(&handle->error, SHUF_INVALID, "input NULL: expected a lease");
    if (check_lease(handle, input))
        return handle->error.status;
    if (old == input)
        return shuf__fail(&handle->error, SHUF_INVALID,
                          "lease %" PRIu64 ": the input, expected another, or NULL", input->id);
    return SHUF_OK;
}

/* Gives the old lease back even if the new request fails before it is sent. */
static shuf_status take_lease(shuf *handle, const shuf_request *request,
                              const shuf_lease_options *lease_options, shuf_lease **lease)
{
    struct lease_take t;
    struct shuf__error ignored;
    if (check_lease(handle, *lease) || shuf__input_check(handle, request, *lease))
        return handle->error.status;
    t.lease = (struct shuf__held_lease *)*lease;
    bool must_release = t.lease && end_held_lease(t.lease, &t.release);
    *lease = NULL;
    shuf_status status = prepare_lease(&t, request, lease_options, &handle->error);
    if (status == SHUF_OK)
        status = request_lease(handle, &t, must_release);
    else if (must_release)
        shuf__release_send(handle, &t.release.message, &ignored);
    if (status == SHUF_OK)
        *lease = &t.lease->public_lease;
    else
        free_lease(t.lease);
    return status;
}

shuf_status shuf_lease_take(shuf *handle, const shuf_request *request,
                            const shuf_lease_options *options, shuf_lease **lease)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(request), SHUF__POINTER(lease));
    return call ? take_lease(handle, request, options, lease) : SHUF_INVALID;
}

/* ---- Prefetch ---- */

static shuf_status read_prefetch_reply(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                                       struct shuf__error *error)
{
    shuf_result ignored;
    return shuf__request_message_read_reply(trip->context, reply, &ignored, error);
}

shuf_status shuf_prefetch(shuf *handle, const shuf_request *request,
                          const shuf_lease_options *options)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(request));
    struct shuf__request_message m;
    if (!call)
        return SHUF_INVALID;
    if (make_request(&m, request, options, &handle->error))
        return handle->error.status;
    if (!shuf__request_message_set_prefetch(&m))
        return shuf__fail(&handle->error, SHUF_INVALID,
                          "kind %d: expected PERMUTATION, NUMBERS or RANKS", (int)request->kind);
    struct shuf__round_trip trip = {
        .request = &m.message, .read_reply = read_prefetch_reply, .context = &m};
    return shuf__call_run(handle, &trip);
}

/* ---- Reading and writing ---- */

enum { STEP = 64 << 20 }; /* bytes: memcpy() is fastest with many at once */

/* Copies between mapped memory and the caller's memory. A large copy takes long, so it asks the
 * interrupt function. Fails with SHUF_CANCELLED if a signal ends the call; the connection stays. */
static shuf_status copy_memory(shuf *handle, void *out, const void *in, size_t bytes)
{
    size_t some;
    for (size_t done = 0; done < bytes; done += some) {
        if (done > 0 && shuf__is_interrupted(0))
            return shuf__fail_interrupted(handle->connection.address.sun_path, &handle->error);
        some = bytes - done < STEP ? bytes - done : STEP;
        memcpy((char *)out + done, (const char *)in + done, some);
    }
    return SHUF_OK;
}

static shuf_status check_read(const shuf_lease *lease, uint64_t offset, size_t bytes,
                              const void *out, struct shuf__error *error)
{
    const uint64_t all = lease->result.shape.bytes;
    if (offset > all || bytes > all - offset)
        return shuf__fail(error, SHUF_INVALID,
                          "offset %" PRIu64 ", bytes %zu: expected to end within the %" PRIu64
                          " byte%s of the values",
                          offset, bytes, all, shuf__plural(all));
    if (bytes > 0 && !out)
        return shuf__fail(error, SHUF_INVALID, "out NULL: expected %zu byte%s", bytes,
                          shuf__plural(bytes));
    if (bytes > 0 && !lease->data)
        return shuf__fail(error, SHUF_INVALID,
                          "lease %" PRIu64 ": a buffer by inline, expected one that is mapped here",
                          lease->id);
    return SHUF_OK;
}

shuf_status shuf_lease_read(shuf *handle, const shuf_lease *lease, uint64_t offset, size_t bytes,
                            void *out)
{
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(lease));
    if (!call)
        return SHUF_INVALID;
    if (shuf__handle_check(handle) || check_lease(handle, lease) ||
        check_read(lease, offset, bytes, out, &handle->error))
        return handle->error.status;
    const struct shuf__mapping *mapping = ((const struct shuf__held_lease *)lease)->mapping;
    if (bytes == 0)
        return SHUF_OK;
    if (mapping && !mapping->host)
        return shuf__gpu_read(&mapping->view, lease->event,
                              (uintptr_t)lease->data - mapping->view.address + offset, bytes, out,
                              &handle->error);
    return copy_memory(handle, out, (const char *)lease->data + offset, bytes);
}

/* ---- Buffers ---- */

static shuf_status read_write_reply(struct shuf__round_trip *trip, const Shuf__Reply *reply,
                                    struct shuf__error *error)
{
    (void)trip;
    return shuf__reply_check(reply, SHUF__REPLY__BODY_WRITE, "a WriteReply", error);
}

static shuf_status send_write(shuf *handle, const struct shuf__held_lease *lease, uint64_t offset,
                              size_t bytes, const void *in)
{
    Shuf__Write write = SHUF__WRITE__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    write.lease = lease->public_lease.id;
    write.offset = offset;
    write.data.data = (uint8_t *)(uintptr_t)in; /* only read */
    write.data.len = bytes;
    request.body_case = SHUF__REQUEST__BODY_WRITE;
    request.write = &write;
    struct shuf__round_trip trip = {.request = &request,
                                    .read_reply = read_write_reply,
                                    .generation = lease->generation,
                                    .needs_buffer = true};
    return shuf__call_run(handle, &trip);
}

static shuf_status send_writes(shuf *handle, const struct shuf__held_lease *lease, uint64_t offset,
                               size_t bytes, const char *in)
{
    while (bytes > 0) {
        const size_t size = bytes < SHUF__WRITE_MAX ? bytes : SHUF__WRITE_MAX;
        if (send_write(handle, lease, offset, size, in))
            return handle->error.status;
        offset += size;
        in += size;
        bytes -= size;
    }
    return SHUF_OK;
}

static shuf_status check_write(const struct shuf__held_lease *l, uint64_t offset, size_t bytes,
                               const void *in, struct shuf__error *error)
{
    const shuf_lease *lease = &l->public_lease;
    if (!l->is_buffer)
        return shuf__fail(error, SHUF_INVALID,
                          "lease %" PRIu64 ": a result, expected a buffer to write to", lease->id);
    if (bytes > 0 && !in)
        return shuf__fail(error, SHUF_INVALID, "in NULL: expected %zu byte%s", bytes,
                          shuf__plural(bytes));
    return shuf__write_check(lease->id, offset, bytes, lease->result.shape.bytes, error);
}

shuf_status shuf_lease_write(shuf *handle, const shuf_lease *lease, uint64_t offset, size_t bytes,
                             const void *in)
{
    const struct shuf__held_lease *l = (const struct shuf__held_lease *)lease;
    SHUF__BEGIN_CALL(call, handle, SHUF__POINTER(lease));
    if (!call)
        return SHUF_INVALID;
    if (shuf__handle_check(handle) || check_lease(handle, lease) ||
        check_write(l, offset, bytes, in, &handle->error))
        return handle->error.status;
    if (bytes == 0)
        return SHUF_OK;
    if (!l->mapping)
        return send_writes(handle, l, offset, bytes, in);
    if (!l->mapping->host)
        return shuf__gpu_write(&l->mapping->view,
                               (uintptr_t)lease->buffer - l->mapping->view.address + offset, bytes,
                               in, &handle->error);
    return copy_memory(handle, (char *)lease->buffer + offset, in, bytes);
}
