/* SPDX-License-Identifier: MIT
 *
 * Frames and their messages: the parser of frame headers at every length where its result changes,
 * packing and unpacking, the limits of a frame and of the arena, and malicious bytes. Each input of
 * the parser is a heap block of its exact size, so AddressSanitizer detects a read past its end.
 */
#include "message.h"
#include "result_message.h"
#include "support/cmocka_all.h"
#include "support/random.h"

#include <stdlib.h>
#include <string.h>

/* ---- The header ---- */

static enum shuf__frame_result parse(const uint8_t *bytes, size_t size, size_t *length)
{
    uint8_t *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    enum shuf__frame_result result = shuf__frame_parse(exact, size, length);
    free(exact);
    return result;
}

static void header_is_little_endian(void **state)
{
    (void)state;
    static const struct {
        size_t length;
        uint8_t header[SHUF__FRAME_HEADER];
    } rows[] = {
        {1, {1, 0, 0, 0}},      {255, {255, 0, 0, 0}},     {256, {0, 1, 0, 0}},
        {0x1234, {0x34, 0x12}}, {65535, {255, 255, 0, 0}}, {SHUF__FRAME_MAX, {0, 0, 1, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t header[SHUF__FRAME_HEADER];
        shuf__frame_header(header, rows[i].length);
        assert_memory_equal(header, rows[i].header, sizeof header);
    }
}

static void partial_frame_is_incomplete(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 255, 256, 4711, SHUF__FRAME_MAX};
    static uint8_t bytes[SHUF__FRAME_HEADER + SHUF__FRAME_MAX + 1];
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        size_t whole = SHUF__FRAME_HEADER + lengths[i], length = 0;
        shuf__frame_header(bytes, lengths[i]);
        assert_int_equal(parse(bytes, whole, &length), SHUF__FRAME_WHOLE);
        assert_int_equal(length, lengths[i]);
        length = 0;
        assert_int_equal(parse(bytes, whole + 1, &length), SHUF__FRAME_WHOLE);
        assert_int_equal(length, lengths[i]); /* the next frame's first byte is not counted */
        assert_int_equal(parse(bytes, whole - 1, &length), SHUF__FRAME_PARTIAL);
        for (size_t size = 0; size <= SHUF__FRAME_HEADER; size++)
            assert_int_equal(parse(bytes, size, &length), SHUF__FRAME_PARTIAL);
    }
}

/* A bad length is reported from the header alone, without waiting for the frame. */
static void bad_length_is_reported_from_header(void **state)
{
    (void)state;
    static const struct {
        uint8_t header[SHUF__FRAME_HEADER];
        size_t length;
    } rows[] = {
        {{0, 0, 0, 0}, 0},
        {{1, 0, 1, 0}, SHUF__FRAME_MAX + 1},
        {{0, 0, 0, 1}, 1 << 24},
        {{0, 0, 0, 0x80}, (size_t)1 << 31},
        {{255, 255, 255, 255}, UINT32_MAX},
        {{'G', 'E', 'T', ' '}, 0x20544547}, /* a web browser that connected by mistake */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t length = 4711;
        assert_int_equal(parse(rows[i].header, SHUF__FRAME_HEADER, &length), SHUF__FRAME_BAD);
        assert_int_equal(length, rows[i].length);
    }
}

/* ---- The message ---- */

static struct shuf__arena arena;
static uint8_t out[SHUF__FRAME_HEADER + SHUF__FRAME_MAX];

static size_t pack_permute(uint64_t id)
{
    static char algorithm[] = "philox24"; /* not const, because protobuf-c's strings are not */
    struct shuf__result_message m;
    shuf__result_message_init(&m, SHUF__RESULT__WHAT_PERMUTE);
    m.permutation.algorithm = algorithm;
    m.permutation.n = UINT64_C(1) << 62;
    m.permutation.seed = UINT64_C(0xfedcba9876543210);
    m.permutation.epoch = UINT64_MAX;
    m.permute.dtype = SHUF__DTYPE__DTYPE_I64;
    shuf__result_message_add_view(&m, SHUF__PERMUTE__VIEW_SLICE);
    m.slice.offset = 1;
    m.slice.count = 2;
    m.slice.stride = UINT64_C(1) << 61;
    Shuf__Request request = SHUF__REQUEST__INIT;
    request.id = id;
    request.body_case = SHUF__REQUEST__BODY_RESULT;
    request.result = &m.result;
    return shuf__message_pack(&request.base, out, sizeof out);
}

