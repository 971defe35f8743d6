/* SPDX-License-Identifier: MIT
 *
 * Mutations of protobuf messages and of streams of frames. See fuzz.h.
 */
#include "fuzz.h"

#include "message.h"

#include <stdbool.h>

enum { FIELDS = 128, FRAMES = 64, ROOM = 128 * 1024, DEPTH = 3, VARINT = 10 };
enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* xorshift64*: libFuzzer gives a seed only. */
static uint64_t state;

static void seed_draws(unsigned seed)
{
    state = (uint64_t)seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static uint64_t draw(uint64_t limit)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (state * UINT64_C(0x2545f4914f6cdd1d) >> 11) % limit;
}

struct span {
    size_t begin, end;
};

struct field {
    struct span all, value; /* for bytes, `value` does not include the length */
    uint64_t number;
    enum wire_type type;
};

struct output {
    uint8_t bytes[ROOM];
    size_t size;
};

static void put(struct output *out, const void *bytes, size_t size)
{
    if (size > ROOM - out->size)
        size = ROOM - out->size;
    if (size > 0)
        memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

static void put_varint(struct output *out, uint64_t value)
{
    uint8_t bytes[VARINT];
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[size++] = (uint8_t)(value | 0x80);
    bytes[size++] = (uint8_t)value;
    put(out, bytes, size);
}

static bool get_varint(const uint8_t *bytes, size_t size, size_t *at, uint64_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < VARINT && *at < size; i++) {
        const uint8_t byte = bytes[(*at)++];
        *value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80)
            return true;
    }
    return false;
}

static bool get_value(const uint8_t *bytes, size_t size, size_t *at, struct field *field)
{
    uint64_t length = field->type == WIRE_64 ? 8 : 4;
    field->value.begin = *at;
    if (field->type == WIRE_VARINT)
        return get_varint(bytes, size, at, &length);
    if (field->type == WIRE_BYTES && !get_varint(bytes, size, at, &length))
        return false;
    if (field->type != WIRE_BYTES && field->type != WIRE_64 && field->type != WIRE_32)
        return false;
    field->value.begin = *at;
    if (length > size - *at)
        return false;
    *at += length;
    return true;
}

/* Returns the number of fields, or -1 if the bytes are no message. */
static int find_fields(const uint8_t *bytes, size_t size, struct field fields[FIELDS])
{
    int count = 0;
    for (size_t at = 0; at < size; count++) {
        uint64_t tag;
        struct field *field = &fields[count];
        if (count == FIELDS)
            return -1;
        field->all.begin = at;
        if (!get_varint(bytes, size, &at, &tag))
            return -1;
        field->number = tag >> 3;
        field->type = (enum wire_type)(tag & 7);
        if (!get_value(bytes, size, &at, field))
            return -1;
        field->all.end = field->value.end = at;
    }
    return count;
}

static uint64_t draw_value(void)
{
    static const uint64_t few[] = {0, 1, 2, 3, 7, 8, 100, 1000, 4096, 8000, 8001, 65535, 65536};
    const unsigned shift = (unsigned)draw(65);
    switch (draw(4)) {
    case 0:
        return few[draw(sizeof few / sizeof *few)];
    case 1:
        return (shift == 64 ? 0 : UINT64_C(1) << shift) - draw(2);
    case 2:
        return (shift == 64 ? 0 : UINT64_C(1) << shift) + draw(3);
    default:
        return draw(256);
    }
}

static void put_new_field(struct output *out)
{
    const uint64_t number = 1 + draw(30);
    static const uint8_t zeros[32];
    switch (draw(3)) {
    case 0:
        put_varint(out, number << 3 | WIRE_VARINT);
        put_varint(out, draw_value());
        break;
    case 1: {
        const uint64_t value = draw_value();
        put_varint(out, number << 3 | WIRE_64);
        put(out, &value, sizeof value);
        break;
    }
    default: {
        const uint64_t length = draw(sizeof zeros);
        put_varint(out, number << 3 | WIRE_BYTES);
        put_varint(out, length);
        put(out, zeros, length);
    }
    }
}

static void mutate_into(struct output *out, const uint8_t *bytes, size_t size, unsigned depth);

static void put_bytes(struct output *out, const uint8_t *bytes, size_t size, unsigned depth)
{
    static struct output nested[DEPTH + 1];
    struct field fields[FIELDS];
    struct output *inner = &nested[depth];
    inner->size = 0;
    if (depth > 0 && draw(4) != 0 && find_fields(bytes, size, fields) >= 0) {
        mutate_into(inner, bytes, size, depth - 1);
    } else {
        put(inner, bytes, size);
        const size_t room = size < 1024 ? 2048 : 2 * size;
        inner->size = LLVMFuzzerMutate(inner->bytes, inner->size, room < ROOM ? room : ROOM);
    }
    put_varint(out, inner->size);
    put(out, inner->bytes, inner->size);
}

