/* SPDX-License-Identifier: MIT
 *
 * Leases without libshuf: which clients may release or list a lease. A lease ends with its process,
 * and its memory outlives the daemon. The descriptor of a block goes only to a client that does not
 * have it yet, and no process can write through it, even if the process opens the file again.
 */
#include "cache/lease.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { UNIT = 2 << 20, N = 1000 };

static Shuf__Transport
    backend_transport; /* the transport of the memory in which the backend computes */

static int start_shared(void **state)
{
    (void)state;
    wire_start(&harness_shared, harness_backend,
               "socket_mode = 0666\n"); /* another user connects too */
    return chmod(harness_shared.directory, 0755);
}

static uint64_t lease_id(struct wire *w, uint64_t seed)
{
    return wire_lease(w, N, seed, backend_transport)->lease;
}

static void expect_no_such_lease(struct wire *w, uint64_t *ids, size_t count, uint64_t wrong)
{
    char text[96];
    snprintf(text, sizeof text, "lease %" PRIu64 ": expected one that this connection holds",
             wrong);
    wire_send_release(w, ids, count, NULL, 0);
    wire_expect(w, SHUF_INVALID, text);
}

/* ---- Releases ---- */

static void released_leases_end(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&harness_shared);
    uint64_t before = wire_status(&harness_shared).leases;
    uint64_t a = lease_id(w, 1), b = lease_id(w, 1), c = lease_id(w, 2);
    assert_true(a != b && b != c && a != c);
    assert_int_equal(wire_status(&harness_shared).leases, before + 3);
    uint64_t two[] = {c, a};
    wire_send_release(w, two, 2, NULL, 0);
    assert_int_equal(wire_expect(w, SHUF_OK, "")->body_case, SHUF__REPLY__BODY_RELEASE);
    assert_int_equal(wire_status(&harness_shared).leases, before + 1);
    wire_release(w, b, 0);
    wire_send_release(w, NULL, 0, NULL, 0); /* a release of no leases is valid */
    wire_expect(w, SHUF_OK, "");
    assert_int_equal(wire_status(&harness_shared).leases, before);
    wire_close(w);
}

static void wrong_leases_are_refused(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&harness_shared), *other = wire_greet(&harness_shared);
    uint64_t own_lease = lease_id(w, 3), other_lease = lease_id(other, 3);
    uint64_t with_other_lease[] = {own_lease, other_lease},
             with_unknown[] = {own_lease, UINT64_MAX};
    uint64_t nothing = 0, twice[] = {own_lease, other_lease, own_lease},
             same[] = {own_lease, own_lease};
    uint64_t before = wire_status(&harness_shared).leases;
    expect_no_such_lease(w, with_other_lease, 2, other_lease);
    expect_no_such_lease(w, with_unknown, 2, UINT64_MAX);
    expect_no_such_lease(w, &nothing, 1, 0);
    expect_no_such_lease(w, twice, 3, other_lease);
    expect_no_such_lease(w, same, 2, own_lease);
    assert_int_equal(wire_status(&harness_shared).leases, before); /* no lease was released */
    wire_release(w, own_lease, 0);
    expect_no_such_lease(w, &own_lease, 1, own_lease); /* the lease has already ended */
    wire_release(other, other_lease, 0);
    wire_check_alive(w);
    wire_close(w);
    wire_close(other);
}

static void release_of_257_leases_is_refused(void **state)
{
    (void)state;
    uint64_t ids[257], blocks[257];
    struct wire *w = wire_greet(&harness_shared);
    for (int i = 0; i < 257; i++) {
        ids[i] = lease_id(w, 3);
        blocks[i] = UINT64_MAX - (uint64_t)i; /* the daemon ignores unknown blocks */
    }
    uint64_t before = wire_status(&harness_shared).leases;
    wire_send_release(w, ids, 257, NULL, 0);
    wire_expect(w, SHUF_INVALID, "release of 257 leases and 0 blocks: expected at most 256");
    wire_send_release(w, ids, 1, blocks, 257);
    wire_expect(w, SHUF_INVALID, "release of 1 lease and 257 blocks: expected at most 256");
    assert_int_equal(wire_status(&harness_shared).leases, before);
    wire_send_release(w, ids, 256, blocks, 256);
    wire_expect(w, SHUF_OK, "");
    assert_int_equal(wire_status(&harness_shared).leases, before - 256);
    wire_close(w);
}

