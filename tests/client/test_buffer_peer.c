/* SPDX-License-Identifier: MIT
 *
 * Buffers of a client, whose peer is a fake daemon. The client sends messages to allocate, write
 * and release a buffer, and refuses wrong replies.
 */
#include "support/cmocka_all.h"
#include "support/fake_lease_server.h"
#include "support/take.h"

#include <string.h>

static void buffer_is_mapped_by_descriptor(void **state)
{
    (void)state;
    shuf_lease *lease = NULL;
    shuf *handle = lease_server_start(lease_server_script);
    for (int i = 0; i < 2; i++) { /* a small buffer is not kept mapped either */
        assert_int_equal(take_buffer(handle, 1000, NULL, &lease), SHUF_OK);
        memset(lease->buffer, 7, 1000);
        assert_int_equal(lease_server_mappings(), 1);
    }
    lease_server_release(handle, &lease);
    assert_int_equal(lease_server_mappings(), 0);
    lease_server_finish(handle, "hello buffer+ buffer+-1/299 release-2/299");
}

static void buffer_is_written_by_messages(void **state)
{
    (void)state;
    static char in[61440 + 100];
    const shuf_lease_options options = {.transports = SHUF_INLINE};
    shuf_lease *lease = NULL;
    lease_server.transport = SHUF__TRANSPORT__TRANSPORT_INLINE;
    shuf *handle = lease_server_start(lease_server_script);
    assert_int_equal(take_buffer(handle, 100000, &options, &lease), SHUF_OK);
    assert_null(lease->buffer);
    assert_null(lease->data);
    assert_int_equal(shuf_lease_write(handle, lease, 5, sizeof in, in), SHUF_OK);
    lease_server_release(handle, &lease);
    lease_server_finish(handle, "hello buffer write5:61440 write61445:100 release-1");
}

static void wrong_write_reply_is_refused(void **state)
{
    (void)state;
    const shuf_lease_options options = {.transports = SHUF_INLINE};
    shuf_lease *lease = NULL;
    lease_server.transport = SHUF__TRANSPORT__TRANSPORT_INLINE;
    lease_server.wrong_write_reply = true;
    shuf *handle = lease_server_start(lease_server_script);
    assert_int_equal(take_buffer(handle, 100, &options, &lease), SHUF_OK);
    assert_int_equal(shuf_lease_write(handle, lease, 0, 1, ""), SHUF_PROTOCOL);
    assert_non_null(strstr(shuf_message(handle), "expected a WriteReply"));
    lease_server_finish(handle, "hello buffer write0:1");
}

static void clear_lease_id(struct lease_server_reply *p)
{
    p->reply.lease = 0;
}

static void shrink_block(struct lease_server_reply *p)
{
    p->reply.block_bytes = 999;
}

static void increment_count(struct lease_server_reply *p)
{
    p->reply.count++;
}

static void set_record_8(struct lease_server_reply *p)
{
    p->reply.record = 8;
}

static void wrong_allocate_replies_are_refused(void **state)
{
    (void)state;
    static const struct {
        void (*corrupt)(struct lease_server_reply *reply);
        const char *words;
    } rows[] = {
        {clear_lease_id, "reply lease 0: expected another"},
        {shrink_block, "expected 1000 bytes behind it in a block of 999"},
        {increment_count, "reply of 1 x 1001 values in 1000 bytes"},
        {set_record_8, "reply record 8: expected 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        shuf_lease *lease = NULL;
        const shuf_lease_options options = {.transports = SHUF_INLINE};
        lease_server.transport = SHUF__TRANSPORT__TRANSPORT_INLINE;
        lease_server.corrupt = rows[i].corrupt;
        shuf *handle = lease_server_start(lease_server_script);
        assert_int_equal(take_buffer(handle, 1000, &options, &lease), SHUF_PROTOCOL);
        if (!strstr(shuf_message(handle), rows[i].words))
            fail_msg("%s", shuf_message(handle));
        lease_server_finish(handle, "hello buffer");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffer_is_mapped_by_descriptor),
        cmocka_unit_test(buffer_is_written_by_messages),
        cmocka_unit_test(wrong_write_reply_is_refused),
        cmocka_unit_test(wrong_allocate_replies_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