static void put_changed(struct output *out, const uint8_t *bytes, const struct field *field,
                        unsigned depth)
{
    const uint64_t number = draw(16) == 0 ? 1 + draw(30) : field->number;
    put_varint(out, number << 3 | (unsigned)field->type);
    if (field->type == WIRE_VARINT) {
        put_varint(out, draw_value());
    } else if (field->type == WIRE_BYTES) {
        put_bytes(out, bytes + field->value.begin, field->value.end - field->value.begin, depth);
    } else {
        uint64_t value = draw_value();
        if (draw(2) == 0) {
            const double fraction = (double)value / 3 * (draw(2) ? 1 : -1);
            memcpy(&value, &fraction, sizeof value);
        }
        put(out, &value, field->type == WIRE_64 ? 8 : 4);
    }
}

static void put_span(struct output *out, const uint8_t *bytes, struct span span)
{
    put(out, bytes + span.begin, span.end - span.begin);
}

enum change { CHANGE, DELETE, REPEAT, SWAP, ADD, CHANGES };

/* Most mutations change a value. */
static enum change draw_change(void)
{
    const uint64_t number = draw(CHANGES + 5);
    return number < CHANGES ? (enum change)number : CHANGE;
}

static void mutate_into(struct output *out, const uint8_t *bytes, size_t size, unsigned depth)
{
    struct field fields[FIELDS];
    const int count = find_fields(bytes, size, fields);
    if (count <= 0) {
        put(out, bytes, size);
        put_new_field(out);
        return;
    }
    const enum change change = draw_change();
    const int chosen = (int)draw((uint64_t)count), other = (int)draw((uint64_t)count);
    for (int i = 0; i < count; i++) {
        if (i == chosen && change == DELETE)
            continue;
        if (i == chosen && change == CHANGE)
            put_changed(out, bytes, &fields[i], depth);
        else if (change == SWAP && (i == chosen || i == other))
            put_span(out, bytes, fields[i == chosen ? other : chosen].all);
        else
            put_span(out, bytes, fields[i].all);
        if (i == chosen && change == REPEAT)
            put_span(out, bytes, fields[other].all);
        if (i == chosen && change == ADD)
            put_new_field(out);
    }
}

static size_t copy_out(const struct output *out, uint8_t *bytes, size_t room)
{
    const size_t size = out->size < room ? out->size : room;
    memcpy(bytes, out->bytes, size);
    return size;
}

size_t wire_mutate_message(uint8_t *message, size_t size, size_t room, unsigned seed)
{
    static struct output out;
    seed_draws(seed);
    if (size > ROOM || draw(8) == 0)
        return LLVMFuzzerMutate(message, size, room);
    out.size = 0;
    mutate_into(&out, message, size, DEPTH);
    return copy_out(&out, message, room);
}

static int find_frames(const uint8_t *stream, size_t size, struct span frames[FRAMES])
{
    int count = 0;
    size_t at = 0, length;
    while (count < FRAMES &&
           shuf__frame_parse(stream + at, size - at, &length) == SHUF__FRAME_WHOLE) {
        frames[count++] = (struct span){at, at + SHUF__FRAME_HEADER + length};
        at += SHUF__FRAME_HEADER + length;
    }
    return count;
}

static void put_mutated_frame(struct output *out, const uint8_t *stream, struct span frame)
{
    static struct output message;
    uint8_t header[SHUF__FRAME_HEADER];
    message.size = 0;
    mutate_into(&message, stream + frame.begin + SHUF__FRAME_HEADER,
                frame.end - frame.begin - SHUF__FRAME_HEADER, DEPTH);
    if (message.size == 0 || message.size > SHUF__FRAME_MAX) {
        put_span(out, stream, frame);
        return;
    }
    shuf__frame_header(header, message.size);
    put(out, header, sizeof header);
    put(out, message.bytes, message.size);
}

size_t wire_mutate_frames(uint8_t *stream, size_t size, size_t room, unsigned seed)
{
    static struct output out;
    struct span frames[FRAMES];
    seed_draws(seed);
    const int count = size > ROOM ? 0 : find_frames(stream, size, frames);
    if (count == 0 || draw(8) == 0)
        return LLVMFuzzerMutate(stream, size, room);
    const uint64_t change = draw(10);
    const int chosen = (int)draw((uint64_t)count), other = (int)draw((uint64_t)count);
    out.size = 0;
    for (int i = 0; i < count; i++) {
        if (i == chosen && change == 0 && count > 1)
            continue;
        if (i == chosen && change == 1)
            put_span(&out, stream, frames[other]);
        if (i == chosen && change > 1)
            put_mutated_frame(&out, stream, frames[i]);
        else
            put_span(&out, stream, frames[i]);
    }
    put(&out, stream + frames[count - 1].end, size - frames[count - 1].end);
    return copy_out(&out, stream, room);
}
