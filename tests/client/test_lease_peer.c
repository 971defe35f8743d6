/* SPDX-License-Identifier: MIT
 *
 * Leases and buffers from a peer that behaves correctly, refuses, or is lost. Each test compares
 * the log of all requests. The client must leave no descriptor and no mapping behind.
 */
#include "support/cmocka_all.h"
#include "support/peer.h"
#include "support/take.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Correct replies ---- */

static void lease_reads_parts(void **state)
{
    (void)state;
    shuf *handle = lease_server_start(lease_server_script);
    shuf_lease *lease = NULL;
    uint32_t part[3];
    lease_server_take(handle, 5, LEASE_SERVER_LARGE, &lease);
    lease_server_check(lease, 0, 5);
    assert_true(lease->shared && lease->id == 1 && lease->block_bytes == 3 * LEASE_SERVER_UNIT);
    assert_null(lease->event);
    assert_string_equal(lease->device_id, "");
    assert_int_equal(lease_server_mappings(), 1);
    assert_int_equal(shuf_lease_read(handle, lease, 28, sizeof part, part), SHUF_OK);
    assert_int_equal(part[2], lease_server_value(0, 5, 9));
    assert_int_equal(shuf_lease_read(handle, lease, 4 * LEASE_SERVER_LARGE - 4, 8, part),
                     SHUF_INVALID);
    assert_int_equal(shuf_lease_read(handle, lease, UINT64_MAX, 8, part), SHUF_INVALID);
    assert_non_null(strstr(shuf_message(handle), "within the 6000000 bytes"));
    pid_t child = fork();
    if (child == 0)
        _exit(((const uint32_t *)lease->data)[999] == lease_server_value(0, 5, 999) ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    lease_server_release(handle, &lease);
    assert_int_equal(shuf_lease_release(handle, NULL), SHUF_OK);
    lease_server_finish(handle, "hello take+ release-1/5");
}

static void inline_lease_is_copied(void **state)
{
    (void)state;
    shuf_lease *lease = NULL;
    lease_server.transport = SHUF__TRANSPORT__TRANSPORT_INLINE;
    shuf *handle = lease_server_start(lease_server_script);
    shuf_request request = {.permutation = {.n = LEASE_SERVER_LARGE, .seed = 5}};
    shuf_request none = {
        .permutation = {.n = 1, .view = SHUF_VIEW_SHARD, .world = 2, .drop_last = true}};
    uint32_t value;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(shuf_lease_take(handle, &request, NULL, &lease), SHUF_OK);
        assert_true(lease->transport == SHUF_INLINE && lease->id == 0 && lease->block == 0);
        lease_server_check(lease, 0, 0);
    }
    assert_int_equal(shuf_lease_read(handle, lease, 4 * LEASE_SERVER_LARGE - 4, 4, &value),
                     SHUF_OK);
    assert_int_equal(value, lease_server_value(0, 0, LEASE_SERVER_LARGE - 1));
    /* The reply's n is wrong. */
    assert_int_equal(shuf_lease_take(handle, &none, NULL, &lease), SHUF_PROTOCOL);
    assert_null(lease);
    lease_server_finish(handle, "hello take take take");
}

static void set_empty_result(struct lease_server_reply *p)
{
    p->reply = (Shuf__ResultReply)SHUF__RESULT_REPLY__INIT;
    p->reply.rows = 1;
    p->reply.dtype = SHUF__DTYPE__DTYPE_U32;
    p->reply.transport = SHUF__TRANSPORT__TRANSPORT_INLINE;
    p->descriptors = 0;
    lease_server.leases = 0;
}

/* A result without values needs no memory, so any transport will do. */
static void empty_lease_needs_no_memory(void **state)
{
    (void)state;
    lease_server.corrupt = set_empty_result;
    shuf *handle = lease_server_start(lease_server_script);
    shuf_request none = {
        .permutation = {.n = 1, .view = SHUF_VIEW_SHARD, .world = 2, .drop_last = true}};
    shuf_lease_options options = {.transports = SHUF_CUDA_FD};
    shuf_lease *lease = NULL;
    assert_int_equal(shuf_lease_take(handle, &none, &options, &lease), SHUF_OK);
    assert_true(lease->transport == SHUF_INLINE && !lease->data);
    assert_int_equal(shuf_lease_read(handle, lease, 0, 0, NULL), SHUF_OK);
    lease_server_release(handle, &lease);
    lease_server_finish(handle, "hello take");
}

