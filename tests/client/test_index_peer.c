/* SPDX-License-Identifier: MIT
 *
 * Look-ups at a fake peer. It sends wrong replies, or closes the connection between two requests of
 * one call.
 */
#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/peer.h"

#include <stdio.h>
#include <string.h>

enum { N = 20000 };

/* How the peer's reply differs from a correct one. The correct value of position i is
 * N - 1 - i. */
static struct {
    Shuf__Reply__BodyCase body;
    int more;         /* the number of additional values */
    bool large;       /* the last value is n, which no permutation has */
    uint64_t payload; /* the claimed size of a payload */
    char *algorithm;
    int leaves_after; /* replies until the peer closes the connection; 0: never closes */
} part;

static char heard[3][64];   /* the algorithms of the requests */
static size_t requested[3]; /* the number of positions in each request */
static unsigned requests;

static void send_reply(int fd, const Shuf__Request *request)
{
    static uint64_t values[N];
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__IndexReply index = SHUF__INDEX_REPLY__INIT;
    Shuf__ReleaseReply release = SHUF__RELEASE_REPLY__INIT;
    for (size_t i = 0; i < request->index->n_at; i++)
        values[i] = N - 1 - request->index->at[i];
    index.n_value = request->index->n_at + (size_t)part.more;
    if (part.large)
        values[index.n_value - 1] = N;
    index.value = values;
    index.algorithm = part.algorithm;
    reply.id = request->id;
    reply.payload_bytes = part.payload;
    reply.body_case = part.body;
    if (part.body == SHUF__REPLY__BODY_INDEX)
        reply.index = &index;
    else
        reply.release = &release;
    peer_send_reply(fd, &reply, NULL, 0);
}

static void serve(int fd, int connection)
{
    const Shuf__Request *request;
    (void)connection;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    for (int replies = 1; (request = peer_receive(fd)); replies++) {
        if (requests < 3) {
            snprintf(heard[requests], sizeof heard[0], "%s",
                     request->index->permutation->algorithm);
            requested[requests++] = request->index->n_at;
        }
        send_reply(fd, request);
        if (replies == part.leaves_after)
            return;
    }
}

static const shuf_request all_values = {.permutation = {.n = N}};

static shuf *begin(void)
{
    shuf *handle;
    memset(&part, 0, sizeof part);
    part.body = SHUF__REPLY__BODY_INDEX;
    part.algorithm = (char *)"first";
    requests = 0;
    peer_start(serve);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    return handle;
}

static void finish(shuf *handle, int connections)
{
    shuf_close(handle);
    assert_int_equal(peer_stop(), connections);
}

static void expect_protocol(shuf *handle, const char *words)
{
    const uint64_t at[3] = {0, 1, 2};
    uint64_t out[3];
    assert_int_equal(shuf_index(handle, &all_values.permutation, SHUF_FORWARD, at, 3, out),
                     SHUF_PROTOCOL);
    if (!strstr(shuf_message(handle), words))
        fprintf(stderr, "%s\n", shuf_message(handle));
    assert_non_null(strstr(shuf_message(handle), words));
}

static void wrong_replies_are_refused(void **state)
{
    (void)state;
    shuf *handle = begin();
    part.body = SHUF__REPLY__BODY_RELEASE;
    expect_protocol(handle, "expected an IndexReply");
    part.body = SHUF__REPLY__BODY_INDEX;
    part.more = 1;
    expect_protocol(handle, "reply of 4 values: expected 3");
    part.more = -1;
    expect_protocol(handle, "reply of 2 values: expected 3");
    part.more = 0;
    part.large = true;
    expect_protocol(handle, "reply value 20000: expected less than n = 20000");
    part.large = false;
    part.payload = 8;
    expect_protocol(handle, "payload_bytes 8: expected 0");
    finish(handle, 5);
}

/* Checks that each query gets one reply although connections are lost. All replies come from the
 * algorithm of the first reply. */
static void check_all_queries(int leaves_after, int connections)
{
    static uint64_t at[N];
    shuf *handle = begin();
    part.leaves_after = leaves_after;
    for (uint64_t i = 0; i < N; i++)
        at[i] = i;
    assert_int_equal(shuf_index(handle, &all_values.permutation, SHUF_INVERSE, at, N, at), SHUF_OK);
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(at[i], N - 1 - i);
    finish(handle, connections);
    assert_int_equal(requests, 3);
    assert_string_equal(heard[0], "");
    assert_string_equal(heard[1], "first");
    assert_string_equal(heard[2], "first");
    assert_int_equal(requested[0], SHUF_LOOKUPS);
    assert_int_equal(requested[1], SHUF_LOOKUPS);
    assert_int_equal(requested[2], N - 2 * SHUF_LOOKUPS);
}

static void queries_are_split_into_requests(void **state)
{
    (void)state;
    check_all_queries(0, 1);
}

static void queries_continue_at_next_daemon(void **state)
{
    (void)state;
    check_all_queries(1, 3);
    check_all_queries(2, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_replies_are_refused),
        cmocka_unit_test(queries_are_split_into_requests),
        cmocka_unit_test(queries_continue_at_next_daemon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
