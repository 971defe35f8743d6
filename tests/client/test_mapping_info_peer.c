/* SPDX-License-Identifier: MIT
 *
 * Leases from a peer whose replies violate the protocol, or arrive in unusual pieces. The client
 * must name the wrong field, and must leave no descriptor and no mapping behind.
 */
#include "support/cmocka_all.h"
#include "support/peer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void announce_no_descriptor(struct lease_server_reply *p)
{
    p->reply.descriptor = false;
}

static void send_no_descriptor(struct lease_server_reply *p)
{
    p->descriptors = 0;
}

static void send_two_descriptors(struct lease_server_reply *p)
{
    p->descriptors = 2;
}

static void send_four_unannounced_descriptors(struct lease_server_reply *p)
{
    p->reply.descriptor = false;
    p->descriptors = 4;
}

static void reply_unknown_block(struct lease_server_reply *p)
{
    p->reply.descriptor = false;
    p->descriptors = 0;
}

static void clear_lease_id(struct lease_server_reply *p)
{
    p->reply.lease = 0;
}

static void lease_inline_copy(struct lease_server_reply *p)
{
    p->reply.transport = SHUF__TRANSPORT__TRANSPORT_INLINE;
}

static void send_descriptor_with_inline_copy(struct lease_server_reply *p)
{
    p->reply.transport = SHUF__TRANSPORT__TRANSPORT_INLINE;
    p->reply.lease = 0;
}

static void reply_other_transport(struct lease_server_reply *p)
{
    p->reply.transport = SHUF__TRANSPORT__TRANSPORT_CUDA_FD;
}

static void reply_no_transport(struct lease_server_reply *p)
{
    p->reply.transport = SHUF__TRANSPORT__TRANSPORT_NONE;
}

static void reply_unknown_transport(struct lease_server_reply *p)
{
    p->reply.transport = (Shuf__Transport)77;
}

static void send_payload_too(struct lease_server_reply *p)
{
    p->payload = p->reply.bytes;
}

static void end_block_before_result(struct lease_server_reply *p)
{
    p->reply.block_bytes = LEASE_SERVER_OFFSET + p->reply.bytes - 1;
}

static void begin_result_after_block(struct lease_server_reply *p)
{
    p->reply.offset = p->reply.block_bytes + 4;
}

static void overflow_offset(struct lease_server_reply *p)
{
    p->reply.offset = UINT64_MAX - 3;
}

static void misalign_offset(struct lease_server_reply *p)
{
    p->reply.offset = 66;
}

static void set_empty_block(struct lease_server_reply *p)
{
    p->reply.block_bytes = 0;
}

static void set_impossible_block(struct lease_server_reply *p)
{
    p->reply.block_bytes = UINT64_MAX;
}

/* The file is shorter than the block, so a read behind its end would raise SIGBUS. */
static void send_short_file(struct lease_server_reply *p)
{
    p->file = p->reply.block_bytes - 1;
}

static void send_unsealed_file(struct lease_server_reply *p)
{
    p->unsealed = true;
}

