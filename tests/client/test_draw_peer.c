/* SPDX-License-Identifier: MIT
 *
 * Streams from a peer whose replies are wrong: with other parameters than requested, or without the
 * requested moments or fingerprint.
 */
#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/peer.h"

#include <math.h>
#include <string.h>

enum { COUNT = 10, BYTES = COUNT * 8 };

/* The fields of the peer's reply. */
static struct {
    Shuf__Distribution distribution;
    Shuf__Method method;
    Shuf__Dtype dtype;
    uint64_t rows, count;
    bool sums;
} part;

/* Of the last request; the pointers are no longer valid. */
static Shuf__Stream last_request;
static Shuf__Delivery last_delivery;

static void send_reply(int fd, uint64_t id)
{
    static const double values[COUNT];
    static uint64_t first[6] = {1, 2, 3, 4, 5, 6}; /* more values than a summary holds */
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__ResultReply body = SHUF__RESULT_REPLY__INIT;
    Shuf__Sums sums = SHUF__SUMS__INIT;
    body.distribution = part.distribution;
    body.method = part.method;
    body.dtype = part.dtype;
    body.rows = part.rows;
    body.count = part.count;
    body.bytes = BYTES;
    body.transport = SHUF__TRANSPORT__TRANSPORT_INLINE;
    body.n_first = body.n_last = 6;
    body.first = body.last = first;
    sums.centre = 100;
    sums.scale = 2;
    sums.z1 = 10; /* sums over z = 3, 3, 1, 1, 1, 1, and 0 four times */
    sums.z2 = 22;
    sums.z3 = 58;
    sums.z4 = 166;
    sums.least = 100;
    sums.largest = 101.5;
    body.sums = part.sums ? &sums : NULL;
    reply.id = id;
    reply.body_case = SHUF__REPLY__BODY_RESULT;
    reply.result = &body;
    reply.payload_bytes = BYTES;
    peer_send_reply(fd, &reply, NULL, 0);
    peer_send(fd, values, BYTES);
}

static void serve(int fd, int connection)
{
    const Shuf__Request *request;
    (void)connection;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    while ((request = peer_receive(fd)) && request->body_case == SHUF__REQUEST__BODY_RESULT) {
        last_request = *request->result->stream;
        last_delivery = *request->result->delivery;
        send_reply(fd, request->id);
    }
}

static const shuf_request numbers = {.kind = SHUF_NUMBERS,
                                     .numbers = {.distribution = SHUF_GAUSS,
                                                 .seed = 1,
                                                 .stream = 2,
                                                 .offset = 3,
                                                 .count = COUNT,
                                                 .mean = -4.5,
                                                 .std = 5.5,
                                                 .moments = true}};

static int start(void **state)
{
    shuf *handle;
    part.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS;
    part.method = SHUF__METHOD__METHOD_TABLE;
    part.dtype = SHUF__DTYPE__DTYPE_F64;
    part.rows = 1;
    part.count = COUNT;
    part.sums = true;
    peer_start(serve);
    *state = shuf_connect(&handle, peer_path()) == SHUF_OK ? handle : NULL;
    return *state ? 0 : -1;
}

static int stop(void **state)
{
    shuf_close(*state);
    peer_stop();
    return 0;
}

static void expect_protocol_error(shuf *handle, const char *words)
{
    double out[COUNT];
    assert_int_equal(shuf_copy(handle, &numbers, out, sizeof out, NULL), SHUF_PROTOCOL);
    if (!strstr(shuf_message(handle), words))
        fail_msg("%s", shuf_message(handle));
}

/* Mean 1, m2 = 1.2: the central moments of small whole numbers, computed by hand. */
static void moments_come_from_sums(void **state)
{
    double out[COUNT];
    shuf_result r;
    assert_int_equal(shuf_copy(*state, &numbers, out, sizeof out, &r), SHUF_OK);
    assert_true(last_request.distribution == SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS &&
                last_request.seed == 1);
    assert_true(last_request.stream == 2 && last_request.offset == 3 &&
                last_request.count == COUNT);
    assert_true(last_request.mean == -4.5 && last_request.std == 5.5 && last_delivery.sums &&
                !last_delivery.fingerprint);
    assert_int_equal(r.distribution, SHUF_GAUSS);
    assert_true(r.n_first == 4 && r.first[3] == 4 && r.n_last == 4 && r.last[0] == 3);
    assert_true(fabs(r.moments.mean - 100.5) < 1e-14);
    assert_true(fabs(r.moments.variance - 1.2 / 4) < 1e-14);
    assert_true(fabs(r.moments.skewness - 1.2 / pow(1.2, 1.5)) < 1e-14);
    assert_true(fabs(r.moments.kurtosis - 3.6 / 1.44) < 1e-14);
}

/* A daemon that does not know the method would send other values. */
static void other_method_is_refused(void **state)
{
    part.method = SHUF__METHOD__METHOD_BOX_MULLER;
    expect_protocol_error(*state, "reply method 1: expected 0");
}

static void other_distribution_is_refused(void **state)
{
    part.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_UNIFORM;
    expect_protocol_error(*state, "reply distribution 2: expected 1");
}

static void permutation_reply_is_refused(void **state)
{
    part.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_NONE;
    expect_protocol_error(*state, "reply distribution 0: expected 1");
}

static void other_shape_is_refused(void **state)
{
    part.dtype = SHUF__DTYPE__DTYPE_U64;
    expect_protocol_error(*state, "reply of 1 x 10 values in 80 bytes");
    part.dtype = SHUF__DTYPE__DTYPE_F64;
    part.rows = 2;
    part.count = 5;
    expect_protocol_error(*state, "reply of 2 x 5 values in 80 bytes");
}

static void missing_sums_are_refused(void **state)
{
    part.sums = false;
    expect_protocol_error(*state, "reply without sums");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(moments_come_from_sums),       TEST(other_distribution_is_refused),
        TEST(permutation_reply_is_refused), TEST(other_shape_is_refused),
        TEST(missing_sums_are_refused),     TEST(other_method_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