static void request_releases_old_lease(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&harness_shared);
    uint64_t id = lease_id(w, 4), unknown = UINT64_MAX,
             before = wire_status(&harness_shared).leases;
    Shuf__Release back = SHUF__RELEASE__INIT;
    struct shuf__result_message permute = wire_permutation(N, backend_transport);
    permute.delivery.give_back = &back;
    back.n_lease = 1;
    back.lease = &unknown;
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_INVALID, "lease 18446744073709551615");
    assert_int_equal(wire_status(&harness_shared).leases, before);
    back.lease = &id;
    wire_send_result(w, &permute);
    assert_int_not_equal(wire_expect(w, SHUF_OK, "")->result->lease, id);
    assert_int_equal(wire_status(&harness_shared).leases, before);
    wire_send_result(w, &permute); /* the lease to release has already ended */
    wire_expect(w, SHUF_INVALID, "expected one that this connection holds");
    wire_close(w);
}

/* ---- Limits ---- */

static void lease_limit_is_refused(void **state)
{
    (void)state;
    struct harness h;
    wire_start(&h, harness_backend, "leases = 3\n");
    struct wire *w = wire_greet(&h);
    struct shuf__result_message permute = wire_permutation(N, backend_transport);
    uint64_t ids[3];
    for (uint64_t i = 0; i < 3; i++)
        ids[i] = lease_id(w, i);
    uint64_t computed = wire_status(&h).computed;
    /* The seed is new, so the client has no descriptor of the result's block. */
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_BUSY, "leases 3: the most that one connection may hold");
    /* The daemon refused the request before the computation. */
    assert_int_equal(wire_status(&h).computed, computed);
    wire_release(w, ids[1], 0);
    wire_send_result(w, &permute);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_true(reply->result->descriptor); /* the first descriptor of this block */
    wire_check_alive(w);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void empty_shard_has_no_lease(void **state)
{
    (void)state;
    struct shuf__result_message permute = wire_permutation(3, backend_transport);
    struct wire *w = wire_greet(&harness_shared);
    shuf__result_message_add_view(&permute, SHUF__PERMUTE__VIEW_SHARD);
    permute.shard.world = 4;
    permute.shard.rank = 3;
    permute.shard.drop_last = true;
    wire_send_result(w, &permute);
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->result->transport, SHUF__TRANSPORT__TRANSPORT_INLINE);
    assert_int_equal(reply->result->lease + reply->result->block + reply->payload_bytes, 0);
    assert_int_equal(reply->result->count, 0);
    wire_close(w);
}

/* ---- The list ---- */

static const Shuf__LeasesReply *list_page(struct wire *w, uint64_t after)
{
    Shuf__Leases leases = SHUF__LEASES__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    leases.after = after;
    request.body_case = SHUF__REQUEST__BODY_LEASES;
    request.leases = &leases;
    wire_send(w, &request);
    return wire_expect(w, SHUF_OK, "")->leases;
}

/* Returns how many leases in the list have this seed. */
static uint64_t count_leases_of_seed(struct wire *w, uint64_t seed, uint64_t *all)
{
    uint64_t after = 0, found = 0;
    *all = 0;
    do {
        const Shuf__LeasesReply *page = list_page(w, after);
        for (size_t i = 0; i < page->n_lease; i++)
            found += page->lease[i]->request->permute->permutation->seed == seed;
        *all += page->n_lease;
        assert_true(page->next == 0 || page->next != after);
        after = page->next;
    } while (after != 0);
    return found;
}

