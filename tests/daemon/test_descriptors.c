/* SPDX-License-Identifier: MIT
 *
 * The descriptor of a block. The daemon sends it only to a client that does not have it yet. No
 * process can write through it, even if the process opens the file again.
 */
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UNIT = 2 << 20, N = UNIT / 4 };

static const char *backend;
static struct harness shared;
static Shuf__Transport
    backend_transport; /* the transport of the memory in which the backend computes */

static int start_shared(void **state)
{
    (void)state;
    wire_start(&shared, backend, "socket_mode = 0666\n"); /* another user connects too */
    return chmod(shared.directory, 0755);
}

static int stop_shared(void **state)
{
    (void)state;
    return harness_stop(&shared) ? 0 : -1;
}

static void descriptor_is_sent_once(void **state)
{
    (void)state;
    struct wire *w = wire_greet(&shared), *other = wire_greet(&shared);
    const Shuf__ResultReply *reply = wire_lease(w, N, 5, backend_transport);
    uint64_t id = reply->lease, block = reply->block;
    assert_true(reply->descriptor);
    reply = wire_lease(w, N, 5, backend_transport);
    assert_true(!reply->descriptor && reply->block == block);
    wire_release(w, reply->lease, 0);
    reply =
        wire_lease(other, N, 5, backend_transport); /* `other` has no descriptor of the block yet */
    assert_true(reply->descriptor && reply->block == block);
    wire_release(w, id, 0);
    reply = wire_lease(w, N, 5,
                       backend_transport); /* `w` has not reported that it unmapped the block */
    assert_true(!reply->descriptor && reply->block == block);
    wire_release(w, reply->lease, block);
    reply = wire_lease(w, N, 5, backend_transport);
    assert_true(reply->descriptor && reply->block == block);
    wire_close(w);
    wire_close(other);
    WIRE_AWAIT(&shared, s, s.leases == 0);
}

/* While a descriptor is still unread in the client's socket, the daemon sends no second one. */
static void one_descriptor_is_in_flight(void **state)
{
    (void)state;
    struct shuf__result_message first = wire_permutation(N, backend_transport),
                                second = wire_permutation(N + 1, backend_transport);
    struct wire *w = wire_greet(&shared);
    wire_send_result(w, &first);
    WIRE_AWAIT(&shared, s, s.leases == 1);
    wire_send_result(w, &second);
    wire_send_result(w, &first); /* the client already gets this descriptor from the first reply */
    WIRE_AWAIT(&shared, s, s.leases == 2);
    w->id -= 2;
    assert_true(wire_expect(w, SHUF_OK, "")->result->descriptor);
    w->id++;
    wire_expect(w, SHUF_BUSY, "the client has not read the replies before it; read them first");
    w->id++;
    assert_false(wire_expect(w, SHUF_OK, "")->result->descriptor);
    wire_send_result(w, &second);
    assert_true(wire_expect(w, SHUF_OK, "")->result->descriptor);
    wire_close(w);
    WIRE_AWAIT(&shared, s, s.leases == 0);
}

static void expect_no_changes(int fd)
{
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    assert_ptr_equal(mmap(NULL, UNIT, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(ftruncate(fd, (off_t)64 * UNIT), -1);
    assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, UNIT), -1);
    assert_int_equal(fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, UNIT), -1);
    assert_int_equal(fallocate(fd, 0, 0, (off_t)64 * UNIT), -1);
    void *view = mmap(NULL, UNIT, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(view, MAP_FAILED);
    assert_int_equal(madvise(view, UNIT, MADV_REMOVE), -1);
    munmap(view, UNIT);
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
    struct wire *w = wire_greet(&shared);
    wire_lease(w, N, 6, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    int fd = wire_take_descriptor(w);
    expect_no_changes(fd);
    void *view = mmap(NULL, UNIT, PROT_READ, MAP_SHARED, fd, 0);
    assert_int_equal(mprotect(view, UNIT, PROT_READ | PROT_WRITE), -1);
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
    struct wire *w = wire_greet(&shared);
    uint64_t size = wire_lease(w, N, 6, SHUF__TRANSPORT__TRANSPORT_MEMFD)->block_bytes;
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptor_is_sent_once),
        cmocka_unit_test(one_descriptor_is_in_flight),
        cmocka_unit_test(descriptor_is_sealed),
    };
    backend = harness_backend_or_skip(argc, argv);
    backend_transport = wire_backend_transport(backend);
    return cmocka_run_group_tests(tests, start_shared, stop_shared);
}