/* ---- Several leases in turn ---- */

static void exchange_releases_old_lease(void **state)
{
    (void)state;
    shuf *handle = lease_server_start(lease_server_script);
    shuf_lease *lease = NULL;
    for (uint64_t block = 1; block <= 3; block++) {
        lease_server_take(handle, block, LEASE_SERVER_LARGE, &lease);
        lease_server_check(lease, 0, block);
        assert_int_equal(lease_server_mappings(), 1);
    }
    lease_server_release(handle, &lease);
    assert_int_equal(lease_server_mappings(), 0);
    lease_server_finish(handle, "hello take+ take-1/1+ take-2/2+ release-3/3");
}

/* Blocks of small results stay mapped, so a loop over them makes no mappings. */
static void small_blocks_stay_mapped(void **state)
{
    (void)state;
    shuf *handle = lease_server_start(lease_server_script);
    shuf_lease *lease = NULL;
    const void *first = NULL;
    for (uint64_t i = 0; i < 6; i++) {
        lease_server_take(handle, 1 + i % 2, LEASE_SERVER_SMALL, &lease);
        lease_server_check(lease, 0, 1 + i % 2);
        if (i == 0)
            first = lease->data;
        assert_true(i % 2 == 1 || lease->data == first);
    }
    lease_server_release(handle, &lease);
    lease_server_take(handle, 1, LEASE_SERVER_SMALL, &lease);
    assert_ptr_equal(lease->data, first);
    assert_int_equal(lease_server_mappings(), 2);
    lease_server_finish(handle, "hello take+ take-1+ take-2 take-3 take-4 take-5 release-6 take");
}

/* libshuf keeps 8 idle mappings of 2 MiB. It unmaps the one that was idle for longest, and reports
 * this to the daemon. */
static void oldest_idle_mapping_is_unmapped(void **state)
{
    (void)state;
    char expected[1024] = "hello";
    shuf *handle = lease_server_start(lease_server_script);
    shuf_lease *lease = NULL;
    for (int i = 1; i <= 11; i++) {
        char word[32];
        lease_server_take(handle, (uint64_t)i, LEASE_SERVER_SMALL, &lease);
        lease_server_release(handle, &lease);
        if (i == 3) { /* now 1 was used after 2 */
            lease_server_take(handle, 1, LEASE_SERVER_SMALL, &lease);
            lease_server_release(handle, &lease);
        }
        snprintf(word, sizeof word, i == 9 ? " take+ release-%d/2" : " take+ release-%d",
                 (int)lease_server.leases - (i == 3));
        strcat(expected, word);
        if (i == 3)
            strcat(expected, " take release-4");
        if (i == 10)
            strcat(expected, "/3");
        if (i == 11)
            strcat(expected, "/1");
    }
    assert_int_equal(lease_server_mappings(), 8);
    lease_server_finish(handle, expected);
}

static void leases_share_a_block(void **state)
{
    (void)state;
    shuf *handle = lease_server_start(lease_server_script);
    shuf_lease *one = NULL, *other = NULL;
    lease_server_take(handle, 4, LEASE_SERVER_LARGE, &one);
    lease_server_take(handle, 4, LEASE_SERVER_LARGE, &other);
    assert_ptr_equal(one->data, other->data);
    assert_int_equal(lease_server_mappings(), 1);
    lease_server_release(handle, &one);
    lease_server_check(other, 0, 4);
    lease_server_release(handle, &other);
    assert_int_equal(lease_server_mappings(), 0);
    lease_server_finish(handle, "hello take+ take release-1 release-2/4");
}

