/* SPDX-License-Identifier: MIT
 *
 * libshuf with peers that are not shufd. The peer is a thread with a raw socket. It sends garbage
 * or wrong replies, or closes the connection in the middle of a call. Each fault has its status,
 * and no call hangs.
 */
#include "shuf.h"
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/expected.h"
#include "support/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The peer's side ---- */

/* Returns the id of the next request, or 0 when the client has closed the connection; *epoch of a
 * Permute. */
static uint64_t next_request(int fd, uint64_t *epoch)
{
    const Shuf__Request *request = peer_receive(fd);
    if (request && epoch && request->body_case == SHUF__REQUEST__BODY_RESULT)
        *epoch = request->result->permute->permutation->epoch;
    return request ? request->id : 0;
}

enum { VALUES = 300007, BYTES = VALUES * 4 };
static const shuf_request expected_request = {.permutation = {.n = VALUES, .seed = 7, .epoch = 3}};
static uint32_t values_sent[VALUES];

/* Sends the correct reply with the fields that a script changed, then `bytes` bytes of the
 * payload. */
static void send_reply(int fd, const Shuf__ResultReply *changed, uint64_t payload, size_t bytes)
{
    Shuf__ResultReply permute = SHUF__RESULT_REPLY__INIT;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    uint64_t epoch = 0;
    if (changed)
        permute = *changed;
    permute.rows = permute.rows ? permute.rows : 1;
    permute.count = permute.count ? permute.count : VALUES;
    permute.bytes = permute.bytes ? permute.bytes : BYTES;
    permute.dtype = permute.dtype ? permute.dtype : SHUF__DTYPE__DTYPE_U32;
    permute.transport = SHUF__TRANSPORT__TRANSPORT_INLINE;
    reply.id = next_request(fd, &epoch);
    if (reply.id == 0 || epoch != expected_request.permutation.epoch)
        return;
    reply.body_case = SHUF__REPLY__BODY_RESULT;
    reply.result = &permute;
    reply.payload_bytes = payload;
    peer_send_reply(fd, &reply, NULL, 0);
    peer_send(fd, values_sent, bytes);
}

/* ---- Greetings ---- */

static void sends_garbage(int fd, int connection)
{
    (void)connection;
    peer_send(fd, "\x08\x00\x00\x00garbage!", 12);
    peer_await_close(fd);
}

static void sends_http(int fd, int connection)
{
    (void)connection;
    peer_send(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28); /* a length of 0x50545448 */
    peer_await_close(fd);
}

static void sends_empty_frame(int fd, int connection)
{
    (void)connection;
    peer_send(fd, "\0\0\0\0", 4);
    peer_await_close(fd);
}

static void sends_long_frame(int fd, int connection)
{
    (void)connection;
    peer_send(fd, "\x01\x00\x01\x00", 4); /* 65 537 */
    peer_await_close(fd);
}

static void welcomes_with_wrong_id(int fd, int connection)
{
    (void)connection;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 1);
    peer_await_close(fd);
}

static void welcomes_with_version_2(int fd, int connection)
{
    (void)connection;
    peer_welcome(fd, 2, 0);
    peer_await_close(fd);
}

static void refuses_the_version(int fd, int connection)
{
    (void)connection;
    peer_refuse(fd, next_request(fd, NULL), SHUF_VERSION, 0);
    peer_await_close(fd);
}

/* The peer refuses the connection before it reads the Hello: id 0, then it closes. The client still
 * gets the message. */
static void refuses_as_busy(int fd, int connection)
{
    (void)connection;
    peer_refuse(fd, 0, SHUF_BUSY, 0);
}

static void sends_ok_with_id_0(int fd, int connection)
{
    (void)connection;
    peer_refuse(fd, 0, SHUF_OK, 0);
    peer_await_close(fd);
}

static void replies_without_a_body(int fd, int connection)
{
    (void)connection;
    peer_refuse(fd, next_request(fd, NULL), SHUF_OK, 0);
    peer_await_close(fd);
}

static void refuses_with_no_daemon(int fd, int connection)
{
    (void)connection;
    peer_refuse(fd, next_request(fd, NULL), SHUF_NO_DAEMON, 0);
    peer_await_close(fd);
}

static void closes_at_once(int fd, int connection)
{
    (void)fd;
    (void)connection;
}

static void closes_in_a_frame(int fd, int connection)
{
    (void)connection;
    next_request(fd, NULL);
    peer_send(fd, "\x10\x00\x00\x00half", 8);
}

