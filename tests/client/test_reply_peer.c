/* SPDX-License-Identifier: MIT
 *
 * Replies of a fake peer to requests for streams and summaries, look-ups and lists. Replies are
 * wrong, or a list comes in pages and in frames of every length, or the connection ends between two
 * requests of one call.
 */
#include "result_message.h"
#include "shuf.h"
#include "support/cmocka_all.h"
#include "support/peer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Streams ---- */

enum { COUNT = 10, BYTES = COUNT * 8 };

/* The fields of the peer's reply. */
static struct {
    Shuf__Distribution distribution;
    Shuf__Method method;
    Shuf__Dtype dtype;
    uint64_t rows, count;
    bool sums;
} stream_part;

/* Of the last request; the pointers are no longer valid. */
static Shuf__Stream last_request;
static Shuf__Delivery last_delivery;

static void send_stream(int fd, uint64_t id)
{
    static const double values[COUNT];
    static uint64_t first[6] = {1, 2, 3, 4, 5, 6}; /* more values than a summary holds */
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__ResultReply body = SHUF__RESULT_REPLY__INIT;
    Shuf__Sums sums = SHUF__SUMS__INIT;
    body.distribution = stream_part.distribution;
    body.method = stream_part.method;
    body.dtype = stream_part.dtype;
    body.rows = stream_part.rows;
    body.count = stream_part.count;
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
    body.sums = stream_part.sums ? &sums : NULL;
    reply.id = id;
    reply.body_case = SHUF__REPLY__BODY_RESULT;
    reply.result = &body;
    reply.payload_bytes = BYTES;
    peer_send_reply(fd, &reply, NULL, 0);
    peer_send(fd, values, BYTES);
}

static void serve_streams(int fd, int connection)
{
    const Shuf__Request *request;
    (void)connection;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    while ((request = peer_receive(fd)) && request->body_case == SHUF__REQUEST__BODY_RESULT) {
        last_request = *request->result->stream;
        last_delivery = *request->result->delivery;
        send_stream(fd, request->id);
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
    stream_part.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_GAUSS;
    stream_part.method = SHUF__METHOD__METHOD_TABLE;
    stream_part.dtype = SHUF__DTYPE__DTYPE_F64;
    stream_part.rows = 1;
    stream_part.count = COUNT;
    stream_part.sums = true;
    peer_start(serve_streams);
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
    stream_part.method = SHUF__METHOD__METHOD_BOX_MULLER;
    expect_protocol_error(*state, "reply method 1: expected 0");
}

static void other_distribution_is_refused(void **state)
{
    stream_part.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_UNIFORM;
    expect_protocol_error(*state, "reply distribution 2: expected 1");
}

static void permutation_reply_is_refused(void **state)
{
    stream_part.distribution = SHUF__DISTRIBUTION__DISTRIBUTION_NONE;
    expect_protocol_error(*state, "reply distribution 0: expected 1");
}

static void other_shape_is_refused(void **state)
{
    stream_part.dtype = SHUF__DTYPE__DTYPE_U64;
    expect_protocol_error(*state, "reply of 1 x 10 values in 80 bytes");
    stream_part.dtype = SHUF__DTYPE__DTYPE_F64;
    stream_part.rows = 2;
    stream_part.count = 5;
    expect_protocol_error(*state, "reply of 2 x 5 values in 80 bytes");
}

static void missing_sums_are_refused(void **state)
{
    stream_part.sums = false;
    expect_protocol_error(*state, "reply without sums");
}

/* ---- Look-ups ---- */

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
} look_up_part;

static char heard[3][64];   /* the algorithms of the requests */
static size_t requested[3]; /* the number of positions in each request */
static unsigned requests;

static void send_index(int fd, const Shuf__Request *request)
{
    static uint64_t values[N];
    Shuf__Reply reply = SHUF__REPLY__INIT;
    Shuf__IndexReply index = SHUF__INDEX_REPLY__INIT;
    Shuf__ReleaseReply release = SHUF__RELEASE_REPLY__INIT;
    for (size_t i = 0; i < request->index->n_at; i++)
        values[i] = N - 1 - request->index->at[i];
    index.n_value = request->index->n_at + (size_t)look_up_part.more;
    if (look_up_part.large)
        values[index.n_value - 1] = N;
    index.value = values;
    index.algorithm = look_up_part.algorithm;
    reply.id = request->id;
    reply.payload_bytes = look_up_part.payload;
    reply.body_case = look_up_part.body;
    if (look_up_part.body == SHUF__REPLY__BODY_INDEX)
        reply.index = &index;
    else
        reply.release = &release;
    peer_send_reply(fd, &reply, NULL, 0);
}

