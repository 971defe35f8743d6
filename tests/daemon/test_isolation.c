/* SPDX-License-Identifier: MIT
 *
 * Two users of one daemon. Neither finds data of the other in a block that it maps, and each denied
 * request has a clear error. On a GPU: attacks by a malicious process that has the descriptor of a
 * cuda-fd lease, as the daemon's user and as another user. They show that the section "What
 * protects what" of docs/protocol.md is true for the driver of this machine.
 */
#include "shuf.h"
#include "support/child.h"
#include "support/client.h"
#include "support/cmocka_all.h"
#include "support/gpu.h"
#include "support/random.h"
#include "support/take.h"
#include "support/wire.h"

#include <cmocka.h>
#include <dlfcn.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNIT = 2 << 20, MOST_UNITS = 3, MOST_BLOCKS = 256 };

/* Memory for a few blocks only, so that each user needs blocks that the other has released. */
static const char config[] =
    "socket_mode = 0666\nhost_memory = 24Mi\ndevice_memory = 24Mi\nuser_memory = 0\n";

static void start(struct harness *h)
{
    wire_start(h, harness_backend, config);
    assert_int_equal(chmod(h->directory, 0755), 0);
}

/* ---- A user and the blocks that it has seen ---- */

/* A connection of one user, and the expected contents of each block that it has mapped: its own
 * results, and zeros elsewhere. */
struct user {
    shuf *handle;
    shuf_lease_options options;
    /* The seed of the next result, and the bytes that are added to its random size. */
    uint64_t seed, more;
    int blocks;
    uint64_t block[MOST_BLOCKS];
    uint8_t *content[MOST_BLOCKS];
};

static uint8_t *content_of(struct user *user, const shuf_lease *lease)
{
    for (int i = 0; i < user->blocks; i++)
        if (user->block[i] == lease->block)
            return user->content[i];
    assert_true(user->blocks < MOST_BLOCKS);
    user->block[user->blocks] = lease->block;
    user->content[user->blocks] = calloc(1, lease->block_bytes);
    assert_non_null(user->content[user->blocks]);
    return user->content[user->blocks++];
}

/* libshuf maps the whole block, and a result begins at the block's first byte. */
static void read_block(const shuf_lease *lease, void *out)
{
    if (lease->device_id[0] == '\0')
        memcpy(out, lease->data, lease->block_bytes);
    else
        gpu_read(lease->data, lease->block_bytes, out);
}

static void check_block(struct user *user, const shuf_lease *lease)
{
    uint64_t values = lease->result.shape.bytes;
    uint8_t *known = content_of(user, lease), *found = malloc(lease->block_bytes);
    assert_non_null(found);
    read_block(lease, found);
    if (memcmp(known + values, found + values, lease->block_bytes - values) != 0)
        fail_msg("block %d has foreign bytes after its %d bytes of values", (int)lease->block,
                 (int)values);
    memcpy(known, found, values);
    free(found);
}

/* Values of 62 bits, so the same value does not occur twice by chance. */
static shuf_request unique_request(uint64_t seed, uint64_t bytes)
{
    return (shuf_request){.permutation = {.n = UINT64_C(1) << 62,
                                          .seed = seed,
                                          .view = SHUF_VIEW_SLICE,
                                          .count = bytes / sizeof(uint64_t),
                                          .stride = 1}};
}

/* Each request differs from all requests before, so no result is shared. */
static void take_and_check(struct user *user, uint64_t bytes, shuf_lease **lease)
{
    const shuf_request request = unique_request(user->seed++, bytes);
    client_expect_ok(user->handle, shuf_lease_take(user->handle, &request, &user->options, lease));
    assert_false((*lease)->shared);
    check_block(user, *lease);
}

static uint64_t random_bytes(void)
{
    static const uint64_t near[] = {8, UNIT - 8, UNIT, UNIT + 8, 2 * UNIT, 3 * UNIT - 8};
    if (random_below(2))
        return near[random_below(sizeof near / sizeof near[0])];
    return (1 + random_below(MOST_UNITS * UNIT / 8)) * 8;
}