static void sends_nothing(int fd, int connection)
{
    (void)connection;
    peer_await_close(fd);
}

static void wrong_greetings_are_errors(void **state)
{
    (void)state;
    static const struct {
        peer_script script;
        shuf_status status;
        const char *words;
    } rows[] = {
        {sends_garbage, SHUF_PROTOCOL, "not a reply"},
        {sends_http, SHUF_PROTOCOL,
         "frame length 1347703880: expected 1 to 65536; perhaps another program has this socket"},
        {sends_empty_frame, SHUF_PROTOCOL, "frame length 0"},
        {sends_long_frame, SHUF_PROTOCOL, "frame length 65537"},
        {welcomes_with_wrong_id, SHUF_PROTOCOL, "reply id 2: expected 1"},
        {welcomes_with_version_2, SHUF_VERSION, "protocol version 2 of " PEER_HOSTILE_SHOWN ":"},
        {refuses_the_version, SHUF_VERSION, "because"},
        {refuses_as_busy, SHUF_BUSY, "because?[2J?"},
        {sends_ok_with_id_0, SHUF_PROTOCOL, "reply id 0"},
        {replies_without_a_body, SHUF_PROTOCOL, "HelloReply"},
        {refuses_with_no_daemon, SHUF_PROTOCOL, "NO_DAEMON"},
        {sends_nothing, SHUF_TIMEOUT, "did nothing for 10000 ms"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        shuf *handle;
        peer_start(rows[i].script);
        shuf_status status = shuf_connect(&handle, peer_path());
        if (status != rows[i].status || !strstr(shuf_message(handle), rows[i].words))
            fprintf(stderr, "row %zu: %s\n", i, shuf_message(handle));
        assert_int_equal(status, rows[i].status);
        assert_non_null(strstr(shuf_message(handle), rows[i].words));
        shuf_close(handle);
        assert_int_equal(peer_stop(), 1);
    }
}

static void closes_twice(int fd, int connection)
{
    if (connection < 2) {
        closes_in_a_frame(fd, connection);
        return;
    }
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    peer_await_close(fd);
}

static void is_late_twice(int fd, int connection)
{
    if (connection < 2) {
        next_request(fd, NULL);
        peer_refuse(fd, 0, SHUF_TIMEOUT, 0);
    } else {
        peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    }
    peer_await_close(fd);
}

static void is_always_late(int fd, int connection)
{
    (void)connection;
    next_request(fd, NULL);
    peer_refuse(fd, 0, SHUF_TIMEOUT, 0);
    peer_await_close(fd);
}

/* A client without a processor sends its Hello too late, and its next one in time. */
static void late_greeting_is_repeated(void **state)
{
    (void)state;
    static const struct {
        peer_script script;
        shuf_status status;
        int connections;
    } rows[] = {{is_late_twice, SHUF_OK, 3}, {is_always_late, SHUF_TIMEOUT, 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        shuf *handle;
        peer_start(rows[i].script);
        assert_int_equal(shuf_connect(&handle, peer_path()), rows[i].status);
        shuf_close(handle);
        assert_int_equal(peer_stop(), rows[i].connections);
    }
}

static shuf *cancelled;

static void cancels_between_greetings(int fd, int connection)
{
    if (connection == 1) {
        next_request(fd, NULL);
        peer_refuse(fd, 0, SHUF_TIMEOUT, 0);
        peer_await_close(fd); /* the client pauses before its next greeting */
        shuf_cancel(cancelled);
        return;
    }
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    if (connection > 1)
        peer_await_close(fd); /* without an answer */
}

/* The client has no socket at that moment. */
static void cancellation_between_greetings_ends_call(void **state)
{
    (void)state;
    shuf_daemon status;
    peer_start(cancels_between_greetings);
    assert_int_equal(shuf_connect(&cancelled, peer_path()), SHUF_OK);
    assert_int_equal(shuf_daemon_status(cancelled, &status), SHUF_CANCELLED);
    shuf_close(cancelled);
    peer_stop();
}

/* A daemon that ends may have accepted a connection; the next daemon takes its place. */
static void loss_at_the_greeting_is_repeated(void **state)
{
    (void)state;
    shuf *handle;
    peer_start(closes_in_a_frame);
    assert_int_equal(shuf_connect_within(&handle, peer_path(), 500), SHUF_NO_DAEMON);
    assert_non_null(
        strstr(shuf_message(handle), "the daemon was lost, and no other came within 0.500 s"));
    shuf_close(handle);
    assert_true(peer_stop() > 1);
    peer_start(closes_twice);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    shuf_close(handle);
    assert_int_equal(peer_stop(), 3);
}

/* Another program closes each connection without a byte. So the message does not say that a daemon
 * was lost, and the call ends before the reconnect time of 10 s. */
static void silent_end_is_no_loss(void **state)
{
    (void)state;
    shuf *handle;
    static const char words[] = "accepted the connection, but closed it before an answer; perhaps "
                                "another program has this socket; the ";
    peer_start(closes_at_once);
    assert_int_equal(shuf_connect_within(&handle, peer_path(), 300), SHUF_NO_DAEMON);
    assert_non_null(strstr(shuf_message(handle), words));
    assert_non_null(strstr(shuf_message(handle), "; the call tried for 0.300 s"));
    shuf_close(handle);
    assert_true(peer_stop() > 1);
    peer_start(closes_at_once);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_PROTOCOL);
    assert_non_null(strstr(shuf_message(handle), words));
    assert_non_null(strstr(shuf_message(handle), "; the same happened 16 times in a row"));
    shuf_close(handle);
    assert_int_equal(peer_stop(), 16);
}

static void answers_at_15(int fd, int connection)
{
    if (connection < 15)
        return;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    peer_await_close(fd);
}

static void silent_ends_before_an_answer_are_repeated(void **state)
{
    (void)state;
    shuf *handle;
    peer_start(answers_at_15);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    shuf_close(handle);
    assert_int_equal(peer_stop(), 16);
}

/* ---- Replies ---- */

static void replies_with_too_few_bytes(int fd, int connection)
{
    (void)connection;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    send_reply(fd, NULL, BYTES - 1, BYTES - 1);
    peer_await_close(fd);
}

static void replies_with_too_many_rows(int fd, int connection)
{
    (void)connection;
    Shuf__ResultReply permute = SHUF__RESULT_REPLY__INIT;
    permute.rows = 2;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    send_reply(fd, &permute, BYTES, BYTES);
    peer_await_close(fd);
}

static void replies_with_another_type(int fd, int connection)
{
    (void)connection;
    Shuf__ResultReply permute = SHUF__RESULT_REPLY__INIT;
    permute.dtype = SHUF__DTYPE__DTYPE_I64;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    send_reply(fd, &permute, BYTES, BYTES);
    peer_await_close(fd);
}

static void refuses_with_payload(int fd, int connection)
{
    (void)connection;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    peer_refuse(fd, next_request(fd, NULL), SHUF_BUSY, 10);
    peer_await_close(fd);
}

static void replies_ok_without_result(int fd, int connection)
{
    (void)connection;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    peer_refuse(fd, next_request(fd, NULL), SHUF_OK, BYTES);
    peer_await_close(fd);
}

static void refuses_with_unknown_status(int fd, int connection)
{
    (void)connection;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    peer_refuse(fd, next_request(fd, NULL), (shuf_status)200, 0);
    peer_await_close(fd);
}

static void wrong_replies_are_refused(void **state)
{
    (void)state;
    static const struct {
        peer_script script;
        int status;
        const char *words;
    } rows[] = {
        {replies_with_too_few_bytes, SHUF_PROTOCOL, "payload_bytes 1200027: expected 1200028"},
        {replies_with_too_many_rows, SHUF_PROTOCOL, "reply of 2 x "},
        {replies_with_another_type, SHUF_PROTOCOL, "reply of 1 x "},
        {refuses_with_payload, SHUF_PROTOCOL, "payload_bytes 10: expected 0"},
        {replies_ok_without_result, SHUF_PROTOCOL, "ResultReply"},
        {refuses_with_unknown_status, 200, "because?[2J?"},
    };
    static uint32_t out[VALUES];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        shuf *handle;
        peer_start(rows[i].script);
        assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
        int status = (int)shuf_copy(handle, &expected_request, out, sizeof out, NULL);
        if (status != rows[i].status || !strstr(shuf_message(handle), rows[i].words))
            fprintf(stderr, "row %zu: %s\n", i, shuf_message(handle));
        assert_int_equal(status, rows[i].status);
        assert_non_null(strstr(shuf_message(handle), rows[i].words));
        shuf_close(handle);
        assert_int_equal(peer_stop(), 1);
    }
}

