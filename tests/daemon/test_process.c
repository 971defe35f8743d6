/* SPDX-License-Identifier: MIT
 *
 * How the daemon learns of the end of processes and inodes. Observers of one process share a pidfd,
 * and each learns of its end. A PID that is used again is a new process: the test gives two
 * processes the same number. A watch of an inode ends with it, even if the kernel's queue of events
 * was full.
 */
#include "memory/client_process.h"
#include "memory/inode_watch.h"
#include "support/child.h"
#include "support/cmocka_all.h"
#include "support/random.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum { PID = 4711, UID = 61000, OBSERVERS = 50 };

static uv_loop_t loop;
static struct shuf__accounts accounts;
static struct shuf__processes processes;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int listener, before;
static uv_timer_t alive; /* the loop has no other handle that keeps it alive */

static void on_timer(uv_timer_t *timer)
{
    (void)timer;
}

/* ---- Peers ---- */

/* A process with connections to this one. */
struct peer {
    struct child child;
    int socket;
};

static void connect_and_wait(int channel, void *context)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)context;
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    child_send(channel, 1);
    child_receive(channel);
}

static struct peer start_peer(void)
{
    struct peer peer = {.child = child_start(connect_and_wait, NULL)};
    child_receive(peer.child.channel);
    peer.socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(peer.socket >= 0);
    return peer;
}

static bool kernel_gives_pidfds(void)
{
    int pair[2], fd = -1;
    socklen_t size = sizeof fd;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    const bool gives = getsockopt(pair[0], SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0;
    if (gives)
        close(fd);
    close(pair[0]);
    close(pair[1]);
    return gives;
}

/* ---- Observers ---- */

struct observer {
    struct shuf__process_observer base;
    unsigned ends;
};

static void on_end(struct shuf__process_observer *base)
{
    ((struct observer *)base)->ends++;
}

static const struct observer new_observer = {.base = {.ended = on_end}};

static void run_until(const unsigned *ends)
{
    for (int turns = 0; *ends == 0; turns++) {
        assert_true(turns < 60000);
        uv_run(&loop, UV_RUN_NOWAIT);
        usleep(1000);
    }
}

static int start(void **state)
{
    (void)state;
    uv_loop_init(&loop);
    uv_timer_init(&loop, &alive);
    uv_timer_start(&alive, on_timer, 3600000, 0);
    shuf__accounts_init(&accounts);
    shuf__processes_init(&processes, &loop, &accounts);
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/shuf-process-%ld", (long)getpid());
    unlink(address.sun_path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 16), 0);
    before = count_descriptors();
    return 0;
}