/* A new buffer has only zeros, and its block is none that this user has seen. The test fills the
 * buffer with bytes that the other user could find. */
static void fill_buffer(struct user *user, uint64_t bytes)
{
    shuf_lease *buffer = NULL;
    client_expect_ok(user->handle, take_buffer(user->handle, bytes, NULL, &buffer));
    const uint8_t *found = buffer->data;
    for (uint64_t i = 0; i < buffer->block_bytes; i++)
        assert_int_equal(found[i], 0);
    for (int i = 0; i < user->blocks; i++)
        assert_int_not_equal(user->block[i], buffer->block);
    memset(buffer->buffer, 0xEE, buffer->block_bytes);
    client_expect_ok(user->handle, shuf_lease_release(user->handle, &buffer));
}

/* Holds two leases at a time, so that the next result does not always reuse the block that was
 * released last. */
static void take_random_results(struct user *user, int results)
{
    shuf_lease *leases[2] = {NULL};
    for (int i = 0; i < results; i++)
        take_and_check(user, random_bytes() + user->more, &leases[i % 2]);
    for (int i = 0; i < 2; i++)
        client_expect_ok(user->handle, shuf_lease_release(user->handle, &leases[i]));
    fill_buffer(user, random_bytes());
}

static void send_blocks(int channel, const struct user *user)
{
    child_send(channel, (uint64_t)user->blocks);
    for (int i = 0; i < user->blocks; i++)
        child_send(channel, user->block[i]);
}

/* ---- The two users see no data of each other ---- */

struct turns {
    const struct harness *h;
    shuf_transport transport;
    /* Whether the connection stays open while the other user works. If so, results are so large
     * that libshuf does not keep their blocks mapped. */
    bool stay_connected;
    uint64_t seed;
};

enum { TURNS = 6, RESULTS = 12 };

static void open_user(struct user *user, const struct turns *turns)
{
    if (!user->handle)
        client_expect_ok(user->handle, shuf_connect(&user->handle, turns->h->socket));
}

/* Works in its turns. Between them it frees its memory for the other user. */
static void work_in_turns(int channel, void *context)
{
    const struct turns *turns = context;
    struct user user = {.options.transports = turns->transport,
                        .seed = turns->seed,
                        .more = turns->stay_connected ? 2 * UNIT : 0};
    for (int turn = 0; turn < TURNS; turn++) {
        child_receive(channel);
        open_user(&user, turns);
        take_random_results(&user, RESULTS);
        if (!turns->stay_connected || turn + 1 == TURNS) {
            shuf_close(user.handle);
            user.handle = NULL;
        }
        child_send(channel, 0);
    }
    send_blocks(channel, &user);
    child_receive(channel);
}

static void expect_no_common_block(const struct child users[2])
{
    uint64_t first[MOST_BLOCKS], count = child_receive(users[0].channel);
    for (uint64_t i = 0; i < count; i++)
        first[i] = child_receive(users[0].channel);
    uint64_t others = child_receive(users[1].channel);
    assert_true(count > 0 && others > 0);
    for (; others > 0; others--) {
        uint64_t block = child_receive(users[1].channel);
        for (uint64_t i = 0; i < count; i++)
            assert_int_not_equal(first[i], block);
    }
}

static void take_turns(shuf_transport transport, bool stay)
{
    struct harness h;
    start(&h);
    struct turns parts[2];
    struct child users[2];
    for (int i = 0; i < 2; i++) {
        parts[i] = (struct turns){&h, transport, stay, random_u64()};
        users[i] = child_start_as(i == 0 ? 0 : CHILD_NOBODY, work_in_turns, &parts[i]);
    }
    for (int turn = 0; turn < 2 * TURNS; turn++) {
        child_send(users[turn % 2].channel, 0);
        child_receive(users[turn % 2].channel);
    }
    expect_no_common_block(users);
    for (int i = 0; i < 2; i++) {
        child_send(users[i].channel, 0);
        child_join(&users[i]);
    }
    assert_true(harness_stop(&h));
}