static void replies_with_escapes(int fd, int connection)
{
    (void)connection;
    Shuf__ResultReply permute = SHUF__RESULT_REPLY__INIT;
    permute.algorithm = permute.backend = permute.device = peer_escape_text;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    send_reply(fd, &permute, BYTES, BYTES);
    peer_await_close(fd);
}

static void sends_status_with_escapes(int fd, int connection)
{
    (void)connection;
    Shuf__StatusReply status = SHUF__STATUS_REPLY__INIT;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    status.daemon = status.backend = status.device = status.device_id = peer_escape_text;
    reply.id = next_request(fd, NULL);
    reply.body_case = SHUF__REPLY__BODY_STATUS_REPLY;
    reply.status_reply = &status;
    peer_send_reply(fd, &reply, NULL, 0);
    peer_await_close(fd);
}

/* Control characters in a peer's message do not reach the terminal. */
static void messages_are_printable(void **state)
{
    (void)state;
    static uint32_t out[VALUES];
    shuf *handle;
    shuf_result result;
    shuf_daemon daemon;
    peer_start(replies_with_escapes);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    assert_int_equal(shuf_copy(handle, &expected_request, out, sizeof out, &result), SHUF_OK);
    assert_string_equal(result.algorithm, PEER_HOSTILE_SHOWN);
    assert_string_equal(result.backend, PEER_HOSTILE_SHOWN);
    assert_string_equal(result.device, PEER_HOSTILE_SHOWN);
    shuf_close(handle);
    peer_stop();
    peer_start(sends_status_with_escapes);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    assert_int_equal(shuf_daemon_status(handle, &daemon), SHUF_OK);
    assert_string_equal(daemon.version, PEER_HOSTILE_SHOWN);
    assert_string_equal(daemon.backend, PEER_HOSTILE_SHOWN);
    assert_string_equal(daemon.device, PEER_HOSTILE_SHOWN);
    assert_string_equal(daemon.device_id, PEER_HOSTILE_SHOWN);
    shuf_close(handle);
    peer_stop();
}