static void request_round_trips(void **state)
{
    (void)state;
    size_t length, size = pack_permute(4711);
    assert_int_equal(shuf__frame_parse(out, size, &length), SHUF__FRAME_WHOLE);
    assert_int_equal(size, SHUF__FRAME_HEADER + length);
    const Shuf__Request *r = shuf__request_unpack(&arena, out + SHUF__FRAME_HEADER, length);
    assert_non_null(r);
    assert_int_equal(r->id, 4711);
    assert_int_equal(r->body_case, SHUF__REQUEST__BODY_RESULT);
    assert_int_equal(r->result->what_case, SHUF__RESULT__WHAT_PERMUTE);
    const Shuf__Permute *permute = r->result->permute;
    assert_string_equal(permute->permutation->algorithm, "philox24");
    assert_int_equal(permute->permutation->n, UINT64_C(1) << 62);
    assert_int_equal(permute->permutation->seed, UINT64_C(0xfedcba9876543210));
    assert_int_equal(permute->permutation->epoch, UINT64_MAX);
    assert_int_equal(permute->epochs, 0);
    assert_int_equal(permute->view_case, SHUF__PERMUTE__VIEW_SLICE);
    assert_int_equal(permute->slice->stride, UINT64_C(1) << 61);
    assert_int_equal(permute->dtype, SHUF__DTYPE__DTYPE_I64);
    assert_in_range((uintptr_t)r, (uintptr_t)&arena, (uintptr_t)(&arena + 1));
}

static void reply_round_trips(void **state)
{
    (void)state;
    uint64_t first[] = {5, UINT64_MAX, 8};
    static char device[] = "a device", message[] = "queue full";
    Shuf__ResultReply permute = SHUF__RESULT_REPLY__INIT;
    permute.n_first = 3;
    permute.first = first;
    permute.device = device;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    reply.id = UINT64_MAX;
    reply.status = 3;
    reply.message = message;
    reply.body_case = SHUF__REPLY__BODY_RESULT;
    reply.result = &permute;
    reply.payload_bytes = UINT64_C(1) << 40;
    size_t size = shuf__message_pack(&reply.base, out, sizeof out);
    const Shuf__Reply *r =
        shuf__reply_unpack(&arena, out + SHUF__FRAME_HEADER, size - SHUF__FRAME_HEADER);
    assert_non_null(r);
    assert_int_equal(r->id, UINT64_MAX);
    assert_int_equal(r->status, 3);
    assert_string_equal(r->message, "queue full");
    assert_int_equal(r->result->n_first, 3);
    assert_memory_equal(r->result->first, first, sizeof first);
    assert_int_equal(r->result->n_last, 0);
    assert_string_equal(r->result->device, "a device");
    assert_int_equal(r->payload_bytes, UINT64_C(1) << 40);
}

/* Packing writes the whole message or nothing. At every size of the buffer, the byte after the
 * buffer stays unchanged. */
static void pack_fits_or_returns_zero(void **state)
{
    (void)state;
    size_t size = pack_permute(1);
    Shuf__Request *request =
        shuf__request__unpack(NULL, size - SHUF__FRAME_HEADER, out + SHUF__FRAME_HEADER);
    assert_non_null(request);
    for (size_t capacity = 0; capacity <= size + 1; capacity++) {
        uint8_t buffer[512];
        assert_in_range(size, 10, sizeof buffer - 2);
        memset(buffer, 0xA5, sizeof buffer);
        assert_int_equal(shuf__message_pack(&request->base, buffer, capacity),
                         capacity >= size ? size : 0);
        assert_int_equal(buffer[capacity < size ? 0 : size], 0xA5);
        if (capacity >= size)
            assert_memory_equal(buffer, out, size);
    }
    shuf__request__free_unpacked(request, NULL);
}

static size_t pack_text(size_t text_length, uint8_t *buffer, size_t capacity)
{
    char *text = calloc(1, text_length + 1);
    assert_non_null(text);
    memset(text, 'a', text_length);
    Shuf__Reply reply = SHUF__REPLY__INIT;
    reply.message = text;
    size_t size = shuf__message_pack(&reply.base, buffer, capacity);
    free(text);
    return size;
}

