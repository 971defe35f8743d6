/* SPDX-License-Identifier: MIT
 *
 * Frames as the daemon reads them. The inbox must find the same messages for every division of the
 * bytes. A message that is unpacked, packed and unpacked again must stay the same, except for its
 * unknown fields.
 */
#include "fuzz.h"
#include "message.h"
#include "net/inbox.h"

#include <endian.h>
#include <sys/socket.h>

static int ends[2];
static struct shuf__inbox inbox;
static struct shuf__arena arena;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    return wire_mutate_frames(data, size, room, seed);
}

/* Removes the unknown fields, because protobuf-c may pack their tags in another form than it has
 * read. */
static void drop_unknown_fields(ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    message->n_unknown_fields = 0;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        void *const *nested = (void *)((char *)message + field->offset);
        const int *chosen = (void *)((char *)message + field->quantifier_offset);
        if (field->type != PROTOBUF_C_TYPE_MESSAGE ||
            ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && *chosen != (int)field->id))
            continue;
        fuzz_require(field->label != PROTOBUF_C_LABEL_REPEATED);
        if (*nested)
            drop_unknown_fields(*nested);
    }
}

static void check_message(const uint8_t *bytes, size_t length)
{
    static uint8_t once[SHUF__FRAME_HEADER + SHUF__FRAME_MAX], twice[sizeof once];
    const Shuf__Request *request = shuf__request_unpack(&arena, bytes, length);
    fuzz_require(arena.used <= SHUF__ARENA_SIZE);
    if (request)
        drop_unknown_fields((ProtobufCMessage *)(uintptr_t)&request->base);
    const size_t size = request ? shuf__message_pack(&request->base, once, sizeof once) : 0;
    if (size == 0) /* it is empty, or its packed form is longer than a frame may be */
        return;
    request = shuf__request_unpack(&arena, once + SHUF__FRAME_HEADER, size - SHUF__FRAME_HEADER);
    fuzz_require(request != NULL);
    fuzz_require(shuf__message_pack(&request->base, twice, sizeof twice) == size);
    fuzz_require(memcmp(once, twice, size) == 0);
}

struct expected {
    const uint8_t *at;
    size_t left;
};

/* Reads a frame as docs/protocol.md defines it, without code of the daemon. */
static enum shuf__frame_result parse(const struct expected *expected, size_t *length)
{
    uint32_t field;
    if (expected->left < 4)
        return SHUF__FRAME_PARTIAL;
    memcpy(&field, expected->at, 4);
    *length = le32toh(field);
    if (*length < 1 || *length > 65536)
        return SHUF__FRAME_BAD;
    return expected->left < 4 + *length ? SHUF__FRAME_PARTIAL : SHUF__FRAME_WHOLE;
}

/* Takes all complete messages. Returns false if one is bad. */
static bool take_messages(struct expected *expected)
{
    enum shuf__frame_result found;
    const uint8_t *message;
    size_t length, wanted = 0;
    for (;;) {
        const bool has_frame = shuf__inbox_has_frame(&inbox);
        const struct expected held = {expected->at, inbox.end - inbox.begin};
        found = shuf__inbox_next(&inbox, &message, &length);
        fuzz_require(has_frame == (found != SHUF__FRAME_PARTIAL));
        fuzz_require(parse(&held, &wanted) == found);
        if (found == SHUF__FRAME_PARTIAL)
            return true;
        fuzz_require(length == wanted);
        if (found == SHUF__FRAME_BAD)
            return false;
        fuzz_require(memcmp(message, expected->at + SHUF__FRAME_HEADER, length) == 0);
        expected->at += SHUF__FRAME_HEADER + length;
        expected->left -= SHUF__FRAME_HEADER + length;
        check_message(message, length);
    }
}

static void empty_socket(void)
{
    char rest[4096];
    while (recv(ends[1], rest, sizeof rest, 0) > 0)
        ;
}

/* Sends the bytes in pieces. The bytes themselves choose the sizes of the pieces. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct expected expected = {data, size};
    bool good = true;
    inbox.begin = inbox.end = 0;
    for (size_t done = 0, piece; done < size && good; done += piece) {
        piece = 1 + (data[done] % 16 == 0 ? data[done] / 16 : size - done - 1);
        if (piece > size - done)
            piece = size - done;
        if (shuf__inbox_compact(&inbox) + piece > sizeof inbox.bytes)
            piece = sizeof inbox.bytes - inbox.end;
        fuzz_require(piece > 0);
        piece = (size_t)send(ends[0], data + done, piece, MSG_NOSIGNAL);
        fuzz_require((ssize_t)piece > 0);
        fuzz_require(shuf__inbox_receive(&inbox, ends[1]) == (ssize_t)piece);
        good = take_messages(&expected);
    }
    empty_socket();
    return 0;
}