static void serve_look_ups(int fd, int connection)
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
        send_index(fd, request);
        if (replies == look_up_part.leaves_after)
            return;
    }
}

static const shuf_request all_values = {.permutation = {.n = N}};

static shuf *begin_look_ups(void)
{
    shuf *handle;
    memset(&look_up_part, 0, sizeof look_up_part);
    look_up_part.body = SHUF__REPLY__BODY_INDEX;
    look_up_part.algorithm = (char *)"first";
    requests = 0;
    peer_start(serve_look_ups);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    return handle;
}

static void finish_look_ups(shuf *handle, int connections)
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
    shuf *handle = begin_look_ups();
    look_up_part.body = SHUF__REPLY__BODY_RELEASE;
    expect_protocol(handle, "expected an IndexReply");
    look_up_part.body = SHUF__REPLY__BODY_INDEX;
    look_up_part.more = 1;
    expect_protocol(handle, "reply of 4 values: expected 3");
    look_up_part.more = -1;
    expect_protocol(handle, "reply of 2 values: expected 3");
    look_up_part.more = 0;
    look_up_part.large = true;
    expect_protocol(handle, "reply value 20000: expected less than n = 20000");
    look_up_part.large = false;
    look_up_part.payload = 8;
    expect_protocol(handle, "payload_bytes 8: expected 0");
    finish_look_ups(handle, 5);
}

/* Checks that each query gets one reply although connections are lost. All replies come from the
 * algorithm of the first reply. */
