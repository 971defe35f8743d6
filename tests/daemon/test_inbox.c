/* SPDX-License-Identifier: MIT
 *
 * A session receives a bounded number of bytes in a turn, even if its client has sent more.
 */
#include "net/inbox.h"

#include "support/cmocka_all.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FRAME = SHUF__FRAME_HEADER + SHUF__FRAME_MAX, TURNS = (FRAME - 1) / SHUF__INBOX_CHUNK + 1 };

static struct shuf__inbox inbox;
static uint8_t frame[FRAME];
static int ends[2];

/* Sends a frame of the largest size. */
static int start(void **state)
{
    (void)state;
    inbox.begin = inbox.end = 0;
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = (uint8_t)(i * 7);
    shuf__frame_header(frame, SHUF__FRAME_MAX);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    assert_int_equal(send(ends[0], frame, sizeof frame, 0), sizeof frame);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static void large_frame_needs_several_turns(void **state)
{
    const uint8_t *message;
    size_t length;
    (void)state;
    for (int turn = 0; turn < TURNS; turn++) {
        assert_false(shuf__inbox_has_frame(&inbox));
        assert_in_range(shuf__inbox_receive(&inbox, ends[1]), 1, SHUF__INBOX_CHUNK);
    }
    assert_int_equal(shuf__inbox_next(&inbox, &message, &length), SHUF__FRAME_WHOLE);
    assert_int_equal(length, SHUF__FRAME_MAX);
    assert_memory_equal(message, frame + SHUF__FRAME_HEADER, SHUF__FRAME_MAX);
    assert_int_equal(shuf__inbox_compact(&inbox), 0);
}

static void discard_needs_several_turns(void **state)
{
    (void)state;
    for (int turn = 0; turn < TURNS; turn++)
        assert_in_range(shuf__inbox_discard(&inbox, ends[1]), 1, SHUF__INBOX_CHUNK);
    assert_int_equal(shuf__inbox_discard(&inbox, ends[1]), -1);
    assert_int_equal(shuf__inbox_compact(&inbox), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(large_frame_needs_several_turns, start, stop),
        cmocka_unit_test_setup_teardown(discard_needs_several_turns, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