static void close_ends_all_leases(void **state)
{
    (void)state;
    shuf *handle = lease_server_start(lease_server_script);
    for (uint64_t block = 1; block < 5; block++) {
        shuf_lease *lease = NULL;
        lease_server_take(handle, block, block % 2 ? LEASE_SERVER_SMALL : LEASE_SERVER_LARGE,
                          &lease);
    }
    assert_int_equal(lease_server_mappings(), 4);
    lease_server_finish(handle, "hello take+ take+ take+ take+");
}

/* ---- Failures ---- */

/* The request for the new lease fails, and may not even be sent. libshuf still releases the old
 * lease, and reports this to the daemon. */
static void failed_exchange_releases_old_lease(void **state)
{
    (void)state;
    shuf_request wrong = {.permutation = {.n = 0}},
                 right = {.permutation = {.n = LEASE_SERVER_SMALL, .seed = 2}};
    shuf_lease_options unknown = {.transports = 16}, more = {.transports = SHUF_MEMFD | 1U << 5};
    static char name[100000];
    shuf_lease *lease = NULL;
    lease_server.busy_takes = 1;
    shuf *handle = lease_server_start(lease_server_script);
    lease_server_take(handle, 1, LEASE_SERVER_LARGE, &lease);
    assert_int_equal(shuf_lease_take(handle, &right, NULL, &lease), SHUF_BUSY);
    assert_non_null(strstr(shuf_message(handle), "because"));
    assert_null(lease);
    lease_server_take(handle, 1, LEASE_SERVER_LARGE, &lease);
    assert_int_equal(shuf_lease_take(handle, &wrong, NULL, &lease), SHUF_INVALID);
    assert_non_null(strstr(shuf_message(handle), "n 0"));
    assert_null(lease);
    assert_int_equal(lease_server_mappings(), 0);
    assert_int_equal(shuf_lease_take(handle, &right, &unknown, &lease), SHUF_INVALID);
    assert_non_null(strstr(shuf_message(handle), "transports 0x10: expected"));
    assert_int_equal(shuf_lease_take(handle, &right, &more, &lease), SHUF_INVALID);
    assert_int_equal(shuf_prefetch(handle, &right, &more), SHUF_INVALID);
    lease_server_take(handle, 3, LEASE_SERVER_SMALL, &lease);
    memset(name, 'a', sizeof name - 1);
    right.permutation.algorithm = name;
    assert_int_equal(shuf_lease_take(handle, &right, NULL, &lease), SHUF_INVALID);
    assert_non_null(strstr(shuf_message(handle), "aaa\": expected primefold, philox24 or lcg"));
    lease_server_finish(handle, "hello take+ take-1/1 take+ release-2/1 take+ release-3");
}

/* The daemon may lack the memory that this client keeps mapped. libshuf unmaps its idle blocks,
 * reports this to the daemon, and repeats the request once. */
static void busy_daemon_gets_idle_blocks_back(void **state)
{
    (void)state;
    shuf_request next = {.permutation = {.n = LEASE_SERVER_SMALL, .seed = 3}};
    shuf_lease *lease = NULL;
    lease_server.busy_takes = 1;
    shuf *handle = lease_server_start(lease_server_script);
    lease_server_take(handle, 1, LEASE_SERVER_SMALL, &lease);
    assert_int_equal(shuf_lease_take(handle, &next, NULL, &lease), SHUF_OK);
    assert_int_equal(lease_server_mappings(), 1);
    lease_server.busy_takes = 2; /* the client repeats the request only once */
    assert_int_equal(shuf_lease_take(handle, &next, NULL, &lease), SHUF_BUSY);
    lease_server_finish(handle, "hello take+ take-1 release/1 take+ take-2 release/3 take");
}

static void denied_release_is_an_error(void **state)
{
    (void)state;
    shuf *handle = lease_server_start(lease_server_script);
    shuf_lease *lease = NULL;
    lease_server_take(handle, 1, LEASE_SERVER_LARGE, &lease);
    lease_server.leases = 0; /* the daemon does not know the lease */
    assert_int_equal(shuf_lease_release(handle, &lease), SHUF_INVALID);
    assert_non_null(strstr(shuf_message(handle), "because"));
    lease = NULL;
    lease_server_take(handle, 2, LEASE_SERVER_SMALL, &lease);
    lease_server_finish(handle, "hello take+ release-1/1 take+");
}