/* ---- Losses ---- */

static const size_t cuts[] = {0, 1, 3, 65536, BYTES / 2, BYTES - 1, BYTES};

/* Each connection sends one part more before it closes. */
static void closes_later_each_time(int fd, int connection)
{
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    send_reply(fd, NULL, BYTES, cuts[connection]);
    if (cuts[connection] == BYTES)
        peer_await_close(fd);
}

static void permute_continues_after_losses(void **state)
{
    (void)state;
    static uint32_t out[VALUES];
    shuf *handle;
    peer_start(closes_later_each_time);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    assert_int_equal(shuf_copy(handle, &expected_request, out, sizeof out, NULL), SHUF_OK);
    assert_memory_equal(out, values_sent, sizeof out);
    shuf_close(handle);
    assert_int_equal(peer_stop(), sizeof cuts / sizeof *cuts);
}

enum { LOSSES = 40 };

static void closes_often(int fd, int connection)
{
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    send_reply(fd, NULL, BYTES, (size_t)BYTES * (size_t)connection / LOSSES);
    if (connection == LOSSES)
        peer_await_close(fd);
}

/* Only losses in a row without a new byte are limited. */
static void losses_with_progress_are_unlimited(void **state)
{
    (void)state;
    static uint32_t out[VALUES];
    shuf *handle;
    peer_start(closes_often);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    assert_int_equal(shuf_copy(handle, &expected_request, out, sizeof out, NULL), SHUF_OK);
    assert_memory_equal(out, values_sent, sizeof out);
    shuf_close(handle);
    assert_int_equal(peer_stop(), LOSSES + 1);
}

struct received {
    size_t size;
    bool right;
};

static bool check_received(void *context, const void *bytes, size_t size)
{
    struct received *s = context;
    s->right = s->right && size > 0 && size <= BYTES - s->size &&
               memcmp((const char *)values_sent + s->size, bytes, size) == 0;
    s->size += size;
    return true;
}

static void permute_each_continues_after_losses(void **state)
{
    (void)state;
    struct received s = {.right = true};
    shuf *handle;
    peer_start(closes_later_each_time);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    assert_int_equal(shuf_each(handle, &expected_request, check_received, &s, NULL), SHUF_OK);
    assert_true(s.right && s.size == BYTES);
    shuf_close(handle);
    assert_int_equal(peer_stop(), sizeof cuts / sizeof *cuts);
}