/* The tag and the length of the text take 4 bytes. */
static void frame_length_is_limited(void **state)
{
    (void)state;
    enum { ROOM = SHUF__FRAME_HEADER + 2 * SHUF__FRAME_MAX };
    uint8_t *buffer = malloc(ROOM);
    assert_non_null(buffer);
    size_t size = pack_text(SHUF__FRAME_MAX - 4, buffer, ROOM);
    assert_int_equal(size, SHUF__FRAME_HEADER + SHUF__FRAME_MAX);
    const Shuf__Reply *r = shuf__reply_unpack(&arena, buffer + SHUF__FRAME_HEADER, SHUF__FRAME_MAX);
    assert_non_null(r);
    assert_int_equal(strlen(r->message), SHUF__FRAME_MAX - 4);
    assert_int_equal(pack_text(SHUF__FRAME_MAX - 3, buffer, ROOM), 0);
    free(buffer);
}

/* Writes the tag and the length of a field of bytes. Returns their size. */
static size_t put_field(uint8_t *to, unsigned field, size_t length)
{
    size_t used = 0;
    to[used++] = (uint8_t)(field << 3 | 2);
    for (; length >= 0x80; length >>= 7)
        to[used++] = (uint8_t)(length | 0x80);
    to[used++] = (uint8_t)length;
    return used;
}

/* A malicious ResultReply.first, packed: each byte of input would take eight bytes of memory. The
 * arena refuses, and the parser does not use the heap. */
static void hostile_packed_field_is_refused(void **state)
{
    (void)state;
    static uint8_t bytes[SHUF__FRAME_MAX];
    size_t few = 1000, many = SHUF__FRAME_MAX - 16;
    for (size_t packed = few; packed <= many; packed += many - few) {
        uint8_t first[8];
        size_t inner = put_field(first, 8, packed);
        size_t length = put_field(bytes, 5, inner + packed);
        memcpy(bytes + length, first, inner);
        memset(bytes + length + inner, 1, packed);
        const Shuf__Reply *r = shuf__reply_unpack(&arena, bytes, length + inner + packed);
        assert_int_equal(r != NULL, packed == few);
    }
}

static void truncated_bytes_are_refused(void **state)
{
    (void)state;
    size_t size = pack_permute(300) - SHUF__FRAME_HEADER;
    unsigned refused = 0;
    for (size_t length = 0; length < size; length++) {
        uint8_t *exact = malloc(length + 1);
        assert_non_null(exact);
        memcpy(exact, out + SHUF__FRAME_HEADER, length);
        refused += shuf__request_unpack(&arena, exact, length) == NULL;
        free(exact);
    }
    /* Some prefixes end between two fields. Only these are valid messages. */
    assert_in_range(refused, size - 3, size);
}

static void garbage_does_not_crash_unpack(void **state)
{
    (void)state;
    random_start("garbage_does_not_crash_unpack");
    size_t size = pack_permute(300) - SHUF__FRAME_HEADER;
    unsigned refused = 0;
    for (int i = 0; i < 20000; i++) {
        size_t length = random_size(512);
        uint8_t *bytes = malloc(length);
        assert_non_null(bytes);
        for (size_t k = 0; k < length; k++)
            bytes[k] = (uint8_t)random_u64();
        if (i % 2) { /* otherwise the bytes are a good message with one byte changed */
            length = length < size ? length : size;
            memcpy(bytes, out + SHUF__FRAME_HEADER, length);
            bytes[random_below(length)] = (uint8_t)random_u64();
        }
        refused += shuf__request_unpack(&arena, bytes, length) == NULL;
        refused += shuf__reply_unpack(&arena, bytes, length) == NULL;
        assert_in_range(arena.used, 0, SHUF__ARENA_SIZE);
        free(bytes);
    }
    assert_in_range(refused, 1000, 40000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_is_little_endian),
        cmocka_unit_test(partial_frame_is_incomplete),
        cmocka_unit_test(bad_length_is_reported_from_header),
        cmocka_unit_test(request_round_trips),
        cmocka_unit_test(reply_round_trips),
        cmocka_unit_test(pack_fits_or_returns_zero),
        cmocka_unit_test(frame_length_is_limited),
        cmocka_unit_test(hostile_packed_field_is_refused),
        cmocka_unit_test(truncated_bytes_are_refused),
        cmocka_unit_test(garbage_does_not_crash_unpack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