/* The daemon is lost between two calls. libshuf does not release its leases and blocks at the next
 * daemon, where block 1 is another block. */
static void loss_between_calls_drops_releases(void **state)
{
    (void)state;
    static const char *const logs[] = {
        "hello take+ lost hello take+",                     /* with a lease to release */
        "hello take+ release-1 lost hello take+ release-2", /* with an idle mapping */
    };
    for (int i = 0; i < 2; i++) {
        shuf_lease *lease = NULL;
        lease_server.lost_at = 2 + i;
        lease_server.lost_connections = 1;
        shuf *handle = lease_server_start(lease_server_script);
        lease_server_take(handle, 1, LEASE_SERVER_SMALL, &lease);
        if (i == 1)
            lease_server_release(handle, &lease);
        lease_server_take(handle, 1, LEASE_SERVER_SMALL, &lease);
        lease_server_check(lease, 1, 1);
        assert_int_equal(lease_server_mappings(), 1);
        if (i == 1)
            lease_server_release(handle, &lease);
        lease_server_finish(handle, logs[i]);
    }
}

/* The memory of a lease outlives its daemon. libshuf does not release the lease at the next daemon,
 * where the id may belong to another lease. */
static void leases_outlive_lost_daemon(void **state)
{
    (void)state;
    shuf_lease *old = NULL, *shared = NULL, *new = NULL;
    lease_server.lost_at = 3;
    lease_server.lost_connections = 1;
    shuf *handle = lease_server_start(lease_server_script);
    lease_server_take(handle, 1, LEASE_SERVER_SMALL, &old);
    lease_server_take(handle, 1, LEASE_SERVER_SMALL, &shared);
    /* The daemon closes the connection, and the next one serves the request. */
    lease_server_take(handle, 1, LEASE_SERVER_SMALL, &new);
    lease_server_check(old, 0, 1);
    lease_server_check(new, 1, 1);
    assert_int_equal(lease_server_mappings(), 2);
    lease_server_release(handle, &old);
    lease_server_check(shared, 0, 1);
    lease_server_take(handle, 2, LEASE_SERVER_SMALL,
                      /* libshuf does not release the old lease, because that lease belongs to the
                       * lost daemon */
                      &shared);
    assert_int_equal(lease_server_mappings(), 2);
    /* The result goes into the block of `new`, which is still mapped. */
    lease_server_take(handle, 1, LEASE_SERVER_SMALL, &old);
    lease_server_check(old, 1, 1);
    lease_server_release(handle, &new);
    lease_server_finish(handle, "hello take+ take lost hello take+ take+ take release-3");
}

/* A release notices the loss of the daemon itself, or comes after another call has noticed it. */
static void lease_is_released_after_loss(void **state)
{
    (void)state;
    shuf_request request = {.permutation = {.n = LEASE_SERVER_SMALL}};
    shuf_lease *one = NULL, *other = NULL;
    lease_server.lost_at = 3;
    lease_server.lost_connections = 1;
    shuf *handle = lease_server_start(lease_server_script);
    lease_server_take(handle, 1, LEASE_SERVER_LARGE, &one);
    lease_server_take(handle, 2, LEASE_SERVER_SMALL, &other);
    lease_server_release(handle, &one);
    lease_server_check(other, 0, 2);
    lease_server_release(handle, &other); /* without a connection */
    assert_int_equal(lease_server_mappings(), 0);
    shuf_set_reconnect(handle, 0);
    assert_int_equal(shuf_prefetch(handle, &request, NULL), SHUF_OK);
    lease_server_finish(handle, "hello take+ take+ lost hello prefetch");
}

/* Calls of a child with its parent's handle fail, and the daemon gets no message. Returns the
 * number of wrong results. */