static void closes_at_request(int fd, int connection)
{
    (void)connection;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    next_request(fd, NULL);
}

/* The client stops repeating a request that ends every daemon. */
static void losses_without_progress_are_limited(void **state)
{
    (void)state;
    static uint32_t out[VALUES];
    unsigned lost = 0;
    shuf *handle;
    peer_start(closes_at_request);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    assert_int_equal(shuf_set_observer(handle, client_count_lost, &lost), SHUF_OK);
    assert_int_equal(shuf_copy(handle, &expected_request, out, sizeof out, NULL), SHUF_NO_DAEMON);
    assert_non_null(strstr(shuf_message(handle), "16 daemons ended one after another during this "
                                                 "request; the daemon's log says why"));
    assert_int_equal(lost, 16);
    shuf_close(handle);
    assert_int_equal(peer_stop(), 16);
}

static void loss_without_reconnecting_is_an_error(void **state)
{
    (void)state;
    static uint32_t out[VALUES];
    shuf *handle;
    peer_start(closes_later_each_time);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    shuf_set_reconnect(handle, 0);
    assert_int_equal(shuf_copy(handle, &expected_request, out, sizeof out, NULL), SHUF_NO_DAEMON);
    assert_non_null(strstr(shuf_message(handle), "the daemon left"));
    shuf_close(handle);
    assert_int_equal(peer_stop(), 1);
}

static void replies_once(int fd, int connection)
{
    (void)connection;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    send_reply(fd, NULL, BYTES, BYTES);
}

/* The connection is lost between two calls. The next call notices it and connects again. */
static void loss_between_calls_is_repaired(void **state)
{
    (void)state;
    static uint32_t out[VALUES];
    shuf *handle;
    peer_start(replies_once);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    for (int i = 0; i < 3; i++) {
        memset(out, 0, sizeof out);
        assert_int_equal(shuf_copy(handle, &expected_request, out, sizeof out, NULL), SHUF_OK);
        assert_memory_equal(out, values_sent, sizeof out);
    }
    shuf_close(handle);
    assert_int_equal(peer_stop(), 3);
}

static void replies_with_values_beyond_n(int fd, int connection)
{
    const uint32_t kept = values_sent[100000];
    (void)connection;
    values_sent[100000] = VALUES;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    send_reply(fd, NULL, BYTES, BYTES);
    values_sent[100000] = kept;
}

static bool accept_bytes(void *context, const void *bytes, size_t size)
{
    (void)context;
    (void)bytes;
    return size <= VALUES;
}

/* The client does not move a record whose index is outside the array. */
static void index_beyond_records_is_refused(void **state)
{
    (void)state;
    static char in[VALUES];
    const shuf_records records = {.n = VALUES,
                                  .record = 1,
                                  .seed = expected_request.permutation.seed,
                                  .epoch = expected_request.permutation.epoch};
    shuf *handle;
    peer_start(replies_with_values_beyond_n);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    assert_int_equal(shuf_shuffle_each(handle, &records, in, sizeof in, accept_bytes, NULL, NULL),
                     SHUF_PROTOCOL);
    assert_string_equal(shuf_message(handle), "reply value 300007: expected less than n = 300007");
    shuf_close(handle);
    assert_int_equal(peer_stop(), 1);
}

static int prepare(void **state)
{
    (void)state;
    uint64_t count, *values = expected_values(&expected_request, &count);
    for (uint64_t i = 0; i < count; i++)
        values_sent[i] = (uint32_t)values[i];
    free(values);
    return count == VALUES ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_greetings_are_errors),
        cmocka_unit_test(late_greeting_is_repeated),
        cmocka_unit_test(cancellation_between_greetings_ends_call),
        cmocka_unit_test(loss_at_the_greeting_is_repeated),
        cmocka_unit_test(silent_end_is_no_loss),
        cmocka_unit_test(silent_ends_before_an_answer_are_repeated),
        cmocka_unit_test(wrong_replies_are_refused),
        cmocka_unit_test(messages_are_printable),
        cmocka_unit_test(permute_continues_after_losses),
        cmocka_unit_test(losses_with_progress_are_unlimited),
        cmocka_unit_test(permute_each_continues_after_losses),
        cmocka_unit_test(losses_without_progress_are_limited),
        cmocka_unit_test(loss_without_reconnecting_is_an_error),
        cmocka_unit_test(loss_between_calls_is_repaired),
        cmocka_unit_test(index_beyond_records_is_refused),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