static void check_all_queries(int leaves_after, int connections)
{
    static uint64_t at[N];
    shuf *handle = begin_look_ups();
    look_up_part.leaves_after = leaves_after;
    for (uint64_t i = 0; i < N; i++)
        at[i] = i;
    assert_int_equal(shuf_index(handle, &all_values.permutation, SHUF_INVERSE, at, N, at), SHUF_OK);
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(at[i], N - 1 - i);
    finish_look_ups(handle, connections);
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

/* ---- Lists of leases and users ---- */

enum { PAGE = 280 }; /* leases that nearly fill the arena that a reply is unpacked into */

static struct {
    uint64_t total, page; /* the number of all leases, and of the leases in a reply */
    bool endless;         /* the last page points to itself as the next page */
    int users;
} list_part;

static void reply_leases(int fd, uint64_t id, uint64_t after)
{
    static Shuf__LeaseEntry entries[PAGE];
    static Shuf__LeaseEntry *list[PAGE];
    struct shuf__result_message request;
    Shuf__LeasesReply leases = SHUF__LEASES_REPLY__INIT;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    shuf__result_message_init(&request, SHUF__RESULT__WHAT_PERMUTE);
    request.permutation.algorithm = peer_escape_text;
    request.permutation.n = 11;
    request.permutation.seed = UINT64_MAX;
    request.permutation.epoch = 12;
    leases.lease = list;
    for (uint64_t i = after; i < list_part.total && leases.n_lease < list_part.page; i++) {
        Shuf__LeaseEntry *entry = list[leases.n_lease] = &entries[leases.n_lease];
        *entry = (Shuf__LeaseEntry)SHUF__LEASE_ENTRY__INIT;
        entry->id = 1 + i;
        entry->pid = 4000 + i;
        entry->uid = 1000;
        entry->transport = SHUF__TRANSPORT__TRANSPORT_CUDA_FD;
        entry->prefetch = i % 2;
        entry->ready = i % 3 == 0;
        entry->age_ms = 7 * i;
        entry->block = 5;
        entry->block_bytes = UINT64_C(1) << 40;
        entry->request = &request.result;
        entry->rows = 13;
        entry->count = 14;
        leases.n_lease++;
    }
    leases.next = after + leases.n_lease;
    if (leases.next == list_part.total && !list_part.endless)
        leases.next = 0;
    reply.id = id;
    reply.body_case = SHUF__REPLY__BODY_LEASES;
    reply.leases = &leases;
    peer_send_reply(fd, &reply, NULL, 0);
}

/* User u has (u * 7) mod 101 bytes, so no two of 101 users have the same number. */
static void reply_status(int fd, uint64_t id)
{
    static Shuf__User users[101];
    static Shuf__User *list[101];
    Shuf__StatusReply status = SHUF__STATUS_REPLY__INIT;
    Shuf__Reply reply = SHUF__REPLY__INIT;
    for (int i = 0; i < list_part.users; i++) {
        list[i] = &users[i];
        users[i] = (Shuf__User)SHUF__USER__INIT;
        users[i].uid = (uint32_t)i;
        users[i].clients = 2;
        users[i].leases = 3;
        users[i].blocks = 4;
        users[i].bytes = (uint64_t)i * 7 % 101;
        users[i].mapped = 5;
        users[i].mapped_pid = 6;
    }
    status.n_users = (size_t)list_part.users;
    status.users = list;
    status.host_used = 1;
    status.host_limit = 2;
    status.blocks = 3;
    status.pending_free = 4;
    status.leases = 5;
    status.hits = 6;
    status.joined = 7;
    status.computed = 8;
    status.evicted = 9;
    reply.id = id;
    reply.body_case = SHUF__REPLY__BODY_STATUS_REPLY;
    reply.status_reply = &status;
    peer_send_reply(fd, &reply, NULL, 0);
}

static void serve_lists(int fd, int connection)
{
    const Shuf__Request *request;
    (void)connection;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    while ((request = peer_receive(fd)))
        if (request->body_case == SHUF__REQUEST__BODY_LEASES)
            reply_leases(fd, request->id, request->leases->after);
        else if (request->body_case == SHUF__REQUEST__BODY_STATUS)
            reply_status(fd, request->id);
        else
            peer_refuse(fd, request->id, SHUF_OK, 0);
}

static shuf *begin_lists(void)
{
    shuf *handle;
    peer_start(serve_lists);
    assert_int_equal(shuf_connect(&handle, peer_path()), SHUF_OK);
    return handle;
}

static void finish_lists(shuf *handle)
{
    shuf_close(handle);
    assert_int_equal(peer_stop(), 1);
}

struct visits {
    uint64_t count, stop;
    bool right;
};

static bool check_entry(void *context, const shuf_lease_entry *e)
{
    struct visits *v = context;
    const shuf_permutation *p = &e->request.permutation;
    uint64_t i = v->count++;
    v->right = v->right && e->id == i + 1 && e->pid == 4000 + i && e->uid == 1000 &&
               e->transport == SHUF_CUDA_FD && e->prefetch == (i % 2 == 1) &&
               e->ready == (i % 3 == 0) && e->age_ms == 7 * i && e->block == 5 &&
               e->block_bytes == UINT64_C(1) << 40 && p->n == 11 && p->seed == UINT64_MAX &&
               p->epoch == 12 && e->rows == 13 && e->count == 14 &&
               strcmp(p->algorithm, PEER_HOSTILE_SHOWN) == 0;
    return v->count != v->stop;
}

/* Frames that fit into the read buffer, that just exceed it, and much longer ones. */
static void pages_are_joined(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1,   7,   96,  97,  98,  99,  100, 101,
                                     102, 103, 104, 105, 106, 107, 108, PAGE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct visits v = {.right = true};
        list_part.total = 2000;
        list_part.page = sizes[i];
        shuf *handle = begin_lists();
        assert_int_equal(shuf_leases(handle, check_entry, &v), SHUF_OK);
        assert_true(v.right && v.count == 2000);
        list_part.total = v.count = 0;
        assert_int_equal(shuf_leases(handle, check_entry, &v), SHUF_OK);
        assert_int_equal(v.count, 0);
        finish_lists(handle);
    }
}

static void visitor_stops_the_listing(void **state)
{
    (void)state;
    struct visits v = {.right = true, .stop = 3};
    list_part.total = 10;
    list_part.page = 2;
    shuf *handle = begin_lists();
    assert_int_equal(shuf_leases(handle, check_entry, &v), SHUF_CANCELLED);
    assert_non_null(strstr(shuf_message(handle), "at lease 3"));
    assert_int_equal(v.count, 3);
    finish_lists(handle);
}