static void users_see_no_foreign_bytes(void **state)
{
    (void)state;
    random_start("users_see_no_foreign_bytes");
    take_turns(SHUF_MEMFD, false);
    take_turns(SHUF_MEMFD, true);
    if (harness_is_cuda()) {
        take_turns(SHUF_CUDA_FD, false);
        take_turns(SHUF_CUDA_FD, true);
    }
}

static void request_result_of_root(int channel, void *context)
{
    struct wire *w = wire_greet(context);
    const Shuf__ResultReply *reply = wire_lease(w, 1000, 1, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    assert_false(reply->shared);
    child_send(channel, reply->block);
    child_receive(channel);
    wire_close(w);
}

static void users_share_no_results(void **state)
{
    (void)state;
    struct harness h;
    start(&h);
    struct wire *w = wire_greet(&h);
    uint64_t block = wire_lease(w, 1000, 1, SHUF__TRANSPORT__TRANSPORT_MEMFD)->block;
    struct child child = child_start_as(CHILD_NOBODY, request_result_of_root, &h);
    assert_int_not_equal(child_receive(child.channel), block);
    assert_int_equal(wire_status(&h).computed, 2);
    child_send(child.channel, 0);
    child_join(&child);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* ---- Data about other users ---- */

/* Ids must be far apart, so that they do not tell how many leases or blocks other users have. */
static void expect_far(uint64_t a, uint64_t b)
{
    /* a random difference is this small once in 2^31 times */
    assert_true((a > b ? a - b : b - a) > 1 << 20);
}

static void expect_status(struct wire *w, size_t users, uint32_t uid, uint64_t leases)
{
    Shuf__Status status = SHUF__STATUS__INIT;
    Shuf__Request request = SHUF__REQUEST__INIT;
    bool found = false;
    request.body_case = SHUF__REQUEST__BODY_STATUS;
    request.status = &status;
    wire_send(w, &request);
    const Shuf__StatusReply *reply = wire_expect(w, SHUF_OK, "")->status_reply;
    assert_int_equal(reply->n_users, users);
    for (size_t i = 0; i < users; i++) {
        if (reply->users[i]->uid != uid)
            continue;
        found = true;
        assert_int_equal(reply->users[i]->leases, leases);
        assert_int_equal(reply->users[i]->clients, 1);
    }
    assert_true(found);
    assert_true(reply->host_used >= users * 4096 && reply->host_limit > 0);
}

/* Takes leases while root also takes some, and expects to see only its own. */
static void take_and_see_only_own(int channel, void *context)
{
    struct wire *w = wire_greet(context);
    uint64_t lease[2], block[2];
    for (uint64_t i = 0; i < 2; i++) {
        const Shuf__ResultReply *reply = wire_lease(w, 1000, i, SHUF__TRANSPORT__TRANSPORT_MEMFD);
        lease[i] = reply->lease;
        block[i] = reply->block;
        child_send(channel, 0);
        child_receive(channel);
    }
    expect_far(lease[0], lease[1]);
    expect_far(block[0], block[1]);
    expect_status(w, 1, CHILD_NOBODY, 2);
    child_send(channel, 0);
    child_receive(channel);
    wire_close(w);
}

static void status_shows_only_own_leases(void **state)
{
    (void)state;
    struct harness h;
    start(&h);
    struct wire *w = wire_greet(&h);
    struct child child = child_start_as(CHILD_NOBODY, take_and_see_only_own, &h);
    for (uint64_t i = 0; i < 2; i++) {
        child_receive(child.channel);
        wire_lease(w, 1000, i, SHUF__TRANSPORT__TRANSPORT_MEMFD);
        child_send(child.channel, 0);
    }
    child_receive(child.channel);
    expect_status(w, 2, CHILD_NOBODY, 2);
    expect_status(w, 2, 0, 2);
    child_send(child.channel, 0);
    child_join(&child);
    wire_close(w);
    assert_true(harness_stop(&h));
}

/* ---- Denied requests ---- */

static void request_ipc(int channel, void *context)
{
    struct wire *w = wire_greet(context);
    struct shuf__result_message permute =
        wire_permutation(1000, SHUF__TRANSPORT__TRANSPORT_CUDA_IPC);
    wire_send_result(w, &permute);
    wire_expect(w, SHUF_DENIED, "transport cuda-ipc: uid 65534, expected the daemon's own, 0");
    Shuf__Transport both[] = {SHUF__TRANSPORT__TRANSPORT_CUDA_IPC,
                              SHUF__TRANSPORT__TRANSPORT_INLINE};
    permute.delivery.accept = both;
    permute.delivery.n_accept = 2;
    wire_send_result(w, &permute); /* the daemon chooses the other transport */
    const Shuf__Reply *reply = wire_expect(w, SHUF_OK, "");
    assert_int_equal(reply->result->transport, SHUF__TRANSPORT__TRANSPORT_INLINE);
    uint32_t values[1000];
    wire_read_payload(w, values, reply->payload_bytes);
    wire_check_alive(w);
    child_send(channel, 0);
    wire_close(w);
}

static void cuda_ipc_of_another_user_is_denied(void **state)
{
    (void)state;
    struct harness h;
    if (!harness_is_cuda())
        skip();
    start(&h);
    struct child child = child_start_as(CHILD_NOBODY, request_ipc, &h);
    child_receive(child.channel);
    child_join(&child);
    assert_true(harness_stop(&h));
}

static void request_from_namespace(int channel, const struct harness *h)
{
    struct wire *w = wire_greet(h);
    struct shuf__result_message permute =
        wire_permutation(1000, SHUF__TRANSPORT__TRANSPORT_CUDA_IPC);
    if (harness_is_cuda()) {
        wire_send_result(w, &permute);
        wire_expect(w, SHUF_DENIED, "transport cuda-ipc: this process is in another PID namespace");
        wire_lease(w, 1000, 2, SHUF__TRANSPORT__TRANSPORT_CUDA_FD);
    }
    wire_lease(w, 1000, 1, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    wire_check_alive(w);
    child_send(channel, 0);
    pause();
}

/* The client is in a child PID namespace. The daemon can see processes of that namespace, so it can
 * watch the client. */
static void run_in_namespace(int channel, void *context)
{
    assert_int_equal(unshare(CLONE_NEWPID), 0); /* the children are in the new namespace */
    pid_t first = fork();
    assert_true(first >= 0);
    if (first == 0) {
        request_from_namespace(channel, context);
        _exit(0);
    }
    child_send(channel, (uint64_t)first);
    waitpid(first, NULL, 0);
}

static void client_of_child_namespace_is_served(void **state)
{
    (void)state;
    struct harness h;
    start(&h);
    struct child child = child_start(run_in_namespace, &h);
    uint64_t first = child_receive(child.channel);
    /* one of the two numbers is 0 and the other is the pid */
    uint64_t second = child_receive(child.channel);
    WIRE_AWAIT(&h, s, s.leases == (harness_is_cuda() ? 2 : 1));
    kill((pid_t)(first + second), SIGKILL);
    WIRE_AWAIT(&h, s, s.leases == 0 && s.pending_free == 0);
    child_join(&child);
    assert_true(harness_stop(&h));
}

/* ---- A daemon whose PID namespace does not have its clients ---- */

/* In the new namespace, with the files of its processes in /proc. */
static void serve_as_first_process(struct harness *h, int channel)
{
    assert_int_equal(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    assert_int_equal(mount("proc", "/proc", "proc", 0, NULL), 0);
    assert_true(harness_restart(h));
    child_send(channel, 0);
    child_receive(channel);
    assert_int_equal(harness_kill(h, SIGTERM), 0);
}

static void serve_in_namespace(int channel, void *context)
{
    int status = -1;
    assert_int_equal(unshare(CLONE_NEWPID | CLONE_NEWNS), 0);
    const pid_t first = fork();
    if (first == 0) {
        serve_as_first_process(context, channel);
        _exit(0);
    }
    assert_int_equal(waitpid(first, &status, 0), first);
    assert_int_equal(status, 0);
}

/* A child of the client inherits the connection. It lives until the test closes the channel. */
static void lease_and_leave_child(int channel, void *context)
{
    uint64_t none;
    struct wire *w = wire_greet(context);
    wire_lease(w, 1000, 1, SHUF__TRANSPORT__TRANSPORT_MEMFD);
    if (harness_is_cuda())
        wire_lease(w, 1000, 2, SHUF__TRANSPORT__TRANSPORT_CUDA_FD);
    const pid_t heir = fork();
    if (heir == 0) {
        recv(channel, &none, sizeof none, 0);
        _exit(0);
    }
    child_send(channel, (uint64_t)heir);
    pause();
}

static bool kernel_gives_pidfds(void)
{
    int pair[2], fd = -1;
    socklen_t size = sizeof fd;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    const bool gives = getsockopt(pair[0], SOL_SOCKET, 77 /* SO_PEERPIDFD */, &fd, &size) == 0;
    if (gives)
        close(fd);
    close(pair[0]);
    close(pair[1]);
    return gives;
}

static void end_of_unseen_client_is_seen(void **state)
{
    (void)state;
    struct harness h;
    if (!kernel_gives_pidfds())
        skip();
    assert_true(harness_prepare(&h, harness_backend, NULL));
    const struct child daemon = child_start(serve_in_namespace, &h);
    child_receive(daemon.channel);
    const struct child clients[] = {child_start(lease_and_leave_child, &h),
                                    child_start(lease_and_leave_child, &h)};
    const uint64_t leases = harness_is_cuda() ? 2 : 1;
    child_receive(clients[0].channel);
    child_receive(clients[1].channel);
    assert_int_equal(wire_status(&h).leases, 2 * leases);
    for (uint64_t left = 2; left-- > 0;) {
        kill(clients[left].pid, SIGKILL);
        WIRE_AWAIT(&h, s, s.leases == left * leases && s.pending_free == 0);
    }
    child_kill(&clients[0]); /* also ends its child */
    child_kill(&clients[1]);
    child_send(daemon.channel, 0);
    child_join(&daemon);
    assert_true(harness_stop(&h));
}

/* ---- Attacks with the descriptor of a cuda-fd lease. The test calls CUDA itself ---- */

enum { N = 1000, NOBODY = 65534, READ = 1, READ_AND_WRITE = 3 };

/* The result of an attempt: the first step that failed, or WRITTEN. */
enum outcome { NOT_IMPORTED, NOT_MAPPED, NOT_READ, NOT_WRITTEN, WRITTEN, BROKEN };

/* ---- The malicious process ---- */

struct access {
    int location_type, location_id, flags;
};

#define CALLS(X)                                                                        \
    X(cuInit, "cuInit", (unsigned))                                                     \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **, int))             \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", (void *))                                     \
    X(cuImport, "cuMemImportFromShareableHandle", (uint64_t *, void *, int))            \
    X(cuReserve, "cuMemAddressReserve",                                                 \
      (uint64_t *, size_t, size_t, uint64_t, unsigned long long))                       \
    X(cuMap, "cuMemMap", (uint64_t, size_t, size_t, uint64_t, unsigned long long))      \
    X(cuSetAccess, "cuMemSetAccess", (uint64_t, size_t, const struct access *, size_t)) \
    X(cuRead, "cuMemcpyDtoH_v2", (void *, uint64_t, size_t))                            \
    X(cuFill, "cuMemsetD8_v2", (uint64_t, unsigned char, size_t))                       \
    X(cuSynchronize, "cuCtxSynchronize", (void))

#define X(name, symbol, arguments) static int(*name) arguments;
CALLS(X)
#undef X

static bool load_libcuda(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
#define X(name, symbol, arguments)                             \
    *(void **)&name = library ? dlsym(library, symbol) : NULL; \
    if (!name)                                                 \
        return false;
    CALLS(X)
#undef X
    return true;
}

static enum outcome try_access(int fd, uint64_t bytes, int flags)
{
    void *context;
    uint64_t allocation, address, first = 0;
    struct access access = {.location_type = 1, .flags = flags};
    if (!load_libcuda() || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
        cuCtxSetCurrent(context))
        return BROKEN;
    if (cuImport(&allocation, (void *)(uintptr_t)fd, 1))
        return NOT_IMPORTED;
    if (cuReserve(&address, bytes, 0, 0, 0) || cuMap(address, bytes, 0, allocation, 0))
        return BROKEN;
    if (cuSetAccess(address, bytes, &access, 1))
        return NOT_MAPPED;
    if (cuRead(&first, address, sizeof first) || first == 0)
        return NOT_READ;
    return cuFill(address, 0xff, bytes) || cuSynchronize() ? NOT_WRITTEN : WRITTEN;
}

static enum outcome try_access_as(uid_t uid, int fd, uint64_t bytes, int flags)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(setgid(uid) || setuid(uid) ? BROKEN : (int)try_access(fd, bytes, flags));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return (enum outcome)WEXITSTATUS(status);
}

/* ---- The results ---- */

static uint32_t first_value(struct wire *w)
{
    uint32_t values[N];
    struct shuf__result_message permute = wire_permutation(N, SHUF__TRANSPORT__TRANSPORT_INLINE);
    permute.permutation.seed = 1;
    wire_send_result(w, &permute);
    assert_true(wire_expect(w, SHUF_OK, "")->result->shared); /* the same block as the lease */
    wire_read_payload(w, values, sizeof values);
    return values[0];
}

static void descriptor_allows_only_its_access(void **state)
{
    (void)state;
    static const struct {
        uid_t uid;
        int flags;
        enum outcome outcome;
    } rows[] = {
        {0, READ, NOT_WRITTEN},
        {NOBODY, READ, NOT_WRITTEN},
        {NOBODY, READ_AND_WRITE, WRITTEN}, /* nothing prevents this write; it is the last row,
                                            * because it destroys the values */
    };
    struct harness h;
    if (geteuid() != 0)
        skip();
    assert_true(harness_start(&h, harness_backend, NULL));
    struct wire *w = wire_greet(&h), *other = wire_greet(&h);
    uint64_t bytes = wire_lease(w, N, 1, SHUF__TRANSPORT__TRANSPORT_CUDA_FD)->block_bytes;
    uint32_t first = first_value(other);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum outcome outcome = try_access_as(rows[i].uid, w->descriptor, bytes, rows[i].flags);
        uint32_t now = first_value(other);
        fprintf(stderr, "uid %d, access %d: outcome %d, the daemon's first value %u, was %u\n",
                (int)rows[i].uid, rows[i].flags, (int)outcome, now, first);
        assert_int_equal(outcome, rows[i].outcome);
        assert_int_equal(now, outcome == WRITTEN ? UINT32_MAX : first);
    }
    wire_close(w);
    wire_close(other);
    assert_true(harness_stop(&h));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest attacks[] = {
        cmocka_unit_test(descriptor_allows_only_its_access),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_see_no_foreign_bytes),
        cmocka_unit_test(users_share_no_results),
        cmocka_unit_test(status_shows_only_own_leases),
        cmocka_unit_test(cuda_ipc_of_another_user_is_denied),
        cmocka_unit_test(client_of_child_namespace_is_served),
        cmocka_unit_test(end_of_unseen_client_is_seen),
    };
    int failed = 0;
    harness_backend = harness_backend_or_skip(argc, argv);
    if (strcmp(harness_backend, "cuda") == 0)
        failed = cmocka_run_group_tests(attacks, NULL, NULL);
    if (geteuid() != 0) {
        fprintf(stderr, "two users: expected to be root\n");
        return failed ? failed : HARNESS_SKIP;
    }
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