static void list_entry_describes_lease(void **state)
{
    (void)state;
    struct shuf__result_message permute = wire_permutation(N, backend_transport);
    struct wire *w = wire_greet(&harness_shared);
    const uint64_t before = wire_lease(w, N, 1, backend_transport)->lease;
    permute.permutation.algorithm = (char *)"lcg";
    permute.permutation.epoch = 8;
    permute.permute.epochs = 3;
    wire_send_result(w, &permute);
    Shuf__ResultReply reply = *wire_expect(w, SHUF_OK, "")->result;
    const Shuf__LeasesReply *page = list_page(w, before);
    assert_int_equal(page->n_lease, 1);
    assert_int_equal(page->next, 0);
    const Shuf__LeaseEntry *entry = page->lease[0];
    assert_int_equal(entry->id, reply.lease);
    assert_int_equal(entry->pid, getpid());
    assert_int_equal(entry->uid, getuid());
    assert_int_equal(entry->transport, backend_transport);
    assert_true(entry->ready && !entry->prefetch && entry->age_ms < HARNESS_WAIT_MS);
    assert_int_equal(entry->block, reply.block);
    assert_int_equal(entry->block_bytes, reply.block_bytes);
    assert_true(entry->rows == 3 && entry->count == N);
    assert_null(entry->request->delivery);
    assert_int_equal(entry->request->what_case, SHUF__RESULT__WHAT_PERMUTE);
    const Shuf__Permute *asked = entry->request->permute;
    assert_string_equal(asked->permutation->algorithm, "lcg");
    assert_true(asked->permutation->n == N && asked->permutation->seed == 7 &&
                asked->permutation->epoch == 8 && asked->epochs == 3);
    assert_int_equal(asked->view_case, SHUF__PERMUTE__VIEW__NOT_SET);
    wire_close(w);
}