static int use_handle_of_parent(shuf *handle, pid_t parent, shuf_lease *leases[3])
{
    uint32_t value;
    char words[64];
    shuf_daemon status;
    shuf_request request = {.permutation = {.n = LEASE_SERVER_SMALL, .seed = 9}};
    shuf_lease *none = NULL;
    int wrong = lease_server_mappings() != 3;
    snprintf(words, sizeof words, "handle of process %d: expected", (int)parent);
    wrong += shuf_lease_read(handle, leases[0], 0, 4, &value) != SHUF_INVALID;
    wrong += shuf_daemon_status(handle, &status) != SHUF_INVALID;
    wrong += !strstr(shuf_message(handle), words);
    wrong += shuf_prefetch(handle, &request, NULL) != SHUF_INVALID;
    wrong += shuf_lease_take(handle, &request, NULL, &none) != SHUF_INVALID || none;
    wrong += shuf_copy(handle, &request, words, sizeof words, NULL) != SHUF_INVALID;
    wrong += *(const uint32_t *)leases[0]->data != lease_server_value(0, 1, 0);
    wrong += shuf_lease_take(handle, &request, NULL, &leases[0]) != SHUF_INVALID || leases[0];
    wrong += !strstr(shuf_message(handle), words);
    wrong += lease_server_mappings() != 2;
    wrong += shuf_lease_release(handle, &leases[1]) != SHUF_OK || *shuf_message(handle);
    wrong += lease_server_mappings() != 1;
    shuf_close(handle);
    return wrong + lease_server_mappings();
}

/* The leases and the connection of the parent still work. */
static void child_cannot_use_handle_of_parent(void **state)
{
    (void)state;
    int end;
    pid_t parent = getpid();
    shuf_lease *leases[3] = {NULL};
    shuf *handle = lease_server_start(lease_server_script);
    for (unsigned i = 0; i < 3; i++)
        lease_server_take(handle, i + 1, i == 1 ? LEASE_SERVER_LARGE : LEASE_SERVER_SMALL,
                          &leases[i]);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(use_handle_of_parent(handle, parent, leases));
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_true(WIFEXITED(end));
    assert_int_equal(WEXITSTATUS(end), 0);
    for (unsigned i = 0; i < 3; i++)
        lease_server_check(leases[i], 0, i + 1);
    lease_server_release(handle, &leases[1]);
    lease_server_take(handle, 1, LEASE_SERVER_SMALL, &leases[2]);
    lease_server_finish(handle, "hello take+ take+ take+ release-2/2 take-3");
}

static void prefetch_takes_no_lease(void **state)
{
    (void)state;
    shuf_lease *lease = NULL;
    shuf_request request = {.permutation = {.n = LEASE_SERVER_SMALL, .seed = 1}};
    shuf *handle = lease_server_start(lease_server_script);
    assert_int_equal(shuf_prefetch(handle, &request, NULL), SHUF_OK);
    lease_server_take(handle, 1, LEASE_SERVER_SMALL, &lease);
    assert_int_equal(shuf_prefetch(handle, &request, NULL), SHUF_OK);
    lease_server_check(lease, 0, 1);
    lease_server_finish(handle, "hello prefetch take+ prefetch");
}

/* ---- Buffers ---- */

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
        cmocka_unit_test(lease_reads_parts),
        cmocka_unit_test(inline_lease_is_copied),
        cmocka_unit_test(empty_lease_needs_no_memory),
        cmocka_unit_test(exchange_releases_old_lease),
        cmocka_unit_test(small_blocks_stay_mapped),
        cmocka_unit_test(oldest_idle_mapping_is_unmapped),
        cmocka_unit_test(leases_share_a_block),
        cmocka_unit_test(close_ends_all_leases),
        cmocka_unit_test(failed_exchange_releases_old_lease),
        cmocka_unit_test(busy_daemon_gets_idle_blocks_back),
        cmocka_unit_test(denied_release_is_an_error),
        cmocka_unit_test(loss_between_calls_drops_releases),
        cmocka_unit_test(leases_outlive_lost_daemon),
        cmocka_unit_test(lease_is_released_after_loss),
        cmocka_unit_test(child_cannot_use_handle_of_parent),
        cmocka_unit_test(prefetch_takes_no_lease),
        cmocka_unit_test(buffer_is_mapped_by_descriptor),
        cmocka_unit_test(buffer_is_written_by_messages),
        cmocka_unit_test(wrong_write_reply_is_refused),
        cmocka_unit_test(wrong_allocate_replies_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
