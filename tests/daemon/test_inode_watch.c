/* SPDX-License-Identifier: MIT
 *
 * Watches of inodes. A watch ends with its inode, even if the kernel's queue of events was full.
 */
#include "memory/inode_watch.h"
#include "support/cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MANY = 20000 }; /* the kernel's queue has 16384 events by default */

static struct shuf__inode_watches watches;
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
    shuf__inode_watch_begin(&watches, &kept, fd);
    close(fd);
    return path;
}

static void watch_and_close(int count)
{
    for (int i = 0; i < count; i++) {
        const int fd = memfd_create("gone", MFD_CLOEXEC);
        assert_true(fd >= 0);
        shuf__inode_watch_begin(&watches, &closed[i], fd);
        assert_true(closed[i].id > 0);
        close(fd);
    }
}

static void watches_end_with_their_inodes(void **state)
{
    const int count = *(const int *)*state;
    shuf__inode_watches_open(&watches);
    assert_true(watches.inotify >= 0);
    const int path = watch_and_keep();
    watch_and_close(count);
    shuf__inode_watches_update(&watches);
    assert_true(kept.id > 0);
    for (int i = 0; i < count; i++)
        assert_int_equal(closed[i].id, 0);
    close(path);
    shuf__inode_watches_update(&watches);
    assert_int_equal(kept.id, 0);
    assert_null(watches.tree);
    shuf__inode_watches_close(&watches);
}

/* If inotify is not available, no inode is watched. */
static void nothing_is_watched_without_inotify(void **state)
{
    (void)state;
    watches = (struct shuf__inode_watches){.inotify = -1};
    close(watch_and_keep());
    assert_int_equal(kept.id, 0);
    shuf__inode_watches_update(&watches);
    shuf__inode_watch_end(&watches, &kept);
}

int main(void)
{
    static int few = 10, many = MANY;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(watches_end_with_their_inodes, &few),
        cmocka_unit_test_prestate(watches_end_with_their_inodes, &many),
        cmocka_unit_test(nothing_is_watched_without_inotify),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