static void list_as_nobody(int channel, void *context)
{
    uint64_t all;
    struct wire *w = wire_greet(&harness_shared);
    (void)context;
    wire_lease(w, N, 11, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    wire_lease(w, N, 11, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    assert_int_equal(count_leases_of_seed(w, 11, &all), 2);
    assert_int_equal(all, 2); /* leases of other users are not in the list */
    child_send(channel, 0);
    child_receive(channel);
    wire_close(w);
}

/* One connection holds all leases when it closes. */
static void close_ends_1000_leases(void **state)
{
    (void)state;
    uint64_t all;
    WIRE_AWAIT(&harness_shared, s, s.leases == 0);
    struct wire *w = wire_greet(&harness_shared), *other = wire_greet(&harness_shared);
    for (int i = 0; i < 1000; i++)
        lease_id(w, 10);
    for (int i = 0; i < 41; i++)
        lease_id(other, 12);
    assert_int_equal(count_leases_of_seed(other, 10, &all), 1000);
    assert_int_equal(all, 1041);
    if (geteuid() == 0) {
        struct child child = child_start_as(CHILD_NOBODY, list_as_nobody, NULL);
        child_receive(child.channel);
        assert_int_equal(count_leases_of_seed(other, 11, &all), 2);
        assert_int_equal(all, 1043); /* root sees all leases */
        child_send(child.channel, 0);
        child_join(&child);
    }
    wire_close(w);
    WIRE_AWAIT(&harness_shared, s, s.leases == 41);
    wire_close(other);
    WIRE_AWAIT(&harness_shared, s, s.leases == 0);
}

/* ---- Ends ---- */

static void check_outlives_daemon(int signal)
{
    enum { MANY = 1000000 };
    struct harness h;
    assert_true(harness_start(&h, harness_backend, NULL));
    struct wire *w = wire_greet(&h);
    const Shuf__ResultReply *reply = wire_lease(w, MANY, 7, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    uint64_t bytes = reply->bytes, size = reply->block_bytes;
    const void *view = wire_map(w, size);
    void *copy = malloc(bytes);
    memcpy(copy, view, bytes);
    int status = harness_kill(&h, signal);
    assert_int_equal(status, signal == SIGKILL ? SIGKILL : 0);
    assert_memory_equal(view, copy, bytes);
    free(copy);
    wire_unmap(view, size);
    wire_close(w);
    assert_true(harness_stop(&h));
}

static void memory_outlives_killed_daemon(void **state)
{
    (void)state;
    check_outlives_daemon(SIGKILL);
}

static void memory_outlives_ended_daemon(void **state)
{
    (void)state;
    check_outlives_daemon(SIGTERM);
}

/* The results of many leases end one part after the other, but all before the daemon has ended. */
static void daemon_ends_with_results_of_leases(void **state)
{
    (void)state;
    struct harness h;
    assert_true(harness_start(&h, harness_backend, NULL));
    struct wire *w = wire_greet(&h);
    for (uint64_t i = 0; i < 500; i++)
        wire_lease(w, N, i, backend_transport);
    wire_close(w);
    assert_int_equal(harness_kill(&h, SIGTERM), 0);
    assert_true(harness_stop(&h));
}

/* A stopping daemon replies to an accepted request, and its lease is valid. */
static void drain_serves_accepted_lease(void **state)
{
    (void)state;
    struct harness h;
    struct shuf__result_message endless = wire_endless_permutation();
    struct shuf__result_message permute =
        wire_permutation(100000, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    assert_true(harness_start(&h, harness_backend, NULL));
    struct wire *running = wire_greet(&h), *waiting = wire_greet(&h);
    wire_send_result(running, &endless);
    wire_await_queued(&h, 1);
    wire_send_result(waiting, &permute);
    wire_await_queued(&h, 2);
    kill(h.pid, SIGTERM);
    wire_await_end_of_listening(&h);
    wire_close(running);
    const Shuf__ResultReply *reply = wire_expect(waiting, SHUF_OK, "")->result;
    assert_true(reply->lease && reply->descriptor);
    const uint32_t *view = wire_map(waiting, UNIT);
    wire_expect_end(waiting);
    assert_int_equal(harness_kill(&h, 0), 0);
    assert_int_not_equal(view[0], view[1]);
    wire_unmap(view, UNIT);
    wire_close(waiting);
    assert_true(harness_stop(&h));
}

/* Takes leases, and forks a child that inherits the connection. */
static void lease_and_fork(int channel, void *context)
{
    (void)context;
    struct wire *w = wire_greet(&harness_shared);
    lease_id(w, 13);
    lease_id(w, 14);
    pid_t grandchild = fork();
    if (grandchild == 0) {
        pause();
        _exit(0);
    }
    child_send(channel, (uint64_t)grandchild);
    pause();
}

/* The daemon must notice most of ten deaths in time. A busy machine may make it late a few
 * times. */
static void leases_end_with_their_process(void **state)
{
    (void)state;
    enum { DEATHS = 10 };
    const uint64_t limit = TEST_SANITIZED ? 2000 : 100;
    unsigned late = 0;
    for (int i = 0; i < DEATHS; i++) {
        WIRE_AWAIT(&harness_shared, s, s.leases == 0 && s.clients == 1);
        struct child child = child_start(lease_and_fork, NULL);
        pid_t grandchild = (pid_t)child_receive(child.channel);
        WIRE_AWAIT(&harness_shared, s, s.leases == 2 && s.clients == 2);
        uint64_t killed = harness_now_ms();
        child_kill(&child);
        WIRE_AWAIT(&harness_shared, s, s.leases == 0 && s.clients == 1);
        late += harness_now_ms() - killed > limit;
        kill(grandchild, SIGKILL);
    }
    assert_true(late <= DEATHS / 2);
}

/* ---- Descriptors ---- */

enum { DESCRIPTOR_UNIT = 2 << 20, DESCRIPTOR_N = DESCRIPTOR_UNIT / 4 };

static void descriptor_is_sent_once(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&harness_shared), *other = wire_greet(&harness_shared);
    const Shuf__ResultReply *reply = wire_lease(w, DESCRIPTOR_N, 5, backend_transport);
    uint64_t id = reply->lease, block = reply->block;
    assert_true(reply->descriptor);
    reply = wire_lease(w, DESCRIPTOR_N, 5, backend_transport);
    assert_true(!reply->descriptor && reply->block == block);
    wire_release(w, reply->lease, 0);
    reply = wire_lease(other, DESCRIPTOR_N, 5,
                       backend_transport); /* `other` has no descriptor of the block yet */
    assert_true(reply->descriptor && reply->block == block);
    wire_release(w, id, 0);
    reply = wire_lease(w, DESCRIPTOR_N, 5,
                       backend_transport); /* `w` has not reported that it unmapped the block */
    assert_true(!reply->descriptor && reply->block == block);
    wire_release(w, reply->lease, block);
    reply = wire_lease(w, DESCRIPTOR_N, 5, backend_transport);
    assert_true(reply->descriptor && reply->block == block);
    wire_close(w);
    wire_close(other);
    WIRE_AWAIT(&harness_shared, s, s.leases == 0);
}

/* While a descriptor is still unread in the client's socket, the daemon sends no second one. */
static void one_descriptor_is_in_flight(void **state)
{
    (void)state;
    struct shuf__result_message first = wire_permutation(DESCRIPTOR_N, backend_transport),
                                second = wire_permutation(DESCRIPTOR_N + 1, backend_transport);
    struct wire *w = wire_greet(&harness_shared);
    wire_send_result(w, &first);
    WIRE_AWAIT(&harness_shared, s, s.leases == 1);
    wire_send_result(w, &second);
    wire_send_result(w, &first); /* the client already gets this descriptor from the first reply */
    WIRE_AWAIT(&harness_shared, s, s.leases == 2);
    w->id -= 2;
    assert_true(wire_expect(w, SHUF_OK, "")->result->descriptor);
    w->id++;
    wire_expect(w, SHUF_BUSY, "the client has not read the replies before it; read them first");
    w->id++;
    assert_false(wire_expect(w, SHUF_OK, "")->result->descriptor);
    wire_send_result(w, &second);
    assert_true(wire_expect(w, SHUF_OK, "")->result->descriptor);
    wire_close(w);
    WIRE_AWAIT(&harness_shared, s, s.leases == 0);
}

static void expect_no_changes(int fd)
{
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    assert_ptr_equal(mmap(NULL, DESCRIPTOR_UNIT, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
                     MAP_FAILED);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(ftruncate(fd, (off_t)64 * DESCRIPTOR_UNIT), -1);
    assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, DESCRIPTOR_UNIT),
                     -1);
    assert_int_equal(fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, DESCRIPTOR_UNIT), -1);
    assert_int_equal(fallocate(fd, 0, 0, (off_t)64 * DESCRIPTOR_UNIT), -1);
    void *view = mmap(NULL, DESCRIPTOR_UNIT, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(view, MAP_FAILED);
    assert_int_equal(madvise(view, DESCRIPTOR_UNIT, MADV_REMOVE), -1);
    munmap(view, DESCRIPTOR_UNIT);
}

static int reopen(int fd, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, flags | O_CLOEXEC);
}

/* The owner of the file may change its mode, but still cannot write to it. */
static void expect_no_reopening(int fd)
{
    fchmod(fd, 0666);
    int again = reopen(fd, O_RDWR);
    if (again < 0)
        return;
    expect_no_changes(again);
    assert_int_equal(fcntl(again, F_ADD_SEALS, F_SEAL_WRITE), -1);
    close(again);
    again = reopen(fd, O_RDWR | O_TRUNC);
    assert_int_equal(again, -1);
}

static void try_as_nobody(int channel, void *context)
{
    (void)context;
    struct wire *w = wire_greet(&harness_shared);
    wire_lease(w, DESCRIPTOR_N, 6, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    int fd = wire_take_descriptor(w);
    expect_no_changes(fd);
    void *view = mmap(NULL, DESCRIPTOR_UNIT, PROT_READ, MAP_SHARED, fd, 0);
    assert_int_equal(mprotect(view, DESCRIPTOR_UNIT, PROT_READ | PROT_WRITE), -1);
    assert_int_equal(fchmod(fd, 0666), -1);
    assert_int_equal(reopen(fd, O_RDWR), -1);
    child_send(channel, 0);
    wire_close(w);
}

static void descriptor_is_sealed(void **state)
{
    (void)state;
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
    struct stat status;
    struct wire *w = wire_greet(&harness_shared);
    uint64_t size = wire_lease(w, DESCRIPTOR_N, 6, SHUF__TRANSPORT__TRANSPORT_MEMFD)->block_bytes;
    int fd = wire_take_descriptor(w);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_size, size);
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    assert_int_equal(fcntl(fd, F_GET_SEALS) & seals, seals);
    expect_no_changes(fd);
    expect_no_reopening(fd);
    close(fd);
    wire_close(w);
    if (geteuid() != 0)
        return;
    struct child child = child_start_as(CHILD_NOBODY, try_as_nobody, NULL);
    child_receive(child.channel);
    child_join(&child);
}

/* ---- The table of leases, against a plain array of all numbers ---- */

enum { NUMBERS = 20000, STEPS = 60000 };

/* Makes a unique address for a number, because the table never reads a lease. */
static struct shuf__lease *lease_of(uint64_t number)
{
    return (struct shuf__lease *)(uintptr_t)(16 * number);
}

static void empty_table_has_no_leases(void **state)
{
    struct shuf__lease_table table = {0};
    (void)state;
    assert_null(shuf__lease_table_find(&table, 0));
    assert_null(shuf__lease_table_find(&table, 1));
    assert_int_equal(shuf__lease_table_above(&table, 0), 0);
    shuf__lease_table_free(&table);
}

/* The expected answer: the first lease above the number. */
static struct shuf__lease *expected_above(const bool *live, uint64_t last, uint64_t number)
{
    for (uint64_t i = number + 1; i <= last; i++)
        if (live[i])
            return lease_of(i);
    return NULL;
}

static struct shuf__lease *first_above(const struct shuf__lease_table *table, uint64_t number)
{
    for (size_t i = shuf__lease_table_above(table, number); i < table->used; i++)
        if (table->slots[i].lease)
            return table->slots[i].lease;
    return NULL;
}

static void random_adds_and_removes_match(void **state)
{
    static bool live[NUMBERS + 1];
    struct shuf__lease_table table = {0};
    uint64_t last = 0, count = 0;
    unsigned seed = (unsigned)time(NULL);
    (void)state;
    printf("seed %u\n", seed);
    for (int step = 0; step < STEPS; step++) {
        const uint64_t number = 1 + (uint64_t)rand_r(&seed) % (last + 1);
        const bool grows = step / 10000 % 2 == 0; /* alternately, the table grows and shrinks */
        if (last < NUMBERS && rand_r(&seed) % 4 < (grows ? 3 : 1)) {
            last += 1 + (uint64_t)(rand_r(&seed) % 3 == 0 && last + 1 < NUMBERS);
            assert_true(shuf__lease_table_add(&table, last, lease_of(last)));
            live[last] = true;
            count++;
        } else if (number <= last && live[number]) {
            shuf__lease_table_remove(&table, number);
            live[number] = false;
            count--;
        }
        assert_int_equal(table.count, count);
        assert_true(table.used < 64 || table.used <= 2 * count + 1);
        assert_ptr_equal(shuf__lease_table_find(&table, number),
                         number <= last && live[number] ? lease_of(number) : NULL);
        assert_ptr_equal(first_above(&table, number), expected_above(live, last, number));
    }
    shuf__lease_table_free(&table);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(released_leases_end),
        cmocka_unit_test(wrong_leases_are_refused),
        cmocka_unit_test(release_of_257_leases_is_refused),
        cmocka_unit_test(request_releases_old_lease),
        cmocka_unit_test(lease_limit_is_refused),
        cmocka_unit_test(empty_shard_has_no_lease),
        cmocka_unit_test(list_entry_describes_lease),
        cmocka_unit_test(close_ends_1000_leases),
        cmocka_unit_test(memory_outlives_killed_daemon),
        cmocka_unit_test(memory_outlives_ended_daemon),
        cmocka_unit_test(daemon_ends_with_results_of_leases),
        cmocka_unit_test(drain_serves_accepted_lease),
        cmocka_unit_test(leases_end_with_their_process),
        cmocka_unit_test(descriptor_is_sent_once),
        cmocka_unit_test(one_descriptor_is_in_flight),
        cmocka_unit_test(descriptor_is_sealed),
    };
    const struct CMUnitTest table_tests[] = {
        cmocka_unit_test(empty_table_has_no_leases),
        cmocka_unit_test(random_adds_and_removes_match),
    };
    harness_backend = harness_backend_or_skip(argc, argv);
    backend_transport = wire_backend_transport(harness_backend);
    return cmocka_run_group_tests(tests, start_shared, harness_stop_shared) +
           cmocka_run_group_tests(table_tests, NULL, NULL);
}
