/* SPDX-License-Identifier: MIT
 *
 * The parser of frame headers, at every length where its result changes. Each input is a heap block
 * of its exact size, so AddressSanitizer detects a read past its end.
 */
#include "support/cmocka_all.h"

#include "message.h"

#include <stdlib.h>
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_is_little_endian),
        cmocka_unit_test(partial_frame_is_incomplete),
        cmocka_unit_test(bad_length_is_reported_from_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