/* Each wrong page ends the call with an error. */
static void wrong_pages_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t total;
        const char *words;
    } rows[] = {
        {5, "reply next 5: expected another page than before"},
        {PAGE + 1, "reply next 281: expected another page than before"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct visits v = {.right = true};
        list_part.total = rows[i].total;
        list_part.page = PAGE;
        list_part.endless = true;
        shuf *handle = begin_lists();
        assert_int_equal(shuf_leases(handle, check_entry, &v), SHUF_PROTOCOL);
        assert_non_null(strstr(shuf_message(handle), rows[i].words));
        finish_lists(handle);
    }
    list_part.endless = false;
}

static void check_users(unsigned users)
{
    shuf_daemon daemon;
    list_part.users = (int)users;
    shuf *handle = begin_lists();
    assert_int_equal(shuf_daemon_status(handle, &daemon), SHUF_OK);
    finish_lists(handle);
    assert_int_equal(daemon.users, users < SHUF_USERS ? users : SHUF_USERS);
    for (unsigned i = 0; i < daemon.users; i++) {
        const shuf_user *u = &daemon.user[i];
        assert_int_equal(u->bytes, u->uid * 7 % 101);
        assert_true(u->clients == 2 && u->leases == 3 && u->blocks == 4 && u->mapped == 5 &&
                    u->mapped_pid == 6);
        if (i > 0)
            assert_true(u->bytes < daemon.user[i - 1].bytes);
        if (users == 101) /* the 101 users have all numbers from 0 to 100 bytes */
            assert_int_equal(u->bytes, 100 - i);
    }
    assert_true(daemon.host_used == 1 && daemon.host_limit == 2 && daemon.blocks == 3 &&
                daemon.pending_free == 4 && daemon.leases == 5 && daemon.hits == 6 &&
                daemon.joined == 7 && daemon.computed == 8 && daemon.evicted == 9);
}

/* The array gets the users with the most bytes, in descending order. */
static void users_are_sorted_by_bytes(void **state)
{
    (void)state;
    check_users(0);
    check_users(1);
    check_users(SHUF_USERS);
    check_users(SHUF_USERS + 1);
    check_users(101);
}

static void transports_have_names(void **state)
{
    (void)state;
    static const struct {
        shuf_transport transport;
        const char *name;
    } expected[] = {
        {SHUF_INLINE, "inline"},
        {SHUF_MEMFD, "memfd"},
        {SHUF_CUDA_FD, "cuda-fd"},
        {SHUF_CUDA_IPC, "cuda-ipc"},
    };
    unsigned known = 0;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_string_equal(shuf_transport_name(expected[i].transport), expected[i].name);
        /* A bit for each transport, without a gap. */
        assert_int_equal(expected[i].transport, 1U << i);
        known |= expected[i].transport;
    }
    for (unsigned other = 0; other < 64; other++)
        if (other & (other - 1) || other & ~known || other == 0)
            assert_string_equal(shuf_transport_name((shuf_transport)other), "none");
    assert_string_equal(shuf_transport_name((shuf_transport)-1), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(moments_come_from_sums, start, stop),
        cmocka_unit_test_setup_teardown(other_distribution_is_refused, start, stop),
        cmocka_unit_test_setup_teardown(permutation_reply_is_refused, start, stop),
        cmocka_unit_test_setup_teardown(other_shape_is_refused, start, stop),
        cmocka_unit_test_setup_teardown(missing_sums_are_refused, start, stop),
        cmocka_unit_test_setup_teardown(other_method_is_refused, start, stop),
        cmocka_unit_test(wrong_replies_are_refused),
        cmocka_unit_test(queries_are_split_into_requests),
        cmocka_unit_test(queries_continue_at_next_daemon),
        cmocka_unit_test(pages_are_joined),
        cmocka_unit_test(visitor_stops_the_listing),
        cmocka_unit_test(wrong_pages_are_refused),
        cmocka_unit_test(users_are_sorted_by_bytes),
        cmocka_unit_test(transports_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
