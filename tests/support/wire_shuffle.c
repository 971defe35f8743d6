/* SPDX-License-Identifier: MIT
 *
 * See wire_shuffle.h.
 */
#include "support/wire_shuffle.h"

#include "support/cmocka_all.h"

#include <sys/mman.h>
#include <unistd.h>

#define HOST SHUF__TRANSPORT__TRANSPORT_MEMFD
#define DEVICE SHUF__TRANSPORT__TRANSPORT_CUDA_FD

void wire_send_allocate(struct wire *w, uint64_t bytes, Shuf__Transport transport)
{
    struct shuf__result_message buffer = wire_result(SHUF__RESULT__WHAT_BUFFER, transport);
    buffer.buffer.bytes = bytes;
    wire_send_result(w, &buffer);
}

Shuf__ResultReply wire_allocate(struct wire *w, uint64_t bytes, Shuf__Transport transport)
{
    wire_send_allocate(w, bytes, transport);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->body_case, SHUF__REPLY__BODY_RESULT);
    const Shuf__ResultReply r = *reply->result;
    assert_true(r.lease != 0 && r.block != 0 && r.block_bytes >= bytes && !r.shared);
    assert_true(r.transport == transport && r.bytes == bytes && r.count == bytes && r.rows == 1);
    assert_int_equal(r.descriptor, transport == HOST || transport == DEVICE);
    assert_int_equal(reply->payload_bytes + r.n_first + r.n_last + r.record, 0);
    return r;
}

void wire_send_write(struct wire *w, uint64_t lease, uint64_t offset, const void *data, size_t size)
{
    Shuf__Write write = SHUF__WRITE__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    write.lease = lease;
    write.offset = offset;
    write.data.data = (uint8_t *)(uintptr_t)data;
    write.data.len = size;
    request.body_case = SHUF__REQUEST__BODY_WRITE;
    request.write = &write;
    wire_send(w, &request);
}

struct shuf__result_message wire_shuffle_of(uint64_t lease, uint64_t n, uint64_t record,
                                            Shuf__Transport transport)
{
    struct shuf__result_message shuffle = wire_result(SHUF__RESULT__WHAT_SHUFFLE, transport);
    shuffle.permutation.n = n;
    shuffle.permutation.seed = 7;
    shuffle.shuffle.record = record;
    shuffle.shuffle.lease = lease;
    return shuffle;
}

const Shuf__Reply *wire_shuffle(struct wire *w, struct shuf__result_message *shuffle)
{
    const uint64_t n = shuffle->permutation.n, record = shuffle->shuffle.record;
    wire_send_result(w, shuffle);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->body_case, SHUF__REPLY__BODY_RESULT);
    const Shuf__ResultReply *r = reply->result;
    assert_string_equal(r->algorithm, "primefold");
    assert_true(r->rows == 1 && r->count == n && r->record == record);
    assert_true(r->bytes == n * record && !r->shared);
    assert_int_equal(r->n_first + r->n_last + r->fingerprint, 0);
    return reply;
}

void *wire_map_writable(struct wire *w, uint64_t bytes)
{
    int fd = wire_take_descriptor(w);
    void *view = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(view, MAP_FAILED);
    close(fd);
    return view;
}

bool wire_is_zero(const uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}