static void wrong_mapping_info_is_refused(void **state)
{
    (void)state;
    static const struct {
        void (*corrupt)(struct lease_server_reply *reply);
        const char *words;
    } rows[] = {
        {announce_no_descriptor, "reply with 1 descriptors: expected 0"},
        {send_no_descriptor, "reply with 0 descriptors: expected 1"},
        {send_two_descriptors, "reply with 2 descriptors: expected 1"},
        {send_four_unannounced_descriptors, "reply with 4 descriptors: expected 0"},
        {reply_unknown_block, "block 7 without a descriptor: expected one"},
        {clear_lease_id, "reply lease 0: expected another with memfd"},
        {lease_inline_copy, "reply lease 1: expected 0 with inline"},
        {send_descriptor_with_inline_copy, "reply with a descriptor: expected none with inline"},
        {reply_other_transport, "reply transport 3: expected one that was accepted"},
        {reply_no_transport, "reply transport 0"},
        {reply_unknown_transport, "reply transport 77"},
        {send_payload_too, "reply payload_bytes 40: expected 0"},
        {end_block_before_result, "offset 64: expected 40 bytes behind it in a block of 103"},
        {begin_result_after_block, "offset 2097156"},
        {overflow_offset, "offset 18446744073709551612"},
        {misalign_offset, "offset 66: expected a multiple of 4"},
        {set_empty_block, "block_bytes 0"},
        {set_impossible_block, "block_bytes 18446744073709551615"},
        {send_short_file, "block 7 by a descriptor of 2097151 bytes: expected at least 2097152"},
        {send_unsealed_file, "block 7 by a descriptor without F_SEAL_SHRINK"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        shuf_request request = {.permutation = {.n = LEASE_SERVER_SMALL, .seed = 7}};
        shuf_lease *lease = NULL;
        lease_server.corrupt = rows[i].corrupt;
        shuf *handle = lease_server_start(lease_server_script);
        shuf_status status = shuf_lease_take(handle, &request, NULL, &lease);
        if (status != SHUF_PROTOCOL || !strstr(shuf_message(handle), rows[i].words))
            fprintf(stderr, "row %zu: %s\n", i, shuf_message(handle));
        assert_int_equal(status, SHUF_PROTOCOL);
        assert_non_null(strstr(shuf_message(handle), rows[i].words));
        assert_null(lease);
        lease_server.corrupt = NULL; /* the next connection sends correct replies */
        lease_server_take(handle, 7, LEASE_SERVER_SMALL, &lease);
        lease_server_check(lease, 1, 7);
        char *log = strdup(lease_server.log);
        lease_server_finish(handle, log);
        free(log);
    }
}

static void change_block_size(struct lease_server_reply *p)
{
    if (lease_server.takes == 2)
        p->reply.block_bytes = 2 * LEASE_SERVER_UNIT;
}

static void changed_block_size_is_refused(void **state)
{
    (void)state;
    shuf_request request = {.permutation = {.n = LEASE_SERVER_SMALL, .seed = 7}};
    shuf_lease *lease = NULL;
    lease_server.corrupt = change_block_size;
    shuf *handle = lease_server_start(lease_server_script);
    lease_server_take(handle, 7, LEASE_SERVER_SMALL, &lease);
    assert_int_equal(shuf_lease_take(handle, &request, NULL, &lease), SHUF_PROTOCOL);
    assert_non_null(strstr(shuf_message(handle), "block 7 of 4194304 bytes by memfd: expected"));
    lease_server_finish(handle, "hello take+ take-1");
}

/* A lease in a reply to a call that requests none is an error: the client would never release
 * it. */
static void unrequested_lease_is_refused(void **state)
{
    (void)state;
    uint32_t values[LEASE_SERVER_SMALL];
    shuf *handle = lease_server_start(lease_server_script);
    shuf_request request = {.permutation = {.n = LEASE_SERVER_SMALL, .seed = 7}};
    shuf_result result;
    assert_int_equal(shuf_summarize(handle, &request, &result), SHUF_PROTOCOL);
    assert_non_null(strstr(shuf_message(handle), "reply with lease 1: expected none"));
    lease_server.transport = SHUF__TRANSPORT__TRANSPORT_INLINE;
    assert_int_equal(shuf_copy(handle, &request, values, sizeof values, NULL), SHUF_OK);
    lease_server_finish(handle, "hello take+ hello take");
}

/* Sends a descriptor among the values, where a client does not expect one. */
static void send_descriptor_with_values(int fd, int connection)
{
    int memory;
    (void)connection;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    const Shuf__Request *request = peer_receive(fd);
    struct lease_server_reply p = {.reply = SHUF__RESULT_REPLY__INIT,
                                   .payload = 4 * LEASE_SERVER_LARGE};
    Shuf__Reply reply = SHUF__REPLY__INIT;
    p.reply.rows = 1;
    p.reply.count = LEASE_SERVER_LARGE;
    p.reply.bytes = p.payload;
    p.reply.dtype = SHUF__DTYPE__DTYPE_U32;
    p.reply.transport = SHUF__TRANSPORT__TRANSPORT_INLINE;
    reply.id = request->id;
    reply.body_case = SHUF__REPLY__BODY_RESULT;
    reply.result = &p.reply;
    reply.payload_bytes = p.payload;
    peer_send_reply(fd, &reply, NULL, 0);
    memory = lease_server_memory(&p, 0);
    static uint8_t values[16384];
    peer_send(fd, values, sizeof values);
    reply.result = NULL; /* any frame can stand for bytes of the payload */
    reply.body_case = SHUF__REPLY__BODY__NOT_SET;
    peer_send_reply(fd, &reply, &memory, 1);
    close(memory);
    peer_await_close(fd);
}

static void descriptor_among_the_values_is_refused(void **state)
{
    (void)state;
    shuf *handle = lease_server_start(send_descriptor_with_values);
    shuf_request request = {.permutation = {.n = LEASE_SERVER_LARGE}};
    shuf_lease *lease = NULL;
    assert_int_equal(shuf_lease_take(handle, &request, NULL, &lease), SHUF_PROTOCOL);
    assert_non_null(strstr(shuf_message(handle), "reply with 1 descriptors: expected 0"));
    lease_server_finish(handle, "");
}

static int use_up_descriptors(int *taken, int room)
{
    int count = 0;
    while (count < room && (taken[count] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
        count++;
    return count;
}

static void reply_when_descriptors_are_used_up(int fd, int connection)
{
    static int taken[256];
    (void)connection;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    const Shuf__Request *request = peer_receive(fd);
    struct lease_server_reply p = lease_server_reply_to(LEASE_SERVER_SMALL, 7, false);
    Shuf__Reply reply = SHUF__REPLY__INIT;
    int memory = lease_server_memory(&p, 0), count = use_up_descriptors(taken, 256);
    reply.id = request->id;
    reply.body_case = SHUF__REPLY__BODY_RESULT;
    reply.result = &p.reply;
    peer_send_reply(fd, &reply, &memory, 1);
    peer_await_close(fd);
    while (count > 0)
        close(taken[--count]);
    close(memory);
}

/* The process has reached its limit of open files. The error is the client's own, and does not
 * blame the daemon. */
static void lack_of_descriptors_is_reported(void **state)
{
    (void)state;
    struct rlimit before, low;
    shuf_request request = {.permutation = {.n = LEASE_SERVER_SMALL, .seed = 7}};
    shuf_lease *lease = NULL;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    shuf *handle = lease_server_start(reply_when_descriptors_are_used_up);
    low = (struct rlimit){.rlim_cur = 128, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    shuf_status status = shuf_lease_take(handle, &request, NULL, &lease);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(status, SHUF_IO);
    assert_non_null(strstr(shuf_message(handle), "a descriptor could not be received"));
    lease_server_finish(handle, "");
}

static void send_bytes_one_by_one(int fd, int connection)
{
    uint8_t frame[4096];
    Shuf__Reply reply = SHUF__REPLY__INIT;
    (void)connection;
    peer_welcome(fd, SHUF__PROTOCOL_VERSION, 0);
    const Shuf__Request *request = peer_receive(fd);
    struct lease_server_reply p = lease_server_reply_to(LEASE_SERVER_SMALL, 7, false);
    int memory = lease_server_memory(&p, 0);
    reply.id = request->id;
    reply.body_case = SHUF__REPLY__BODY_RESULT;
    reply.result = &p.reply;
    size_t size = shuf__message_pack(&reply.base, frame, sizeof frame);
    for (size_t i = 0; i < size; i++) {
        peer_send_byte(fd, frame[i], &memory, i == 0);
        usleep(100);
    }
    close(memory);
    peer_await_close(fd);
}

static void slow_reply_is_read(void **state)
{
    (void)state;
    shuf *handle = lease_server_start(send_bytes_one_by_one);
    shuf_lease *lease = NULL;
    lease_server_take(handle, 7, LEASE_SERVER_SMALL, &lease);
    lease_server_check(lease, 0, 7);
    lease_server_finish(handle, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_mapping_info_is_refused),
        cmocka_unit_test(changed_block_size_is_refused),
        cmocka_unit_test(unrequested_lease_is_refused),
        cmocka_unit_test(descriptor_among_the_values_is_refused),
        cmocka_unit_test(lack_of_descriptors_is_reported),
        cmocka_unit_test(slow_reply_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