/* Nothing may remain of any test. */
static int stop(void **state)
{
    (void)state;
    uv_close((uv_handle_t *)&alive, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(processes.count, 0);
    assert_true(LIST_EMPTY(&accounts.list));
    assert_int_equal(count_descriptors(), before);
    close(listener);
    unlink(address.sun_path);
    return uv_loop_close(&loop);
}

/* ---- Tests ---- */

static void observers_share_a_pidfd(void **state)
{
    (void)state;
    struct observer observers[OBSERVERS];
    struct peer peer = start_peer();
    const pid_t pid = peer.child.pid;
    const int without = count_descriptors();
    struct shuf__process *process = NULL;
    assert_false(shuf__processes_have(&processes, pid));
    for (int i = 0; i < OBSERVERS; i++) {
        observers[i] = new_observer;
        process = shuf__process_of(&processes, pid, UID);
        assert_true(shuf__process_observe(process, peer.socket, &observers[i].base));
        assert_int_equal(count_descriptors(), without + 1);
    }
    assert_int_equal(processes.count, 1);
    assert_int_equal(shuf__account_find(&accounts, UID)->processes, 1);
    child_kill(&peer.child);
    run_until(&observers[0].ends);
    for (int i = 0; i < OBSERVERS; i++) {
        assert_int_equal(observers[i].ends, 1);
        shuf__process_unref(process);
    }
    close(peer.socket);
}

/* The observers leave in a random order. The last reference closes the pidfd. */
static void references_end_in_any_order(void **state)
{
    (void)state;
    struct observer observers[OBSERVERS];
    struct peer peer = start_peer();
    const int without = count_descriptors();
    struct shuf__process *process = NULL;
    for (int i = 0; i < OBSERVERS; i++) {
        observers[i] = new_observer;
        process = shuf__process_of(&processes, peer.child.pid, UID);
        assert_true(shuf__process_observe(process, peer.socket, &observers[i].base));
    }
    for (int left = OBSERVERS; left > 0; left--) {
        int one = (int)random_below(OBSERVERS);
        while (!observers[one].base.observes)
            one = (one + 1) % OBSERVERS;
        assert_int_equal(count_descriptors(), without + 1);
        shuf__process_stop_observing(&observers[one].base);
        shuf__process_unref(process);
    }
    assert_int_equal(count_descriptors(), without);
    child_kill(&peer.child);
    close(peer.socket);
}

/* The first process with the PID has ended before anybody observed it. */
static void ended_process_is_not_observed(void **state)
{
    (void)state;
    if (!kernel_gives_pidfds())
        skip();
    struct observer observer = new_observer;
    struct peer peer = start_peer(), next = start_peer();
    child_kill(&peer.child);
    struct shuf__process *process = shuf__process_of(&processes, PID, UID);
    assert_false(shuf__process_observe(process, peer.socket, &observer.base));
    assert_true(shuf__process_observe(process, next.socket, &observer.base));
    child_kill(&next.child);
    run_until(&observer.ends);
    shuf__process_unref(process);
    close(peer.socket);
    close(next.socket);
}

/* The first process with the PID has ended, but the loop does not know it yet. */
static void reused_pid_is_another_process(void **state)
{
    (void)state;
    if (!kernel_gives_pidfds())
        skip();
    struct observer first = new_observer, second = new_observer;
    struct peer peer = start_peer(), next = start_peer();
    struct shuf__process *process = shuf__process_of(&processes, PID, UID);
    assert_true(shuf__process_observe(process, peer.socket, &first.base));
    child_kill(&peer.child);
    assert_true(shuf__process_observe(process, next.socket, &second.base));
    assert_true(first.ends == 1 && second.ends == 0);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(second.ends, 0);
    child_kill(&next.child);
    run_until(&second.ends);
    assert_int_equal(first.ends, 1);
    shuf__process_unref(process);
    close(peer.socket);
    close(next.socket);
}

/* ---- Watches of inodes ---- */

enum { MANY = 20000 }; /* the kernel's queue has 16384 events by default */

static struct shuf__inode_watches inode_watches;
static struct shuf__inode_watch kept, closed[MANY];

static int open_path(int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_PATH | O_CLOEXEC);
}

/* Returns an O_PATH descriptor of a file that is watched and has no other descriptor. */
static int watch_and_keep(void)
{
    const int fd = memfd_create("kept", MFD_CLOEXEC), path = open_path(fd);
    assert_true(fd >= 0 && path >= 0);
    shuf__inode_watch_begin(&inode_watches, &kept, fd);
    close(fd);
    return path;
}

static void watch_and_close(int count)
{
    for (int i = 0; i < count; i++) {
        const int fd = memfd_create("gone", MFD_CLOEXEC);
        assert_true(fd >= 0);
        shuf__inode_watch_begin(&inode_watches, &closed[i], fd);
        assert_true(closed[i].id > 0);
        close(fd);
    }
}

static void watches_end_with_their_inodes(void **state)
{
    const int count = *(const int *)*state;
    shuf__inode_watches_open(&inode_watches);
    assert_true(inode_watches.inotify >= 0);
    const int path = watch_and_keep();
    watch_and_close(count);
    shuf__inode_watches_update(&inode_watches);
    assert_true(kept.id > 0);
    for (int i = 0; i < count; i++)
        assert_int_equal(closed[i].id, 0);
    close(path);
    shuf__inode_watches_update(&inode_watches);
    assert_int_equal(kept.id, 0);
    assert_null(inode_watches.tree);
    shuf__inode_watches_close(&inode_watches);
}

/* If inotify is not available, no inode is watched. */
static void nothing_is_watched_without_inotify(void **state)
{
    (void)state;
    inode_watches = (struct shuf__inode_watches){.inotify = -1};
    close(watch_and_keep());
    assert_int_equal(kept.id, 0);
    shuf__inode_watches_update(&inode_watches);
    shuf__inode_watch_end(&inode_watches, &kept);
}

int main(void)
{
    random_start("process");
    static int few = 10, many = MANY;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(observers_share_a_pidfd, start, stop),
        cmocka_unit_test_setup_teardown(references_end_in_any_order, start, stop),
        cmocka_unit_test_setup_teardown(ended_process_is_not_observed, start, stop),
        cmocka_unit_test_setup_teardown(reused_pid_is_another_process, start, stop),
        cmocka_unit_test_prestate(watches_end_with_their_inodes, &few),
        cmocka_unit_test_prestate(watches_end_with_their_inodes, &many),
        cmocka_unit_test(nothing_is_watched_without_inotify),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
